"""Examining a small chunk: each of its pairs is looked up by a copy of the candidate that had not learned it.

Five copies are trained, each without a fifth of the chunk's things, and thrown away; what the copies had as held-out
pairs the candidate still never sees. Only an update that moved nothing known is worth it: what it can cost is then
known without (`model_updates.gate.examined`).
"""

import gc
import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from app.desk.jobs import Stage
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.lessons import Lesson
from app.learning.outcomes import Tell
from app.learning.pairs import chunk_pairs
from app.learning.past import side_of
from app.learning.training import trained
from app.learning.yardstick import Yardstick, is_probe
from ingest.pair import SliceKey, Split
from ingest.sentence import phrase
from model_updates.encoder import Encoder
from model_updates.evaluation import SliceResult, View
from model_updates.features import Overlay
from model_updates.gate.examined import FEWEST_THINGS, FOLDS, CrossFitted
from model_updates.gate.report import GateReport, Policy, Verdict
from model_updates.measurement import HeldOut, Measured, Results, Side, measure_views
from model_updates.pairs import Fold, TrainingPair
from model_updates.routes import BASE
from model_updates.strategy import Foresight, Strategy


def is_undecided(report: GateReport) -> bool:
    """Whether a person would decide, and twice as many held-out things as the policy asks for are not there."""
    few = (row.role == "new" and row.images < 2 * report.policy.minimum_images for row in report.rows)
    unseen = not any(row.role == "new" for row in report.rows)
    return report.policy.cross_fit and report.verdict is Verdict.REVIEW and (unseen or any(few))


def is_examined(
    slices: Sequence[HeldOut],
    train: Sequence[TrainingPair],
    strategy: Strategy,
    foreseen: Foresight,
    record: ReleaseRecord,
    policy: Policy,
) -> bool:
    """Whether an update would be examined, as far as that can be foreseen: `slices` are what it would be judged by."""
    taught = [one for one in slices if one.is_new and one.view is View.OWN and one.captions]
    enough = taught and all(len(set(one.groups)) >= policy.minimum_images for one in taught)
    known, learned = {one.key.domain for one in slices if not one.is_new}, record.manifest.languages
    moved = (foreseen.domains or known) if foreseen.moves_pictures else frozenset()
    new_words = any(pair.language in learned and pair.domain not in moved for pair in train)
    return (
        policy.cross_fit
        and not (enough or strategy.can_forget or new_words or moved & known)
        and len({pair.image_id for pair in train}) >= FEWEST_THINGS
    )


def nothing_known_moved(
    live: Side, candidate: Side, languages: Collection[str], slices: Collection[HeldOut]
) -> bool:
    """Whether every known language and route, and every domain that old slices are of, has the fingerprint it had."""
    old, new = live.encoder, candidate.encoder
    routes = {(route, route) for route in (BASE, *old.image_routes)}
    domains = {one.key.domain for one in slices if not one.is_new}
    routes |= {(old.image_route(domain), new.image_route(domain)) for domain in domains}
    return all(old.text_fingerprint(tag) == new.text_fingerprint(tag) for tag in languages) and all(
        old.image_fingerprint(before) == new.image_fingerprint(after) for before, after in routes
    )


def folds_of(workspace: Workspace, lesson: Lesson) -> list[Fold]:
    """Returns what each copy learns and is examined on; none where too few things were uploaded to decide.

    Every pair of a taught slice is examined once. The pairs that the candidate chose its epoch by choose the copies'.
    """
    chunk = workspace.catalog.chunk(lesson.chunk)
    learned = set(lesson.parent.manifest.languages)
    held = chunk_pairs(workspace, chunk, Split.TEST, set(chunk.languages))
    held = tuple(lesson.strategy.taught(held, learned, lesson.known_domains)) if held else ()
    train = (*lesson.train, *(pair for pair in held if SliceKey(pair.language, pair.domain) in lesson.taught))
    groups = workspace.catalog.groups({pair.image_id for pair in (*train, *lesson.validation)})
    things = sorted(set(groups.values()), key=_hash)
    if len(things) < FEWEST_THINGS:
        return []
    number = {thing: n % FOLDS for n, thing in enumerate(things)}

    def part(pairs: Sequence[TrainingPair], fold: int, *, left_out: bool) -> tuple[TrainingPair, ...]:
        return tuple(pair for pair in pairs if (number[groups[pair.image_id]] == fold) is left_out)

    return [
        Fold(
            part(train, fold, left_out=False),
            part(lesson.validation, fold, left_out=False),
            part((*train, *lesson.validation), fold, left_out=True),
        )
        for fold in range(FOLDS)
    ]


def examine(workspace: Workspace, lesson: Lesson, progress: Tell) -> tuple[CrossFitted, ...]:
    """Trains the copies one after another, has each look for what it did not learn, and returns slices by view."""
    record, folds = lesson.parent, folds_of(workspace, lesson)
    generation = workspace.open_generation(record.generation)
    live = workspace.open_encoder(record.version)
    slices = Yardstick(workspace, record, lesson.chunk).folds(record.manifest.languages, folds)
    found: dict[Measured, list[tuple[SliceResult, SliceResult]]] = {}

    def tell(done: float) -> None:
        said = phrase("{count} copies are examined on pairs they have not learned", count=len(folds))
        progress(Stage("examine", said, done / max(1, len(folds))))

    def train(fold: Fold) -> Encoder:
        own = replace(lesson, strategy=lesson.again(workspace), train=fold.train, validation=fold.validation)
        # Pairs that wait to be learned count as known: the fold's own, and others of its pictures, may not here.
        apart = {pair.image_id for pair in fold.examined}
        return trained(
            workspace, own, apart=apart, progress=lambda step: tell(folds.index(fold) + step.done)
        ).encoder

    for number, (copy, asked) in enumerate(zip(lesson.strategy.copies(folds, train), slices, strict=True)):
        before = side_of(workspace, live, record.manifest.languages, asked, generation)
        known = measure_views(before, asked, workspace.load_image, workspace.features)
        cache = Overlay(workspace.features)
        after = side_of(workspace, copy, lesson.languages_after, asked, generation, cache)
        results = measure_views(after, asked, workspace.load_image, cache, known=(before, known))
        for key in results:
            found.setdefault(key, []).append((results[key], known[key]))
        del copy, after  # before the next is trained: an encoder is hundreds of megabytes, and lies in cycles
        gc.collect()
        tell(number + 1)
    return tuple(_pooled(parts) for _, parts in sorted(found.items()))


def _pooled(parts: Sequence[tuple[SliceResult, SliceResult]]) -> CrossFitted:
    """Joins the folds of one slice in one view: each caption with the rank it has in its own fold's gallery."""
    ids = tuple(dict.fromkeys(i for one, _ in parts for i in one.image_ids))
    place = {image_id: n for n, image_id in enumerate(ids)}

    def joined(which: int) -> SliceResult:
        results = [part[which] for part in parts]
        nothing = np.empty(0, dtype=np.int64)
        own = [place[one.image_ids[int(n)]] for one in results for n in one.caption_image]
        return replace(
            results[0],
            image_ids=ids,
            caption_image=np.asarray(own, dtype=np.int64),
            text_ranks=np.concatenate([one.text_ranks for one in results]),
            image_ranks=nothing,
            image_rank_image=nothing,
            caption_group=tuple(group for one in results for group in one.clusters),
        )

    return CrossFitted(joined(0), joined(1), min(len(one.image_ids) for one, _ in parts))


def among_everything(
    results: Results, live: Results, slices: Collection[HeldOut], *, probes: bool
) -> list[tuple[SliceResult, SliceResult]]:
    """Returns (candidate, live) of every old slice that looks among pictures of everything, or of the drawn probes."""
    drawn = {one.key for one in slices if is_probe(one)}
    keys = [key for key in results if not key.is_new and key.view is not View.OWN]
    return [(results[key], live[key]) for key in keys if (key.key in drawn) is probes]


def _hash(thing: str) -> str:
    # Of its own: splits and samples follow from other hashes of the same names.
    return hashlib.sha256(f"fold {thing}".encode()).hexdigest()
