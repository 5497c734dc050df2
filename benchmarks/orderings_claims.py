"""The claims of `orderings.toml`, and what finished cells say of each."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from app.bench.comparison import (
    FEWEST_SEEDS,
    FIGURES,
    ZERO,
    Criterion,
    NotComparable,
    PairedDifference,
    difference,
    seed_difference,
)
from app.bench.figures import Spread
from app.bench.findings import SequenceFindings
from app.bench.sequence import StrategyRun

HOLDS, CONTRADICTS, FEW, NOT_RUN = "holds", "contradicts", "too few seeds", "not run"
VERDICTS = (HOLDS, ZERO, CONTRADICTS, FEW, NOT_RUN)


@dataclass(frozen=True)
class Side:
    """One strategy of a claim, in the sequence that it ran in."""

    label: str
    sequence: str


@dataclass(frozen=True)
class Claim:
    """What a paper says of two strategies, in one metric.

    Attributes:
        claim: in a sentence.
        paper: its numbers.
        confidence: that it shows at this scale, said before any run.
        metric: figure of a, and of b where `against` is empty.
        against: figure of b.
        relation: "above" or "below": where a is, seen from b.
        a: one strategy; None where it cannot be run.
        b: the other.
        not_run: why it cannot be run.
        remark: on what was found.
        seeds: so many decide it, and run: three unless it asks for more.
    """

    claim: str
    paper: str
    confidence: str
    metric: str
    against: str
    relation: str
    a: Side | None
    b: Side | None
    not_run: str
    remark: str
    seeds: int = FEWEST_SEEDS


@dataclass(frozen=True)
class Judged:
    """A claim with what the cells say of it."""

    claim: Claim
    verdict: str
    ours: PairedDifference | None = None
    a: Spread | None = None
    b: Spread | None = None


def read_claims(path: Path) -> list[Claim]:
    """Reads the claims, each once for every metric that it names."""
    claims = []
    for said in tomllib.loads(path.read_text(encoding="utf-8"))["claims"]:
        sequence = said.get("sequence", "")
        for place, metric in enumerate(said.get("metrics", [""])):
            claims.append(
                Claim(
                    said["claim"],
                    said["paper"],
                    said["confidence"],
                    metric,
                    said.get("against", ""),
                    said.get("relation", "above"),
                    _side(said["a"], sequence) if "a" in said else None,
                    _side(said["b"], sequence) if "b" in said else None,
                    said.get("not_run", ""),
                    said.get("remark", "") if place == 0 else "",
                    said.get("seeds", FEWEST_SEEDS),
                )
            )
    return claims


def _side(said: str | Mapping[str, Any], sequence: str) -> Side:
    if isinstance(said, str):
        return Side(said, sequence)
    compared = StrategyRun(name=said["name"], options=said.get("options", {}))
    return Side(compared.label, said.get("sequence", sequence))


def judge(claim: Claim, found: Mapping[str, SequenceFindings]) -> Judged:
    """Returns whether what the cells say is what the paper says."""
    if claim.a is None or claim.b is None:
        return Judged(claim, NOT_RUN)
    both = [_cells(side, found) for side in (claim.a, claim.b)]
    if not all(both):
        return Judged(claim, NOT_RUN)
    kind, *rest = claim.metric.split("/")
    try:
        if len(rest) == 2 and rest[1] in FIGURES:
            ours = difference(*both, Criterion(kind, *rest))
        else:
            ours = seed_difference(*both, claim.metric, claim.against)
    except NotComparable as error:
        return Judged(replace(claim, not_run=str(error)), NOT_RUN)
    if ours is None:
        return Judged(claim, NOT_RUN)
    spreads = [
        found[side.sequence].figures[side.label].get(name)
        for side, name in ((claim.a, claim.metric), (claim.b, claim.against or claim.metric))
    ]
    return Judged(claim, _verdict(claim, ours), ours, *spreads)


def _cells(side: Side, found: Mapping[str, SequenceFindings]) -> Sequence[Any]:
    return found[side.sequence].cells.get(side.label, ()) if side.sequence in found else ()


def _verdict(claim: Claim, ours: PairedDifference) -> str:
    if len(ours.seeds) < claim.seeds:
        return FEW
    if not ours.is_clear:
        return ZERO
    return HOLDS if (ours.low > 0) == (claim.relation == "above") else CONTRADICTS


def tally(judged: Sequence[Judged]) -> str:
    """Returns how many claims there are of each verdict."""
    verdicts = [one.verdict for one in judged]
    return ", ".join(f"{verdicts.count(name)} {name}" for name in VERDICTS)
