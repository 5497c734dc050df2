"""What the gate says: the policy it applied, a verdict, reasons a person can read, and a row per slice."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from ingest.sentence import known_fields
from model_updates.checked import Checked, NotNegative, OneOf, Share, Within
from model_updates.recalls import CONCEPT, MEAN, QUERY_METRICS, TEXT_RECALLS


class Verdict(StrEnum):
    """What should happen to a candidate, mildest first."""

    PROMOTE = "promote"
    REVIEW = "review"
    REJECT = "reject"


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the strictest of the verdicts; promote when there is none."""
    return max(verdicts, key=list(Verdict).index, default=Verdict.PROMOTE)


def strictest_first(said: Iterable[tuple[Verdict, str]]) -> tuple[str, ...]:
    """Returns sentences, those of the strictest verdict first and otherwise in their order."""
    return tuple(sentence for _, sentence in sorted(said, key=lambda one: -list(Verdict).index(one[0])))


@dataclass(frozen=True)
class Policy(Checked):
    """What an update must show before it goes live. Points are percentage points of `metric`."""

    __pydantic_config__: ClassVar[dict[str, str]] = {
        "extra": "forbid"
    }  # as a setting, a misspelt field is refused
    refusal = ValueError

    # what is compared. The mean of R@1, 5 and 10 by text is what a searcher sees on the first page, and
    # varies less per query than R@1, so that fewer held-out pairs decide.
    metric: Annotated[str, OneOf(*QUERY_METRICS)] = MEAN
    # how certain every bound is, one-sided. 95 % is the habit of the field: one false promise in twenty.
    confidence: Annotated[float, Within("(0.5, 1)")] = 0.95
    # points that a taught slice must gain for certain. 0: any certain gain is worth having, since `kept`
    # already bounds its price.
    learned_margin: NotNegative = 0.0
    # points that the old slices may lose on average. 2: losing more is felt, and asking for less would need
    # thousands of held-out images to decide.
    pooled_drop: NotNegative = 2.0
    # points that any one old slice may lose. 5: a slice is smaller than the pool, hence noisier, and one
    # language must not pay for the others.
    slice_drop: NotNegative = 5.0
    # points of R@1 that the old slices may lose on average. The mean of three recalls can stand still while
    # first places are lost, and the first place is what many people look at. 5: R@1 varies more than twice as
    # much, and a bound that nobody can show would stop everything.
    first_pooled_drop: NotNegative = 5.0
    # points of R@1 that any one old slice may lose; 10 for the same reason.
    first_slice_drop: NotNegative = 10.0
    # different held-out things below which a taught slice cannot decide. At 100, with one answer in five
    # changed by half a point of score, the bound lies 4 points from the estimate.
    minimum_images: Annotated[int, Within("[2, inf)")] = 100
    # bootstrap resamples. 2,000 leave 100 beyond a 95 % bound; more are drawn for many slices.
    samples: Annotated[int, Within("[100, inf)")] = 2000
    seed: int = 0  # the seed of the resampling; the same ranks give the same report.
    # whether copies examine a chunk that holds out less, where nothing known moved; it costs about four more trainings.
    # Without, a person decides.
    cross_fit: bool = True
    # share of pinned queries that may lose their answer. 0.05: one in twenty may have been luck.
    canary_share: Share = 0.05

    def gain_alpha(self, attempt: int) -> float:
        """Returns the chance that the m-th candidate against one live version may have to pass for a gain by luck.

        ``(1 - confidence) / 2 / (m (m + 1))`` sums to half the error rate, 2.5 %, over however many attempts.
        """
        return (1.0 - self.confidence) / 2 / (attempt * (attempt + 1))

    def loss_alpha(self, attempt: int) -> float:
        """Returns the chance with which the m-th candidate may break the policy unseen.

        The first is held to `confidence`; all together spend twice that error rate at most.
        """
        return 2 * (1.0 - self.confidence) / (attempt * (attempt + 1))


@dataclass(frozen=True)
class GateRow:
    """One slice in one view: the metric in percent, its change in points with bounds, and the recalls behind it."""

    slice: str  # language and domain, `de/photo`
    role: str  # `new` for what was taught, `kept` for what was known
    # different things that have a caption here (near-copies and pictures of one group count once)
    images: int
    captions: int  # how many looked for their picture
    live: float  # percent of the policy's metric under the live encoder
    candidate: float  # the same under the candidate
    difference: float  # candidate minus live, points
    # the change is at least this. Of taught slices corrected for their number (Holm), of known ones the bound that the
    # slices share (`model_updates.gate.shrinkage`); both at the policy's confidence
    low: float
    high: float  # the change is at most this
    live_recalls: dict[str, float]  # percent by `t2i_r1` and the like
    candidate_recalls: dict[str, float]  # the same
    verdict: Verdict
    note: str  # why, in a word or two
    view: str = "own"  # `own`, `mixed` or `memory` (`model_updates.evaluation.View`)
    first_difference: float | None = None  # candidate minus live in R@1, points
    first_low: float | None = None  # it is at least this
    # percent that the best version so far reaches today; None where no other version is better than live
    water: float | None = None
    water_version: str | None = None  # which version that is
    # candidate minus high water, points, corrected for the choice of the best
    water_difference: float | None = None
    water_low: float | None = None  # it is at least this
    debt: float = 0.0  # points that a person accepted to lose here before, which lower the water
    # of whose captions most more find their picture among ten than before; empty where too few do
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class QueryChange:
    """A caption that found its picture later or sooner than before: what stands behind a number."""

    slice: str  # language and domain
    view: str  # as in `GateRow`
    text: str  # the caption
    language: str  # of the caption
    image_id: str  # the picture it belongs to
    live_rank: int  # place of that picture under the live encoder, from 1
    candidate_rank: int  # the same under the candidate
    first_image: str | None = None  # the picture that the candidate puts first; None where nobody looked


@dataclass(frozen=True)
class RuleResult:
    """One rule's verdict with its reasons."""

    rule: str
    verdict: Verdict
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class GateReport:
    """The strictest verdict of all rules, and everything it rests on."""

    policy: Policy  # what had to be shown
    rules: tuple[RuleResult, ...]  # each rule's verdict and reasons
    rows: tuple[GateRow, ...]  # each slice in each view
    # how many looks, this one included, were taken at candidates for the live version; they spend one error rate
    attempts: int = 1
    next_steps: tuple[str, ...] = ()  # what the numbers suggest to do now; empty when it passed
    lost: tuple[QueryChange, ...] = ()  # the captions that lost most
    won: tuple[QueryChange, ...] = ()  # the captions that won most

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
        """Rebuilds what `to_json` wrote; an older Perennial's lack takes defaults, a newer one's more is left out."""
        return cls(
            policy=Policy(**known_fields(Policy, document["policy"])),
            rules=tuple(
                RuleResult(rule["rule"], Verdict(rule["verdict"]), tuple(rule["reasons"]))
                for rule in document["rules"]
            ),
            rows=tuple(
                GateRow(
                    **known_fields(GateRow, row)
                    | {"verdict": Verdict(row["verdict"]), "words": tuple(row.get("words", ()))}
                )
                for row in document["rows"]
            ),
            attempts=int(document.get("attempts", 1)),
            next_steps=tuple(document.get("next_steps", ())),
            lost=tuple(QueryChange(**known_fields(QueryChange, one)) for one in document.get("lost", ())),
            won=tuple(QueryChange(**known_fields(QueryChange, one)) for one in document.get("won", ())),
        )

    def table(self) -> list[list[str]]:
        """Returns the slices as rows of text, the header first."""
        header = "slice|view|role|things|captions|live|candidate|change|bounds|high water|R@1|R@5|R@10|"
        header += "same thing P@10|verdict"
        return [header.split("|"), *(_cells(row) for row in self.rows)]

    def markdown(self) -> str:
        """Returns verdict, reasons and table as Markdown."""
        header, *rows = self.table()
        lines = [f"**{self.verdict}**", "", *(f"- {reason}" for reason in self.reasons), ""]
        if self.next_steps:
            lines += ["What to do next:", "", *(f"- {step}" for step in self.next_steps), ""]
        lines += [_markdown_line(header), _markdown_line(["---"] * len(header)), *map(_markdown_line, rows)]
        return "\n".join(lines) + "\n"


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _cells(row: GateRow) -> list[str]:
    best = "–" if row.water is None else f"{row.water:.1f} ({row.water_version})"
    recalls = [f"{row.live_recalls[k]:.1f} → {row.candidate_recalls[k]:.1f}" for k in TEXT_RECALLS]
    return [
        row.slice,
        row.view,
        row.role,
        str(row.images),
        str(row.captions),
        f"{row.live:.1f}",
        f"{row.candidate:.1f}",
        points(row.difference),
        f"{points(row.low)} … {points(row.high)}",
        best,
        *recalls,
        same_thing(row) or "–",
        f"{row.verdict}: {row.note}" if row.note else str(row.verdict),
    ]


def same_thing(row: GateRow) -> str:
    """Returns how many of the first ten show the same thing, in percent, before and after; "" where nobody asks."""
    before, after = row.live_recalls.get(CONCEPT), row.candidate_recalls.get(CONCEPT)
    return "" if before is None or after is None else f"{before:.1f} → {after:.1f}"


def points(value: float) -> str:
    """Returns a change in points with its sign, `+1.2` or `−3.4`; a rounded zero has none."""
    text = f"{abs(value):.1f}"
    if text == "0.0":
        return text
    return ("+" if value > 0 else "−") + text


POOL = "kept"
"""The rule that judges all old slices together."""


def owed(report: GateReport) -> list[tuple[GateRow, float]]:
    """Returns what promoting in spite of a review accepts to lose: rows, and points below live or the high water.

    Where all old slices together are in doubt each of them that lost is owed; else those that are in doubt themselves.
    What was owed before is not counted again.
    """
    if report.verdict is not Verdict.REVIEW:
        return []
    is_pool = any(rule.rule == POOL and rule.verdict is not Verdict.PROMOTE for rule in report.rules)
    rows = [(row, max(-row.difference, -(row.water_difference or 0.0))) for row in report.rows]
    return [
        (row, lost)
        for row, lost in rows
        if row.role == "kept" and (is_pool or row.verdict is not Verdict.PROMOTE) and lost > 0
    ]
