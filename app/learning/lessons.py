"""What an update teaches and what it is measured by: the chunk's pairs, a strategy with its memory, the slices."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.errors import ReleaseDamaged, UnknownRelease, UsageProblem
from app.learning.outcomes import Stage, UpdateRequest
from app.releases.manifest import SliceSummary
from app.releases.store import ReleaseRecord
from app.workspace import Workspace
from index.generation import Generation
from ingest.pair import Pair, SliceKey, Split
from ingest.records import ChunkRecord, Pin
from model_updates.batches import UpdateData, gather
from model_updates.encoder import Encoder, unit
from model_updates.evaluation import SliceResult
from model_updates.features import image_features
from model_updates.gate import GateReport
from model_updates.measurement import HeldOut
from model_updates.progress import TrainingProgress
from model_updates.strategies import strategy_named
from model_updates.strategy import BASE_LANGUAGE, Strategy, TrainingPair, UpdateContext, options_of
from model_updates.trainer import TrainingReport, run_update

logger = logging.getLogger(__name__)

CHECKPOINTS = "checkpoints"
BEST_VERSIONS = 2  # how many versions besides live are measured again for "best ever"
METRICS = ("t2i_r1", "t2i_r5", "t2i_r10")

Tell = Callable[[Stage], None]


@dataclass(frozen=True)
class Lesson:
    """One chunk made ready for one strategy.

    Attributes:
        chunk: its id.
        strategy: with its memory of earlier updates loaded.
        options: the strategy's options in effect.
        seed: of the update.
        train: pairs to learn from.
        validation: pairs that choose the epoch.
        taught: the slices this update is meant to improve.
        taught_languages: training pairs by language.
        languages_after: learned languages once it is live.
        parent: the release it starts from.
    """

    chunk: str
    strategy: Strategy
    options: dict[str, Any]
    seed: int
    train: tuple[TrainingPair, ...]
    validation: tuple[TrainingPair, ...]
    taught: frozenset[SliceKey]
    taught_languages: dict[str, int]
    languages_after: list[str]
    parent: ReleaseRecord


def choose_strategy(workspace: Workspace, chunk: str) -> tuple[str, str]:
    """Returns the default strategy for a chunk, and a sentence why.

    A chunk with a language the live release has not learned gets `language-tables`, which cannot forget; one in
    learned languages brings a new domain, and gets `c-clip`.
    """
    record = workspace.catalog.chunk(chunk)
    commit = workspace.releases.current()
    learned = (
        {BASE_LANGUAGE}
        if commit is None
        else set(workspace.releases.release(commit.release).manifest.languages)
    )
    new = sorted(set(record.languages) - learned)
    if new:
        return (
            "language-tables",
            f"{', '.join(new)} is new: it gets word rows of its own, so nothing known can be forgotten.",
        )
    domains = ", ".join(sorted(record.domains))
    return (
        "c-clip",
        f"the languages are known, so this teaches how {domains} pictures look; the gallery is embedded again.",
    )


def plan(workspace: Workspace, request: UpdateRequest, record: ReleaseRecord) -> Lesson:
    """Collects what an update needs and refuses what cannot work before anything runs.

    Raises:
        UnknownChunk, UnknownStrategy, BadStrategyOption: the sentence names what there is.
        UsageProblem: the chunk has no training pair.
    """
    chunk = workspace.catalog.chunk(request.chunk)
    name = request.strategy or choose_strategy(workspace, chunk.id)[0]
    kind = strategy_named(name)
    strategy = kind(options_of(kind, request.options))
    remembered = workspace.open_version(record.version).strategy_states.get(name)
    if remembered:
        strategy.load_state_dict(remembered)
    languages = _taught_languages(strategy, chunk, set(record.manifest.languages))
    train = _pairs(workspace, chunk, Split.TRAIN, languages)
    if not train:
        raise UsageProblem(
            f"Chunk {chunk.id} has no captioned picture to train on ({chunk.images} pictures, {chunk.pairs} pairs, "
            "none of them in the training split). Its pictures are searchable all the same."
        )
    counts: dict[str, int] = {}
    for pair in train:
        counts[pair.language] = counts.get(pair.language, 0) + 1
    taught = frozenset(SliceKey(pair.language, pair.domain) for pair in train)
    return Lesson(
        chunk=chunk.id,
        strategy=strategy,
        options=asdict(strategy.options),
        seed=request.seed,
        train=train,
        validation=_pairs(workspace, chunk, Split.VALIDATION, languages),
        taught=taught,
        taught_languages=counts,
        languages_after=_in_order(record, counts),
        parent=record,
    )


def learn(
    workspace: Workspace, lesson: Lesson, *, scratch: Path, progress: Tell
) -> tuple[Encoder, TrainingReport]:
    """Trains a copy of the live encoder on a lesson; checkpoints in `scratch` make an interrupted one go on."""
    version = workspace.open_version(lesson.parent.version)
    candidate = version.encoder.copy().to(_device(workspace.settings.device))
    root = str(version.manifest.get("root") or lesson.parent.version)
    context = UpdateContext(
        encoder=candidate,
        pairs=lesson.train,
        learned_languages=frozenset(lesson.parent.manifest.languages),
        open_anchor=lambda: workspace.open_encoder(root),
        open_previous=lambda: workspace.open_encoder(lesson.parent.version),
        seed=lesson.seed,
        update_number=1 + len(lesson.parent.manifest.chunks),
        load_image=workspace.load_image,
        open_earlier=lambda: earlier_pairs(workspace, lesson.parent),
    )

    def data() -> UpdateData:
        progress(
            Stage(
                "features", f"{len(lesson.train)} pairs to learn from, {len(lesson.validation)} to validate"
            )
        )
        return gather(
            lesson.train,
            lesson.validation,
            strategy=lesson.strategy,
            context=context,
            load_image=workspace.load_image,
            cache=workspace.features,
        )

    report = run_update(
        lesson.strategy,
        context,
        data,
        checkpoints=scratch / CHECKPOINTS,
        progress=lambda step: progress(_as_stage(step)),
    )
    return candidate.to("cpu"), report


def earlier_pairs(workspace: Workspace, release: ReleaseRecord) -> tuple[TrainingPair, ...]:
    """Returns the training pairs of the chunks that a release has learned, oldest first, for strategies that replay."""
    learned = set(release.manifest.languages)
    chunks = [workspace.catalog.chunk(chunk) for chunk in release.manifest.chunks]
    return tuple(pair for chunk in chunks for pair in _pairs(workspace, chunk, Split.TRAIN, learned))


def held_out(workspace: Workspace, languages: set[str]) -> list[HeldOut]:
    """Returns every slice of the languages with today's held-out pairs, each among its domain's held-out pictures."""
    galleries: dict[str, tuple[str, ...]] = {}
    slices = []
    for key in workspace.catalog.slices():
        if key.language in languages:
            if key.domain not in galleries:
                galleries[key.domain] = tuple(workspace.catalog.test_images(key.domain))
            pairs = workspace.catalog.pairs(language=key.language, domain=key.domain, split=Split.TEST)
            captions = tuple((pair.image_id, pair.text) for pair in pairs)
            slices.append(HeldOut(key, galleries[key.domain], captions))
    return slices


def best_versions(
    workspace: Workspace, slices: list[HeldOut], live: ReleaseRecord
) -> dict[str, set[SliceKey]]:
    """Returns which earlier versions were best at which slices, as their releases recorded it; live left out."""
    best: dict[SliceKey, tuple[float, str]] = {}
    wanted = {held.key for held in slices}
    for commit in workspace.releases.history():
        record = readable(workspace, commit.release)
        if record is None:
            continue
        for summary in record.manifest.slices:
            key = SliceKey(summary.language, summary.domain)
            score = sum(summary.recalls[metric] for metric in METRICS)
            if key in wanted and score > best.get(key, (-1.0, ""))[0]:
                best[key] = (score, record.version)
    by_version: dict[str, set[SliceKey]] = {}
    for key, (_, version) in best.items():
        if version != live.version:
            by_version.setdefault(version, set()).add(key)
    chosen = sorted(by_version, key=lambda version: -len(by_version[version]))[:BEST_VERSIONS]
    return {version: by_version[version] for version in chosen}


def readable(workspace: Workspace, release: str) -> ReleaseRecord | None:
    """Returns a release of the past, or None when it is damaged: what is live must not suffer from it."""
    try:
        return workspace.releases.release(release)
    except (ReleaseDamaged, UnknownRelease) as error:
        logger.warning("a release of the past is left out: %s", error)
        return None


def canaries(workspace: Workspace, candidate: Encoder, live: ReleaseRecord) -> list[tuple[str, bool]]:
    """Returns each pinned query that live answers with the pinned picture, and whether the candidate does too.

    Pins that live itself no longer keeps, because better pictures came, say nothing about the candidate. With a
    changed image tower the live gallery's vectors say nothing; the pins are then looked up among the pinned
    pictures and the held-out ones, which the measurement has embedded already.
    """
    pins = workspace.catalog.pins()
    if not pins:
        return []
    generation: Generation = workspace.open_generation(live.generation)
    before = workspace.open_encoder(live.version)
    if generation.fingerprint == candidate.image_fingerprint:
        ids = list(generation.ids)
        old = new = generation.vectors(ids)
    else:
        tests = [i for domain in workspace.catalog.domains() for i in workspace.catalog.test_images(domain)]
        ids = list(dict.fromkeys([*(pin.image_id for pin in pins), *tests]))
        old, new = (
            unit(image_features(encoder, ids, workspace.load_image, workspace.features))
            for encoder in (before, candidate)
        )

    def keeps(encoder: Encoder, vectors: NDArray[np.float32], pin: Pin) -> bool:
        query = encoder.encode_texts([pin.query], pin.language)[0]
        return ids[int((vectors @ query).argmax())] == pin.image_id

    return [(pin.query, keeps(candidate, new, pin)) for pin in pins if keeps(before, old, pin)]


def summaries(results: Mapping[SliceKey, SliceResult]) -> tuple[SliceSummary, ...]:
    """Returns what a release's manifest says of each slice."""
    return tuple(
        SliceSummary(
            language=key.language,
            domain=key.domain,
            images=result.captioned_images,
            captions=len(result.text_ranks),
            recalls={name: round(value, 3) for name, value in result.recalls().items()},
        )
        for key, result in sorted(results.items())
    )


def training_json(report: TrainingReport) -> dict[str, Any]:
    """Returns a training report as plain values."""
    return asdict(report) | {"history": list(report.history), "notes": list(report.notes)}


def first_reason(report: GateReport) -> str:
    """Returns the reason that decided the verdict."""
    deciding = [rule for rule in report.rules if rule.verdict == report.verdict]
    reasons = [reason for rule in deciding for reason in rule.reasons] or list(report.reasons)
    return reasons[0] if reasons else ""


def _taught_languages(strategy: Strategy, chunk: ChunkRecord, learned: set[str]) -> set[str]:
    """Returns the languages of a chunk that an update teaches.

    Where a text-only strategy finds new languages, captions in learned ones are there to stand beside them (the
    triples of CLL-CLIP): training on those too could only disturb what is known.
    """
    new = set(chunk.languages) - learned
    return new if new and not strategy.touches_image else set(chunk.languages)


def _pairs(
    workspace: Workspace, chunk: ChunkRecord, split: Split, languages: set[str]
) -> tuple[TrainingPair, ...]:
    found: list[Pair] = workspace.catalog.pairs(chunk=chunk.id, split=split)
    pairs = [pair for pair in found if pair.language in languages]
    english = workspace.catalog.captions_in(BASE_LANGUAGE, {pair.image_id for pair in pairs})
    seen: dict[str, int] = {}
    complete = []
    for pair in pairs:
        texts = english.get(pair.image_id, [])
        turn = seen.get(pair.image_id, 0)  # several captions of a picture meet its English ones in turn
        seen[pair.image_id] = turn + 1
        beside = (
            pair.text if pair.language == BASE_LANGUAGE else (texts[turn % len(texts)] if texts else None)
        )
        complete.append(TrainingPair(pair.image_id, pair.text, pair.language, pair.domain, beside))
    return tuple(complete)


def _as_stage(step: TrainingProgress) -> Stage:
    done = (step.epoch - 1 + step.step / max(1, step.steps)) / step.epochs
    return Stage(
        "train",
        f"epoch {step.epoch} of {step.epochs}, {step.pairs_per_second:.0f} pairs/s, {step.seconds_left:.0f} s left",
        done,
        asdict(step),
    )


def _in_order(record: ReleaseRecord, taught: Mapping[str, int]) -> list[str]:
    known = list(record.manifest.languages)
    return known + sorted(set(taught) - set(known))


def _device(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
