"""Judging a candidate: measured beside what is live and versions before it, then the gate."""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from app.desk.jobs import Stage, counted
from app.home.store import ReleaseRecord
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
from model_updates.gate.examined import CrossFitted
from model_updates.gate.next_steps import next_steps
from model_updates.gate.report import Policy
from model_updates.gate.rules import GateReport, judge, judge_small
from model_updates.measurement import HeldOut, Results, measure_views


@dataclass(frozen=True)
class Taught:
    """What a candidate was taught."""

    chunk: str  # id of the chunk
    slices: Collection[SliceKey]  # those it is meant to be better at
    pairs: Mapping[str, int]  # training pairs by language
    languages: tuple[str, ...]  # learned once it is live, in the order of learning
    version: str = ""  # its id, "" when it has none yet
    strategy: str = ""  # by which it was taught


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
    slices = Yardstick(workspace, record, taught.chunk).slices(record.manifest.languages, taught.slices)
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
    progress(Stage("gate", phrase("judging what was learned and what was kept")))
    report = judge(
        candidate=results,
        live=live,
        new_slices=[key for key in results if key.is_new],
        taught_languages=taught.pairs,
        canaries=canaries(workspace, candidate, record),
        policy=policy,
        past=past,
        attempts=attempts(workspace, record.version),
    )
    examined: Sequence[CrossFitted] = ()
    if is_undecided(report) and nothing_known_moved(live_side, side, record.manifest.languages, slices):
        examined = examine()
    if examined:
        report = judge_small(report, examined, among_everything(results, live), taught.pairs)
    advised = next_steps(report, taught.strategy, examined)
    return with_examples(workspace, advised, slices, live, results, side), results


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
