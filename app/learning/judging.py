"""Judging a candidate: measured beside what is live and versions before it, then the gate."""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from app.desk.jobs import Stage, counted
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.canaries import canaries
from app.learning.cross_fitting import among_everything, is_undecided, nothing_known_moved
from app.learning.examples import with_examples
from app.learning.outcomes import Tell, say_nothing
from app.learning.past import past_results, side_of
from app.learning.yardstick import Yardstick
from ingest.pair import SliceKey
from ingest.sentence import joined, phrase
from model_updates.encoder import Encoder
from model_updates.gate.examined import CrossFitted, borne_out
from model_updates.gate.next_steps import next_steps
from model_updates.gate.report import Policy, Verdict
from model_updates.gate.rules import GateReport, Past, judge, judge_small
from model_updates.measurement import HeldOut, Measured, Results, Side, measure_views


@dataclass(frozen=True)
class Taught:
    """What a candidate was taught."""

    chunk: str  # id of the chunk
    slices: Mapping[SliceKey, int]  # training pairs of those it is meant to be better at
    languages: tuple[str, ...]  # learned once it is live, in the order of learning
    version: str = ""  # its id, "" when it has none yet
    strategy: str = ""  # by which it was taught

    @property
    def counts(self) -> dict[str, int]:
        """Its training pairs by the name of their slice."""
        return {str(key): count for key, count in self.slices.items()}


def judge_taught(
    workspace: Workspace,
    taught: Taught,
    candidate: Encoder,
    record: ReleaseRecord,
    policy: Policy,
    progress: Tell = say_nothing,
    examine: Callable[[], Sequence[CrossFitted]] = tuple,
) -> tuple[GateReport, Results]:
    """Judges a candidate against a release; returns the report, and the candidate's result on all that was measured.

    Where held-out pairs are too few to decide and nothing known moved, `examine` says what copies found of all pairs.
    """
    yardstick = Yardstick(workspace, record, taught.chunk)
    looked = _look(workspace, yardstick, taught, candidate, progress)
    progress(Stage("gate", phrase("judging what was learned and what was kept")))
    shown = canaries(workspace, candidate, record, taught.chunk)
    attempt = attempts(workspace, record.version)
    report = _judged(looked, taught, shown, policy, attempt)
    is_small, examined = is_undecided(report), tuple[CrossFitted, ...]()
    asks = is_small or _is_claimed(report, looked.slices)
    if asks and nothing_known_moved(looked.live_side, looked.side, record.manifest.languages, looked.slices):
        examined = tuple(examine())
    right = borne_out(examined)
    if right and any(one.claimed for one in looked.slices):
        looked = _look(workspace, replace(yardstick, borne_out=right), taught, candidate, progress)
        report = _judged(looked, taught, shown, policy, attempt)
    if examined and is_small:
        old, drawn = (
            among_everything(looked.results, looked.live, looked.slices, probes=probes)
            for probes in (False, True)
        )
        report = judge_small(report, examined, old, taught.counts, drawn)
    advised = next_steps(report, taught.strategy, examined)
    examples = with_examples(workspace, advised, looked.slices, looked.live, looked.results, looked.side)
    return examples, looked.results


@dataclass(frozen=True, eq=False)
class _Looked:
    """What was measured of a candidate, and of what it is held against."""

    slices: Sequence[HeldOut]
    live_side: Side
    live: Results
    side: Side  # of the candidate
    results: Results  # of the candidate
    past: Mapping[Measured, Past]


def _look(
    workspace: Workspace, yardstick: Yardstick, taught: Taught, candidate: Encoder, progress: Tell
) -> _Looked:
    record = yardstick.release
    slices = yardstick.slices(record.manifest.languages, taught.slices)
    told = _measuring(slices)
    measured = itertools.count()
    whole = 2 * sum(bool(one.captions) for one in slices)  # live and candidate; earlier versions come after

    def begin(_: HeldOut) -> None:
        progress(counted("measure", told, next(measured), whole))

    progress(Stage("measure", told))
    generation = workspace.open_generation(record.generation)
    live_side = side_of(
        workspace, workspace.open_encoder(record.version), record.manifest.languages, slices, generation
    )
    live = measure_views(live_side, slices, workspace.load_image, workspace.features, begin=begin)
    side = side_of(workspace, candidate, taught.languages, slices, generation)
    known = (live_side, live)
    results = measure_views(side, slices, workspace.load_image, workspace.features, known=known, begin=begin)
    past = past_results(workspace, slices, record, known, but=taught.version, progress=progress)
    return _Looked(slices, live_side, live, side, results, past)


def _judged(
    looked: _Looked, taught: Taught, shown: Sequence[tuple[str, bool]], policy: Policy, attempt: int
) -> GateReport:
    """Returns the gate's report; `shown` are the canaries."""
    return judge(
        candidate=looked.results,
        live=looked.live,
        new_slices=[key for key in looked.results if key.is_new],
        taught_pairs=taught.counts,
        canaries=shown,
        policy=policy,
        past=looked.past,
        attempts=attempt,
    )


def _is_claimed(report: GateReport, slices: Collection[HeldOut]) -> bool:
    """Whether what was learned stands, and old captions might have lost to pictures that show what they say."""
    learned = all(row.verdict is not Verdict.REJECT for row in report.rows if row.role == "new")
    is_open = report.policy.cross_fit and report.verdict is not Verdict.PROMOTE
    return learned and is_open and any(one.claimed for one in slices)


def attempts(workspace: Workspace, live: str) -> int:
    """Returns the number of the next look at a candidate for a live version: one more than those that were taken."""
    ended = [job.result for job in workspace.catalog.jobs() if job.kind == "update" and job.result]
    held = [one for one in ended if one.get("judged_against") == live and one.get("commit") is None]
    looks = [int((one.get("gate") or {}).get("attempts", 1)) for one in held]
    return 1 + max(len(held), *looks, 0)


def _measuring(slices: Collection[HeldOut]) -> str:
    by_view: dict[str, int] = {}
    for one in slices:
        by_view[one.view] = by_view.get(one.view, 0) + len(one.captions)
    counted = joined(
        (phrase("{count} {view}", count=count, view=view) for view, count in by_view.items()), ", "
    )
    return phrase(
        "{count} slices, captions by view: {views}",
        count=len({one.key for one in slices}),
        views=counted or phrase("none"),
    )
