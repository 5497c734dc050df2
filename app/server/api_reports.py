"""Verdicts and findings as REST answers: what a person would look at, with the addresses of its pictures."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from pydantic import BaseModel

from app.desk.verdicts import Judged
from app.words.chunk import findings_of
from ingest.findings import Finding
from ingest.records import ChunkRecord
from model_updates.gate.report import GateReport, QueryChange


class RuleOut(BaseModel):
    """One rule's verdict with its sentences."""

    rule: str
    verdict: str
    reasons: list[str]


class GateRowOut(BaseModel):
    """One slice in one view; changes are points, levels percent, as `GateRow` explains them."""

    slice: str
    view: str
    role: str
    images: int
    captions: int
    live: float
    candidate: float
    difference: float
    low: float
    high: float
    first_difference: float | None
    first_low: float | None
    water: float | None
    water_version: str | None
    water_difference: float | None
    water_low: float | None
    debt: float
    live_recalls: dict[str, float]
    candidate_recalls: dict[str, float]
    verdict: str
    note: str


class QueryChangeOut(BaseModel):
    """A caption that found its picture later or sooner; ranks count from 1."""

    slice: str
    view: str
    text: str
    language: str
    image_id: str
    thumb_url: str
    live_rank: int
    candidate_rank: int
    first_image: str | None
    first_thumb_url: str | None


class GateOut(BaseModel):
    """The gate's whole report."""

    verdict: str
    decided: str
    reasons: list[str]
    rules: list[RuleOut]
    rows: list[GateRowOut]
    attempts: int
    next_steps: list[str]
    lost: list[QueryChangeOut]
    won: list[QueryChangeOut]
    policy: dict[str, Any]


class JudgedOut(BaseModel):
    """What the gate said of a release or a job; `gate` is null where nothing was judged, and `sentence` says why."""

    asked: str
    sentence: str
    release: str | None
    job: str | None
    chunk: str | None
    gate: GateOut | None


class ExampleOut(BaseModel):
    """A pair that shows what a finding means."""

    image_id: str
    thumb_url: str
    language: str
    text: str
    why: str


class FindingOut(BaseModel):
    """What one check of a chunk found."""

    check: str
    outcome: str
    sentence: str
    figures: dict[str, Any]
    examples: list[ExampleOut]


class ChunkOut(BaseModel):
    """A chunk: what it holds, what it counts for and since when by whom, what its checks found, its intake."""

    id: str
    name: str
    created: str
    in_gallery: bool
    pairs: int
    images: int
    new_pairs: int
    new_images: int
    languages: dict[str, int]
    domains: dict[str, int]
    standing: str
    measures: bool
    standing_by: str
    standing_why: str
    standing_since: str
    findings: list[FindingOut]
    report: dict[str, Any]


def judged_out(judged: Judged) -> JudgedOut:
    """Returns a verdict as REST gives it."""
    report = judged.report
    facts = {name: getattr(judged, name) for name in ("asked", "sentence", "release", "job", "chunk")}
    return JudgedOut(**facts, gate=None if report is None else _gate_out(report))


def chunk_out(chunk: ChunkRecord) -> ChunkOut:
    """Returns a chunk as REST gives it."""
    return ChunkOut(**asdict(chunk), findings=[_finding_out(finding) for finding in findings_of(chunk)])


def _gate_out(report: GateReport) -> GateOut:
    facts = report.to_json()
    moved = {side: [_query_out(one) for one in getattr(report, side)] for side in ("lost", "won")}
    return GateOut(**facts | moved, decided=report.first_reason)


def _query_out(moved: QueryChange) -> QueryChangeOut:
    return QueryChangeOut(
        **asdict(moved),
        thumb_url=_thumbnail(moved.image_id),
        first_thumb_url=_thumbnail(moved.first_image) if moved.first_image else None,
    )


def _finding_out(finding: Finding) -> FindingOut:
    facts = finding.to_json()
    for example in facts["examples"]:
        example["thumb_url"] = _thumbnail(example["image_id"])
    return FindingOut(**facts)


def _thumbnail(image_id: str) -> str:
    return f"/v1/images/{image_id}/thumbnail"
