"""One cell of the benchmark: one strategy taught one sequence with one seed, measured after every step."""

from __future__ import annotations

import json
import resource
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from app.bench.material import HELD_OUT, Lesson, Material, chunk_named, material_of
from app.bench.matrix import Looked, look_up
from app.bench.overlay import Overlay
from app.bench.pictures import resized_once
from app.bench.segmentation import Segmentation
from app.bench.sequence import LIVE, BenchSequence, Compared
from app.learning.domains import domains_known_to
from app.learning.going_live import live_release
from app.learning.pairs import reference_pairs
from app.workspace import Workspace
from model_updates import drift, zero_shot
from model_updates.batches import gather
from model_updates.batches import sampled as sampled_pairs
from model_updates.encoder import Encoder
from model_updates.features import FeatureCache, LoadImage
from model_updates.opening import base_languages, drawn_anew, open_encoder
from model_updates.options import options_of
from model_updates.pairs import TrainingPair, UpdateData
from model_updates.prospect import Prospect
from model_updates.references import REFERENCES
from model_updates.strategies import strategy_named
from model_updates.strategy import State, Strategy, UpdateContext
from model_updates.trainer import TrainingReport, run_update

DRIFT_PAIRS = 400
VALIDATED_PAIRS = 400
"""By which what trains on everything so far chooses its epoch, at least."""
DRIFTS = ("sam_pictures", "sam_texts", "ram_pictures", "ram_texts", "imam_text_to_image")


@dataclass(frozen=True)
class StepRecord:
    """What one step cost and said.

    Attributes:
        name: of the step.
        seconds: of the update, measuring left out.
        cpu_seconds: processor time of the update over all its threads: what else the machine does is no part of it.
        pairs: that were taught, of the chunk alone.
        stored_bytes: what the strategy carries, and what the encoder grew by, since the base.
        image_forwards: pictures that ran through the image tower while it trained.
        re_embedded: pictures of the sequence whose vectors changed.
        refused: why the strategy had nothing to do; "" when it ran.
        validation: score of the kept epoch, percent; None without validation pairs.
        notes: the strategy's own.
        drift: mean angles in degrees between the encoders before and after, on held-out pairs known before (see
            `model_updates.drift`); empty where there were none.
        resegmented: share of the captions of earlier steps that are cut into other tokens than when they were taught,
            percent; None where there are none.
    """

    name: str
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    pairs: int = 0
    stored_bytes: int = 0
    image_forwards: int = 0
    re_embedded: int = 0
    refused: str = ""
    validation: float | None = None
    notes: tuple[str, ...] = ()
    drift: Mapping[str, float] = field(default_factory=dict)
    resegmented: float | None = None


@dataclass
class Line:
    """The encoder of a cell as it goes through its steps.

    Attributes:
        base: what it started from.
        encoder: as it is now.
        load: decodes a picture by id, at the size that its tower takes.
        languages: learned so far, in order.
        carried: what each strategy keeps, by its name.
        taught: the pairs of every step so far, after those that the base knows.
        validation: by step, the pairs that choose the epoch.
        updates: so far.
    """

    base: Encoder
    encoder: Encoder
    load: LoadImage
    languages: list[str]
    carried: dict[str, State] = field(default_factory=dict)
    taught: list[tuple[TrainingPair, ...]] = field(default_factory=list)
    validation: list[tuple[TrainingPair, ...]] = field(default_factory=list)
    updates: int = 0


@dataclass(frozen=True)
class Clock:
    """A moment: seconds on the wall, and of processor time that this process has used."""

    wall: float
    processor: float

    @classmethod
    def now(cls) -> Clock:
        """Returns this moment."""
        return cls(time.monotonic(), time.process_time())


@dataclass(frozen=True)
class CellResult:
    """Everything one cell found.

    Attributes:
        material: what was taught and measured.
        steps: what each cost.
        looked: after each step, the base (0) included, how each slice known by then was ranked.
        peak_bytes: most memory that the process held.
        probe: accuracy on the probe before the first step and after each, percent; empty without one.
        cpu_seconds: processor time of the whole cell, measuring included.
    """

    material: Material
    steps: tuple[StepRecord, ...]
    looked: tuple[tuple[Looked, ...], ...]
    peak_bytes: int
    probe: tuple[float, ...] = ()
    cpu_seconds: float = 0.0


def run_cell(
    workspace: Workspace, sequence: BenchSequence, compared: Compared, seed: int, *, threads: int = 1
) -> CellResult:
    """Runs a strategy through a sequence.

    Args:
        workspace: opened for reading; nothing is written to it.
        sequence: what is taught and measured.
        compared: the strategy and its options.
        seed: of orders, parts and every random choice.
        threads: of torch.

    Raises:
        UsageProblem, BadStrategyOption, UnknownStrategy: it cannot be run at all.
    """
    began = Clock.now()
    torch.set_num_threads(threads)
    material = material_of(workspace, sequence, seed)
    cache = Overlay(workspace.features)
    line = _start(workspace, sequence, seed)
    line.taught.append(material.known)

    def look(step: int) -> tuple[Looked, ...]:
        name = compared.name
        return look_up(line.load, line.encoder, line.languages, sequence, material, step, cache, name)

    looked, probed = [look(0)], _probed(line, material, cache)
    segmentation = Segmentation(material)
    segmentation.after(line.encoder, 0)
    steps = []
    for number, lesson in enumerate(material.lessons, start=1):
        before = line.encoder
        record = _teach(workspace, sequence, compared, lesson, line, material, cache, seed)
        drifted = _drift(line, before, material, number, cache)
        steps.append(replace(record, drift=drifted, resegmented=segmentation.after(line.encoder, number)))
        looked.append(look(number))
        probed += _probed(line, material, cache)
        cache.forget_but(
            _fingerprints(line.encoder, line.languages) | _fingerprints(line.base, line.languages)
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    took = Clock.now().processor - began.processor
    return CellResult(material, tuple(steps), tuple(looked), peak, tuple(probed), round(took, 1))


def _probed(line: Line, material: Material, cache: FeatureCache) -> list[float]:
    """Returns the accuracy on the probe, percent, or nothing where there is no probe."""
    if material.probe is None:
        return []
    return [round(zero_shot.measure(line.encoder, material.probe, line.load, cache).accuracy, 2)]


def _drift(
    line: Line,
    before: Encoder,
    material: Material,
    number: int,
    cache: FeatureCache,
) -> dict[str, float]:
    """Returns how far a step has turned what was known before it, mean angles in degrees."""
    known = [one for one in material.slices if one.kind == HELD_OUT and one.since < number and not one.unseen]
    pairs = [
        TrainingPair(image_id, text, one.key.language, one.key.domain)
        for one in known
        for image_id, text in one.captions
    ]
    chosen = sampled_pairs(pairs, DRIFT_PAIRS)
    if before is line.encoder or len(chosen) < 2:
        return {}
    sides = [drift.embedded(encoder, chosen, line.load, cache) for encoder in (before, line.encoder)]
    found = drift.drift(*sides)
    means = {name: getattr(found, name).mean for name in DRIFTS}
    return {name: round(mean, 3) for name, mean in means.items() if mean is not None}


def _start(workspace: Workspace, sequence: BenchSequence, seed: int) -> Line:
    if sequence.encoder == LIVE:
        record = live_release(workspace)[1]
        base = workspace.open_encoder(record.version)
        languages = list(record.manifest.languages)
    else:
        base = open_encoder(sequence.encoder)
        languages = list(base_languages(sequence.encoder))
    if sequence.scratch:
        base = drawn_anew(base, seed)
    return Line(base, base, resized_once(workspace.load_image, base.preprocessing), languages)


def _teach(
    workspace: Workspace,
    sequence: BenchSequence,
    compared: Compared,
    lesson: Lesson,
    line: Line,
    material: Material,
    cache: FeatureCache,
    seed: int,
) -> StepRecord:
    """Runs one update on the line, or says why it has nothing to do."""
    began = Clock.now()
    line.validation.append(lesson.validation)
    strategy = _strategy(sequence, compared, lesson, line)
    if strategy is None:
        return StepRecord(lesson.name)
    prospect = Prospect(
        encoder=line.encoder,
        languages=frozenset(pair.language for pair in lesson.train),
        domains=frozenset(pair.domain for pair in lesson.train),
        learned_languages=frozenset(line.languages),
        learned_domains=frozenset(line.encoder.image_routes),
    )
    refused = strategy.fits(prospect)
    if refused is not None:
        line.taught.append(lesson.train)
        return StepRecord(lesson.name, refused=refused)
    candidate = line.encoder.copy()
    domains = domains_known_to(workspace, line.encoder, line.languages, lesson.train, cache)
    train = tuple(strategy.taught(lesson.train, set(line.languages), domains))
    context = _context(workspace, line, candidate, train, domains, seed)

    def data(frozen: UpdateContext) -> UpdateData:
        return gather(
            train,
            _validation(strategy, line),
            strategy=strategy,
            context=frozen,
            load_image=line.load,
            cache=cache,
            watch_known=sequence.watch_known,
        )

    report = run_update(strategy, context, data)
    line.carried[strategy.name] = strategy.carried()
    moved = _moved(line.encoder, candidate, material)
    line.encoder, line.updates = candidate, line.updates + 1
    line.languages += sorted({pair.language for pair in train} - set(line.languages))
    line.taught.append(lesson.train)
    return _record(lesson, report, line, moved, began)


def _validation(strategy: Strategy, line: Line) -> tuple[TrainingPair, ...]:
    """Returns the pairs that choose the epoch: the newest chunk's, and where all chunks are trained on, those of all.

    The newest chunk alone has two dozen pictures, among which an encoder that has hardly begun finds its way.
    """
    newest = line.validation[-1]
    if not strategy.trains_on_all:
        return newest
    everything = dict.fromkeys(pair for pairs in line.validation for pair in pairs)
    return tuple(sampled_pairs(list(everything), max(len(newest), VALIDATED_PAIRS)))


def _strategy(sequence: BenchSequence, compared: Compared, lesson: Lesson, line: Line) -> Strategy | None:
    """Returns the strategy of a step with what it carries; None for a reference that learns nothing."""
    name = lesson.step.strategy or compared.name
    if name in REFERENCES:
        return None
    kind = strategy_named(name)
    given = dict(lesson.step.options if lesson.step.strategy else sequence.options_of(compared))
    if not lesson.step.strategy:
        shared = {"epochs": sequence.epochs, "batch_size": sequence.batch_size}
        known = kind.Options.__dataclass_fields__
        given = {name: value for name, value in shared.items() if value and name in known} | given
    strategy = kind(options_of(kind, given))
    if name in line.carried:
        kept = line.carried[name]
        if kept.tensors or kept.facts:
            strategy.carry(kept)
    return strategy


def _context(
    workspace: Workspace,
    line: Line,
    candidate: Encoder,
    train: tuple[TrainingPair, ...],
    domains: frozenset[str],
    seed: int,
) -> UpdateContext:
    ours = {(pair.image_id, pair.language) for pair in train}
    earlier = tuple(pair for pairs in line.taught for pair in pairs)
    known = sorted(
        (pair for pair in dict.fromkeys(earlier) if (pair.image_id, pair.language) not in ours),
        key=lambda pair: (pair.image_id, pair.language, pair.text),
    )
    previous, base = line.encoder, line.base
    return UpdateContext(
        encoder=candidate,
        pairs=train,
        learned_languages=frozenset(line.languages),
        open_anchor=lambda: base,
        open_previous=lambda: previous,
        learned_domains=domains,
        seed=seed,
        update_number=1 + line.updates,
        load_image=line.load,
        open_earlier=lambda: earlier,
        open_known=lambda: tuple(known),
        open_reference=lambda chunk: reference_pairs(workspace, chunk_named(workspace, chunk)),
    )


def _moved(before: Encoder, after: Encoder, material: Material) -> int:
    """Returns how many pictures of the sequence the two encoders give different vectors."""
    counted: dict[str, int] = {}
    for domain in material.domains.values():
        counted[domain] = counted.get(domain, 0) + 1
    return sum(
        count
        for domain, count in counted.items()
        if before.image_fingerprint(before.image_route(domain))
        != after.image_fingerprint(after.image_route(domain))
    )


def _record(lesson: Lesson, report: TrainingReport, line: Line, moved: int, began: Clock) -> StepRecord:
    now = Clock.now()
    return StepRecord(
        lesson.name,
        seconds=round(now.wall - began.wall, 2),
        cpu_seconds=round(now.processor - began.processor, 2),
        pairs=report.training_pairs,
        stored_bytes=_stored(line),
        image_forwards=report.image_forwards,
        re_embedded=moved,
        validation=report.validation,
        notes=report.notes,
    )


def _stored(line: Line) -> int:
    """Returns the bytes of what strategies carry and of what the encoder has gained since the base."""
    size = _tensor_bytes(line.encoder.state()) - _tensor_bytes(line.base.state())
    for state in line.carried.values():
        size += _tensor_bytes(state.tensors) + len(json.dumps(state.facts, default=str).encode())
    return size


def _tensor_bytes(tensors: Mapping[str, Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())


def _fingerprints(encoder: Encoder, languages: Sequence[str]) -> set[str]:
    routes = ("", *encoder.image_routes)
    return (
        {encoder.text_fingerprint(language) for language in languages}
        | {encoder.trunk_fingerprint(route) for route in routes}
        | {encoder.image_fingerprint(route) for route in routes}
    )
