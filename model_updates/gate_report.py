"""What the gate says: the policy it applied, a verdict, reasons a person can read, and a row per slice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from model_updates.recalls import QUERY_METRICS, TEXT_RECALLS


class Verdict(StrEnum):
    """What should happen to a candidate, mildest first."""

    PROMOTE = "promote"
    REVIEW = "review"
    REJECT = "reject"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the strictest of the verdicts; promote when there is none."""
    return max(verdicts, key=list(Verdict).index, default=Verdict.PROMOTE)


@dataclass(frozen=True)
class Policy:
    """What an update must show before it goes live. Points are percentage points of `metric`.

    Attributes:
        metric: what is compared. The mean of R@1, 5 and 10 by text is what a searcher sees on the first page,
            and varies less per query than R@1, so that fewer held-out pairs decide.
        confidence: one-sided, for every bound. 95 % is the habit of the field: one false promise in twenty.
        learned_margin: points that a taught slice must gain for certain. 0: any certain gain is worth having,
            since `kept` already bounds its price.
        pooled_drop: points that the old slices may lose on average. 2: losing more is felt, and asking for
            less would need thousands of held-out images to decide.
        slice_drop: points that any one old slice may lose. 5: a slice is smaller than the pool, hence
            noisier, and one language must not pay for the others.
        minimum_images: held-out images below which a slice cannot decide. At 100, with one answer in five
            changed by half a point of score, the bound lies 4 points from the estimate; much smaller slices
            could never exclude `slice_drop`.
        samples: bootstrap resamples. 2,000 leave 100 beyond a 95 % bound; more are drawn for many slices.
        seed: of the resampling; the same ranks give the same report.
        canary_share: share of pinned queries that may lose their answer. 0.05: one in twenty may have been
            luck.
    """

    metric: str = "t2i_mean"
    confidence: float = 0.95
    learned_margin: float = 0.0
    pooled_drop: float = 2.0
    slice_drop: float = 5.0
    minimum_images: int = 100
    samples: int = 2000
    seed: int = 0
    canary_share: float = 0.05

    def __post_init__(self) -> None:
        if self.metric not in QUERY_METRICS:
            raise ValueError(
                f"The gate cannot judge by {self.metric!r}; choose one of {', '.join(QUERY_METRICS)}."
            )
        if not 0.5 < self.confidence < 1.0:
            raise ValueError(
                f"confidence must lie between 0.5 and 1, for example 0.95; found {self.confidence}."
            )
        if not 0.0 <= self.canary_share <= 1.0:
            raise ValueError(f"canary_share is a share between 0 and 1; found {self.canary_share}.")
        if min(self.learned_margin, self.pooled_drop, self.slice_drop) < 0:
            raise ValueError("learned_margin, pooled_drop and slice_drop are points and cannot be negative.")
        if self.minimum_images < 2 or self.samples < 100:
            raise ValueError(
                f"A bootstrap needs at least 2 images and 100 samples; found {self.minimum_images} "
                f"and {self.samples}."
            )


@dataclass(frozen=True)
class GateRow:
    """One slice: the metric in percent, its change in points with bounds, and the recalls behind it.

    `low` and `high` are one-sided bounds of `difference` (candidate minus live) at the policy's confidence,
    corrected for the number of slices. The `best_` fields are None where live is the best version so far.
    """

    slice: str
    role: str
    images: int
    captions: int
    live: float
    candidate: float
    difference: float
    low: float
    high: float
    best_ever: float | None
    best_version: str | None
    best_low: float | None
    live_recalls: dict[str, float]
    candidate_recalls: dict[str, float]
    verdict: Verdict
    note: str


@dataclass(frozen=True)
class RuleResult:
    """One rule's verdict with its reasons."""

    rule: str
    verdict: Verdict
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class GateReport:
    """The strictest verdict of all rules, and everything it rests on."""

    policy: Policy
    rules: tuple[RuleResult, ...]
    rows: tuple[GateRow, ...]

    @property
    def verdict(self) -> Verdict:
        """The strictest verdict of all rules."""
        return worst(rule.verdict for rule in self.rules)

    @property
    def reasons(self) -> tuple[str, ...]:
        """All rules' sentences; those that decided the verdict come first."""
        ordered = sorted(self.rules, key=lambda rule: -list(Verdict).index(rule.verdict))
        return tuple(reason for rule in ordered for reason in rule.reasons)

    @property
    def first_reason(self) -> str:
        """The sentence that decided the verdict; empty when no rule gave one."""
        return next(iter(self.reasons), "")

    def to_json(self) -> dict[str, Any]:
        """Returns plain values, ready for `json.dumps`; verdict and reasons are included for readers."""
        return {"verdict": str(self.verdict), "reasons": list(self.reasons), **asdict(self)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "GateReport":
        """Rebuilds what `to_json` wrote."""
        return cls(
            policy=Policy(**document["policy"]),
            rules=tuple(
                RuleResult(rule["rule"], Verdict(rule["verdict"]), tuple(rule["reasons"]))
                for rule in document["rules"]
            ),
            rows=tuple(GateRow(**{**row, "verdict": Verdict(row["verdict"])}) for row in document["rows"]),
        )

    def table(self) -> list[list[str]]:
        """Returns the slices as rows of text, the header first."""
        header = "slice|role|images|captions|live|candidate|change|bounds|best ever|R@1|R@5|R@10|verdict"
        return [header.split("|"), *(_cells(row) for row in self.rows)]

    def markdown(self) -> str:
        """Returns verdict, reasons and table as Markdown."""
        header, *rows = self.table()
        lines = [f"**{self.verdict}**", "", *(f"- {reason}" for reason in self.reasons), ""]
        lines += [_markdown_line(header), _markdown_line(["---"] * len(header)), *map(_markdown_line, rows)]
        return "\n".join(lines) + "\n"


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cells(row: GateRow) -> list[str]:
    best = "–" if row.best_ever is None else f"{row.best_ever:.1f} ({row.best_version})"
    recalls = [f"{row.live_recalls[k]:.1f} → {row.candidate_recalls[k]:.1f}" for k in TEXT_RECALLS]
    return [
        row.slice,
        row.role,
        str(row.images),
        str(row.captions),
        f"{row.live:.1f}",
        f"{row.candidate:.1f}",
        points(row.difference),
        f"{points(row.low)} … {points(row.high)}",
        best,
        *recalls,
        f"{row.verdict}: {row.note}" if row.note else str(row.verdict),
    ]


def points(value: float) -> str:
    """Returns a change in points with its sign, `+1.2` or `−3.4`; a rounded zero has none."""
    text = f"{abs(value):.1f}"
    if text == "0.0":
        return text
    return ("+" if value > 0 else "−") + text
