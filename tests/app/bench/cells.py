"""Small cells made by hand, whose figures are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from app.bench.results import VIEWS, Cell, SliceRun
from app.bench.sequence import BenchSequence, StrategyRun

MADE = {"date": "2026-11-21", "machine": "x86_64", "cores": 2, "threads": 1, "python": "3.11", "torch": "2"}


def slice_run(
    recalls: Sequence[float],
    *,
    language: str = "de",
    domain: str = "flat",
    kind: str = "trained",
    since: int = 1,
    unseen: bool = False,
    digest: str = "",
    clusters: Sequence[int] | None = None,
    learned: Sequence[int] | None = None,
    last: Sequence[int] | None = None,
    last_ten: Sequence[int] | None = None,
    six: Sequence[int] | None = None,
) -> SliceRun:
    """A slice by its R@1 after each step and by its queries' bits; bits not given are four that were not found."""
    last = [0, 0, 0, 0] if last is None else last
    learned = last if learned is None else learned
    clusters = range(len(last)) if clusters is None else clusters
    rows = [{"t2i_r1": r, "t2i_r5": 100.0, "t2i_r10": 100.0, "mean_recall": r / 2} for r in recalls]
    bits = {name: np.asarray(said, dtype=np.bool_) for name, said in (("learned", learned), ("last", last))}
    ten = np.ones(len(last), dtype=np.bool_) if last_ten is None else np.asarray(last_ten, dtype=np.bool_)
    return SliceRun(
        language,
        domain,
        kind,
        since,
        unseen,
        digest or f"{kind}:{language}:{domain}:{since}",
        np.asarray(clusters, dtype=np.int64),
        dict.fromkeys(VIEWS, rows),
        dict.fromkeys(VIEWS, bits["learned"]),
        dict.fromkeys(VIEWS, bits["last"]),
        dict.fromkeys(VIEWS, ten),
        None if six is None else np.asarray(six, dtype=np.int64),
    )


def step(name: str, **said: Any) -> Mapping[str, Any]:
    """What a step cost."""
    costs = {"seconds": 3.0, "cpu_seconds": 2.0, "pairs": 8, "stored_bytes": 1000, "image_forwards": 0}
    return {"name": name, **costs, "re_embedded": 0, "refused": "", "validation": None, "notes": []} | said


def cell(
    slices: Sequence[SliceRun],
    *,
    strategy: str = "finetune",
    seed: int = 0,
    steps: Sequence[Mapping[str, Any]] = (),
    digest: str = "d",
    probe: Sequence[float] = (),
    sequence: str = "made-up",
) -> Cell:
    """One finished cell; three steps unless they are given."""
    taken = tuple(steps) or (step("one"), step("two"), step("three"))
    return Cell(sequence, strategy, seed, taken, tuple(slices), 5_000_000, digest, {}, tuple(probe), MADE)


def cell_for(sequence: BenchSequence, compared: StrategyRun, seed: int, slices: Sequence[SliceRun]) -> Cell:
    """A cell that a sequence takes for its own."""
    steps = [step(f"step {number}") for number, _ in enumerate(sequence.steps)]
    return cell(
        slices,
        strategy=compared.label,
        seed=seed,
        steps=steps,
        digest=sequence.digest(compared),
        sequence=sequence.name,
    )
