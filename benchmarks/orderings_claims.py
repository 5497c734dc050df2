"""The claims of `orderings.toml`, what finished cells say of each, and the page and the table that say so."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

from scipy.stats import false_discovery_control

from app.bench.comparison import (
    FEWEST_SEEDS,
    ZERO,
    Criterion,
    NotComparable,
    PairedDifference,
    difference,
    is_paired,
    seed_difference,
)
from app.bench.figures import Spread
from app.bench.findings import SequenceFindings
from app.bench.sequence import StrategyRun
from app.bench.tables import NONE, change, figure

HOLDS, CONTRADICTS, FEW, NOT_RUN = "holds", "contradicts", "too few seeds", "not run"
VERDICTS = (HOLDS, ZERO, CONTRADICTS, FEW, NOT_RUN)
DRAWS = 20_000
"""Of each comparison that a verdict hangs on."""


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
        dates: when it was added or changed, and whether figures had been seen by then.
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
    dates: str = ""
    seeds: int = FEWEST_SEEDS


@dataclass(frozen=True)
class Judged:
    """A claim with what the cells say of it.

    Attributes:
        holm: its p among those of all claims, by Holm: what stays below .05 is told of all of them jointly.
        fdr: the same by Benjamini and Hochberg: of what stays below .05, one in twenty is expected to be chance.
    """

    claim: Claim
    verdict: str
    ours: PairedDifference | None = None
    a: Spread | None = None
    b: Spread | None = None
    holm: float | None = None
    fdr: float | None = None


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
                    said.get("dates", ""),
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
    one, other = (_cells(side, found) for side in (claim.a, claim.b))
    if not one or not other:
        return Judged(claim, NOT_RUN)
    kind, *rest = claim.metric.split("/")
    try:
        if len(rest) == 2 and all(is_paired(cells, rest[1]) for cells in (one, other)):
            ours = difference(one, other, Criterion(kind, *rest), draws=DRAWS)
        else:
            ours = seed_difference(one, other, claim.metric, claim.against)
    except NotComparable as error:
        return Judged(replace(claim, not_run=str(error)), NOT_RUN)
    if ours is None:
        return Judged(claim, NOT_RUN)
    a, b = (
        found[side.sequence].figures[side.label].get(name)
        for side, name in ((claim.a, claim.metric), (claim.b, claim.against or claim.metric))
    )
    return Judged(claim, _verdict(claim, ours), ours, a, b)


def _cells(side: Side, found: Mapping[str, SequenceFindings]) -> Sequence[Any]:
    return found[side.sequence].cells.get(side.label, ()) if side.sequence in found else ()


def _verdict(claim: Claim, ours: PairedDifference) -> str:
    if len(ours.seeds) < claim.seeds:
        return FEW
    if not ours.is_clear:
        return ZERO
    return HOLDS if (ours.low > 0) == (claim.relation == "above") else CONTRADICTS


def judge_all(claims: Sequence[Claim], found: Mapping[str, SequenceFindings]) -> list[Judged]:
    """Returns every claim judged, and its p as one of so many."""
    judged = [judge(claim, found) for claim in claims]
    told = [n for n, one in enumerate(judged) if one.ours is not None and one.verdict != FEW]
    values = [one.ours.p for one in judged if one.ours is not None and one.verdict != FEW]
    for n, holm, fdr in zip(told, holm_adjusted(values), false_discovery_control(values), strict=True):
        judged[n] = replace(judged[n], holm=holm, fdr=float(fdr))
    return judged


def holm_adjusted(values: Sequence[float]) -> list[float]:
    """Returns p-values as Holm's procedure adjusts them, in the order given."""
    order = sorted(range(len(values)), key=lambda n: values[n])
    stepped = accumulate((min(1.0, (len(values) - rank) * values[n]) for rank, n in enumerate(order)), max)
    adjusted = dict(zip(order, stepped, strict=True))
    return [adjusted[n] for n in range(len(values))]


def tally(judged: Sequence[Judged]) -> str:
    """Returns how many claims there are of each verdict."""
    verdicts = [one.verdict for one in judged]
    return ", ".join(f"{verdicts.count(name)} {name}" for name in VERDICTS)


METRICS = {
    "r1": "R@1 at the end",
    "r10": "R@10 at the end",
    "rm": "Rm (mean of R@1, 5, 10, both directions) at the end",
    "learned": "R@1 just after each step",
    "bwt": "R@1 at the end less just after each step",
    "forgetting": "forgetting",
    "probe_drop": "accuracy on the probe, before less after",
    "drift/ram_pictures": "RAM less SAM of pictures, degrees a step",
    "drift/ram_texts": "RAM less SAM of texts, degrees a step",
    "drift/imam_text_to_image": "ImAM, degrees a step",
}
LEVEL = 0.05
PAPERS = ("CLL-CLIP", "C-CLIP", "IncCLIP", "CTP", "Mod-X")


def in_short(judged: Sequence[Judged]) -> str:
    """Returns the section of the summary: how many claims of each paper come out which way."""
    rows = []
    for paper in (*PAPERS, ""):
        own = [one for one in judged if paper_of(one.claim) == paper]
        counts = [sum(one.verdict == verdict for one in own) for verdict in VERDICTS]
        stay = [sum(is_jointly_clear(one, by) for one in own) for by in ("holm", "fdr")]
        rows.append([paper or "of no paper, or of several", *map(str, [len(own), *counts, *stay])])
    header = ["paper", "rows", *VERDICTS, "*holds* that stay by Holm", "by Benjamini-Hochberg"]
    surprises = [one for one in judged if one.claim.confidence == "high" and one.verdict == CONTRADICTS]
    lines = [f"- {_in_a_line(one)}" for one in surprises]
    contradicted = ["Of high confidence, and contradicted:\n", *lines, ""] if lines else []
    return "\n".join(
        [
            "## What five papers claim\n",
            f"[Every claim with its figures](strategies/claims.md); in short: {tally(judged)}. A row is a claim by one "
            "measure; the last two columns say how many still hold when all rows are tested together.\n",
            _table([header, *rows]),
            *contradicted,
        ]
    )


def paper_of(claim: Claim) -> str:
    """Returns the paper that a claim is of; "" where none is named."""
    return next((name for name in PAPERS if f"({name})" in claim.paper), "")


def is_jointly_clear(one: Judged, by: str) -> bool:
    """Whether what holds by itself still does when all rows are tested together, by "holm" or "fdr"."""
    value = getattr(one, by)
    return one.verdict == HOLDS and value is not None and value <= LEVEL


def claims_page(judged: Sequence[Judged]) -> str:
    """Returns the page of every claim, a table for each paper."""
    header = [
        "claim", "the paper's numbers", "confidence", "measured by", "a", "b", "a less b", "verdict", "p", "Holm",
        "B-H", "remark", "dates",
    ]  # fmt: skip
    stay = [sum(is_jointly_clear(one, by) for one in judged) for by in ("holm", "fdr")]
    holds = sum(one.verdict == HOLDS for one in judged)
    parts = [
        "# What five papers claim\n",
        "Written by `python benchmarks/orderings.py`; do not edit. Each claim of the papers that can show at this "
        "scale. *Confidence*: that it can show with encoders this small, said before any run; *not promised*: an "
        "ordering of a paper that nothing was said of. *a less b*: points, paired per query and per seed, 95 % "
        f"interval over seeds and things by {DRAWS:,} draws; the probe's, drift's and, in cells "
        "of before 2026-11-26, Rm's over seeds alone (Student). "
        "*Holds*: the interval is on the claimed side of zero; *contradicts*: on the other; "
        f"*{ZERO}*: it spans zero, or comes within one Monte-Carlo error of it; "
        f"below {FEWEST_SEEDS} seeds nothing is said. *p*: two-sided, of no difference. "
        "*Holm*, *B-H*: the same among all rows of this page, by Holm and by Benjamini and Hochberg. "
        f"Of {holds} that hold, {stay[0]} stay below .05 by Holm and {stay[1]} by Benjamini-Hochberg. *Dates*: when a "
        "claim was added or changed; *after first cells*: figures of its sequence had been seen by then.\n",
    ]
    for paper in (*PAPERS, ""):
        rows = [_row(one) for one in judged if paper_of(one.claim) == paper]
        if rows:
            parts += [f"## {paper or 'Of no paper, or of several'}\n", _table([header, *rows])]
    return "\n".join(parts)


def _row(one: Judged) -> list[str]:
    claim = one.claim
    return [
        claim.claim,
        claim.paper,
        claim.confidence,
        metric_words(claim),
        _said(claim.a, one.a),
        _said(claim.b, one.b),
        _change(one),
        f"**{one.verdict}**" if one.verdict == CONTRADICTS else one.verdict,
        *(
            _p(value)
            for value in (one.ours.p if one.ours and one.holm is not None else None, one.holm, one.fdr)
        ),
        claim.remark or claim.not_run,
        claim.dates,
    ]


def _in_a_line(one: Judged) -> str:
    claim = one.claim
    return f"{claim.claim} {metric_words(claim)}: {_change(one)}. {claim.remark}".rstrip()


def metric_words(claim: Claim) -> str:
    """Returns what a claim is measured by, in words."""
    if not claim.metric:
        return NONE
    kind, *rest = claim.metric.split("/")
    said = f"{kind}, {rest[0]}: {METRICS[rest[1]]}" if len(rest) == 2 else METRICS[claim.metric]
    return said if claim.against else f"{said}; a {claim.relation} b"


def _said(side: Side | None, spread: Spread | None) -> str:
    if side is None:
        return NONE
    named = f"{side.label} ({side.sequence})"
    return named if spread is None else f"{named}: {figure(spread)}"


def _change(one: Judged) -> str:
    if one.ours is None:
        return NONE
    count = len(one.ours.seeds)
    return f"{change(one.ours, words=False)}, {count} seed{'s' * (count > 1)}"


def _p(value: float | None) -> str:
    return NONE if value is None else "< .001" if value < 0.001 else f"{value:.3f}"


def _table(lines: Sequence[Sequence[str]]) -> str:
    header, *rows = lines
    said = [header, ["---"] * len(header), *rows]
    return (
        "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in said) + "\n"
    )
