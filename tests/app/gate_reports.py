"""Gate reports and findings for the tests of what people see: judged from made-up ranks, with captions that moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ingest.findings import Example, Finding, Outcome
from ingest.records import ChunkRecord
from model_updates.evaluation import SliceResult, View
from model_updates.gate.next_steps import next_steps
from model_updates.gate.report import GateReport, Policy, QueryChange
from model_updates.gate.rules import Past, judge

HOSTILE = "<img src=x onerror=\"document.title='owned'\"> **bold** [link](javascript:alert(1)) `code`"
PICTURES = tuple(letter * 64 for letter in "abc")
DROPS = {"promote": 0.0, "review": 0.04, "reject": 0.14}
"""What `de/icons` loses in the mixed gallery so that the gate says so."""
Key = tuple[str, View, bool]


def gate_report(
    verdict: str,
    *,
    unchanged: int = 0,
    texts: Sequence[str] = ("ein rotes Boot", HOSTILE),
    pictures: Sequence[str] = PICTURES,
) -> GateReport:
    """Returns what the gate says of an update that taught `sw/icons` and moved `de/icons`.

    Args:
        verdict: that is wanted; a key of `DROPS`.
        unchanged: further old slices in which no rank changed.
        texts: captions that lost.
        pictures: ids that they, and the captions that won, belong to.
    """
    live: dict[Key, SliceResult] = {}
    candidate: dict[Key, SliceResult] = {}

    def add(name: str, view: View, before: float, after: float, *, is_new: bool = False) -> None:
        live[name, view, is_new] = _slice(name, view, before)
        candidate[name, view, is_new] = _slice(name, view, after)

    for view in (View.OWN, View.MIXED):
        add("sw/icons", view, 0.02, 0.5, is_new=True)
    for name, drop in (("en/icons", 0.0), ("de/icons", DROPS[verdict])):
        for view in View:
            add(name, view, 0.8, 0.8 - (drop if view is View.MIXED else drop / 2))
    for n in range(unchanged):
        add(f"l{n}/icons", View.OWN, 0.5, 0.5)
    judged = judge(
        candidate=candidate,
        live=live,
        new_slices=[key for key in candidate if key[2]],
        taught_pairs={"sw/icons": 1000},
        canaries=[("rotes Boot", True)],
        policy=Policy(),
        past={
            ("de/icons", View.MIXED, False): Past((("v3-1a2b3c4d", _slice("de/icons", View.MIXED, 0.82)),))
        },
    )
    report = next_steps(judged)
    assert report.verdict == verdict, report.reasons
    return replace(
        report, lost=_moved(texts, pictures, 1, 34), won=_moved(["boti nyekundu"], pictures, 57, 1)
    )


def findings(pictures: Sequence[str] = PICTURES) -> list[Finding]:
    """Returns one finding of each outcome; the one that holds has a hostile caption among its examples."""
    texts = (HOSTILE, "zwei Segelschiffe")
    examples = tuple(
        Example(picture, "de", text, f"fits {HOSTILE} better")
        for picture, text in zip(pictures, texts, strict=False)
    )
    return [
        Finding("repetition", Outcome.ACCEPT, "No caption stands on many pictures."),
        Finding("mismatched", Outcome.UNKNOWN, "With 12 pairs no statistic can tell.", {"pairs": 12}),
        Finding("row_shift", Outcome.HOLD, "The captions look moved by one row.", {"offset": 1}, examples),
    ]


def chunk_with_findings(standing: str = "held", *, name: str = HOSTILE) -> ChunkRecord:
    """Returns a chunk that its checks hold."""
    return ChunkRecord(
        "0a1b2c3d4e5f",
        name,
        "2026-11-21T15:00:00+00:00",
        in_gallery=True,
        pairs=1185,
        images=1185,
        new_pairs=1185,
        new_images=1185,
        languages={"de": 1185},
        domains={"icons": 1185},
        report={"findings": [finding.to_json() for finding in findings()]},
        standing=standing,
        standing_by="checks",
        standing_why="row shift",
        standing_since="2026-11-21T15:01:02.123+00:00",
    )


def _slice(name: str, view: View, share_right: float, *, things: int = 400) -> SliceResult:
    language, domain = name.split("/")
    positions = np.arange(things)
    ranks: NDArray[np.int64] = np.where(positions < round(share_right * things), 0, 99)
    ids = tuple(f"{domain}{n}" for n in range(things))
    return SliceResult(language, domain, ids, positions, ranks, ranks, positions, view=view)


def _moved(texts: Sequence[str], pictures: Sequence[str], before: int, after: int) -> tuple[QueryChange, ...]:
    return tuple(
        QueryChange(
            "de/icons",
            "mixed" if n else "own",
            text,
            "de",
            pictures[n % len(pictures)],
            before,
            after,
            pictures[(n + 1) % len(pictures)],
        )
        for n, text in enumerate(texts)
    )
