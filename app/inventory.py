"""What lies in a home's chunks beside what teaches: rows that intake held, and pictures of one and the same thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from app.workspace import Workspace
from ingest.records import ChunkRecord


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A row of an upload that intake did not take, because a person has to decide; where it stood, and why."""

    chunk: str
    name: str
    where: str
    code: str
    sentence: str


@dataclass(frozen=True, slots=True)
class OneThing:
    """Pictures of one thing: near-copies of one another, or stated to be so by an upload. They count once."""

    id: str
    images: tuple[str, ...]


def waiting(workspace: Workspace) -> list[ChunkRecord]:
    """Returns the chunks that wait for a person's word, newest first."""
    return [chunk for chunk in reversed(workspace.catalog.chunks()) if chunk.standing == "held"]


def held_rows(workspace: Workspace, *, limit: int, offset: int = 0) -> tuple[int, list[HeldRow]]:
    """Returns how many rows intake held, and some of them, those of the newest chunk first."""
    found = [
        _row(chunk, row)
        for chunk in reversed(workspace.catalog.chunks())
        if chunk.standing != "withdrawn"
        for row in chunk.report.get("rows", ())
        if row["outcome"] == "held"
    ]
    return len(found), found[offset : offset + limit]


def things(workspace: Workspace, *, limit: int, offset: int = 0) -> tuple[int, list[OneThing]]:
    """Returns how many things have more than one picture in the gallery, and some of them, the largest first."""
    count, groups = workspace.catalog.clusters(limit=limit, offset=offset)
    return count, [OneThing(cluster, ids) for cluster, ids in groups]


def _row(chunk: ChunkRecord, row: dict[str, Any]) -> HeldRow:
    return HeldRow(chunk.id, chunk.name, row["where"], row["code"], row["sentence"])


def samples(workspace: Workspace, chunk: str, count: int) -> list[tuple[str, str]]:
    """Returns some pictures of a chunk, spread over it, each with a caption while one of it counts."""
    ids = sorted(workspace.catalog.ids_where(chunks=[chunk]))
    some = ids[:: max(1, len(ids) // count)][:count]
    spoken = {image_id: workspace.catalog.captions_of(image_id) for image_id in some}
    return [(image_id, spoken[image_id][0].text if spoken[image_id] else "") for image_id in some]
