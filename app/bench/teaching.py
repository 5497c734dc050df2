"""One step of a cell: the encoder as it goes through a sequence, and the update that teaches it the next chunk."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.bench.caches import resized_once
from app.bench.material import Material, StepLesson, chunk_named
from app.bench.sequence import LIVE, BenchSequence, StrategyRun
from app.home.workspace import Workspace
from app.learning.domains import domains_known_to
from app.learning.going_live import live_release
from app.learning.pairs import reference_pairs
from model_updates.batches import gather
from model_updates.batches import sampled as sampled_pairs
from model_updates.embedded import base_languages
from model_updates.encoder import Encoder
from model_updates.features import FeatureCache, LoadImage
from model_updates.opening import drawn_anew, open_encoder
from model_updates.options import options_of
from model_updates.pair_sets import UpdateData
from model_updates.pairs import TrainingPair
from model_updates.prospect import Prospect
from model_updates.references import REFERENCES
from model_updates.strategies import strategy_named
from model_updates.strategy import State, Strategy, UpdateContext
from model_updates.trainer import run_update

VALIDATED_PAIRS = 400
"""By which what trains on everything so far chooses its epoch, at least."""


@dataclass(frozen=True)
class StepRecord:
    """What one step cost and said."""

    name: str  # of the step
    seconds: float = 0.0  # of the update, measuring left out
    # processor time of the update over all its threads: what else the machine does is no part of it
    cpu_seconds: float = 0.0
    pairs: int = 0  # that were taught, of the chunk alone
    stored_bytes: int = 0  # what the strategy carries, and what the encoder grew by, since the base
    image_forwards: int = 0  # pictures that ran through the image tower while it trained
    re_embedded: int = 0  # pictures of the sequence whose vectors changed
    refused: str = ""  # why the strategy had nothing to do; "" when it ran
    validation: float | None = None  # score of the kept epoch, percent; None without validation pairs
    notes: tuple[str, ...] = ()  # the strategy's own
    # mean angles in degrees between the encoders before and after, on held-out pairs known before (see
    # `model_updates.drift`); empty where there were none
    drift: Mapping[str, float] = field(default_factory=dict)
    # share of the captions of earlier steps that are cut into other tokens than when they were taught, percent; None
    # where there are none
    resegmented: float | None = None


@dataclass
class Line:
    """The encoder of a cell as it goes through its steps."""

    base: Encoder  # what it started from
    encoder: Encoder  # as it is now
    load: LoadImage  # decodes a picture by id, at the size that its tower takes
    languages: list[str]  # learned so far, in order
    carried: dict[str, State] = field(default_factory=dict)  # what each strategy keeps, by its name
    # the pairs of every step so far, after those that the base knows
    taught: list[tuple[TrainingPair, ...]] = field(default_factory=list)
    # by step, the pairs that choose the epoch
    validation: list[tuple[TrainingPair, ...]] = field(default_factory=list)
    updates: int = 0  # so far


def clock() -> tuple[float, float]:
    """Returns this moment: seconds on the wall, and of processor time that this process has used."""
    return time.monotonic(), time.process_time()


def start(workspace: Workspace, sequence: BenchSequence, seed: int) -> Line:
    """Returns the line of a cell before its first step, at the live release or a named encoder."""
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


def teach(
    workspace: Workspace,
    sequence: BenchSequence,
    compared: StrategyRun,
    lesson: StepLesson,
    line: Line,
    material: Material,
    cache: FeatureCache,
    seed: int,
) -> StepRecord:
    """Runs one update on the line, or says why it has nothing to do."""
    wall, processor = clock()
    line.validation.append(lesson.validation)
    strategy = _strategy(sequence, compared, lesson, line)
    if strategy is None:
        return StepRecord(lesson.name)
    refused = strategy.fits(
        Prospect(
            encoder=line.encoder,
            languages=frozenset(pair.language for pair in lesson.train),
            domains=frozenset(pair.domain for pair in lesson.train),
            learned_languages=frozenset(line.languages),
            learned_domains=frozenset(line.encoder.image_routes),
        )
    )
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
            validation_pairs(strategy, line),
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
    wall_now, processor_now = clock()
    return StepRecord(
        lesson.name,
        seconds=round(wall_now - wall, 2),
        cpu_seconds=round(processor_now - processor, 2),
        pairs=report.training_pairs,
        stored_bytes=_stored(line),
        image_forwards=report.image_forwards,
        re_embedded=moved,
        validation=report.validation,
        notes=report.notes,
    )


def validation_pairs(strategy: Strategy, line: Line) -> tuple[TrainingPair, ...]:
    """Returns the pairs that choose the epoch: the newest chunk's, and where all chunks are trained on, those of all.

    The newest chunk alone has two dozen pictures, among which an encoder that has hardly begun finds its way.
    """
    newest = line.validation[-1]
    if not strategy.trains_on_all:
        return newest
    everything = dict.fromkeys(pair for pairs in line.validation for pair in pairs)
    return tuple(sampled_pairs(list(everything), max(len(newest), VALIDATED_PAIRS)))


def _strategy(
    sequence: BenchSequence, compared: StrategyRun, lesson: StepLesson, line: Line
) -> Strategy | None:
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
    kept = line.carried.get(name)
    if kept is not None and (kept.tensors or kept.facts):
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
    return sum(
        count
        for domain, count in Counter(material.domains.values()).items()
        if before.image_fingerprint(before.image_route(domain))
        != after.image_fingerprint(after.image_route(domain))
    )


def _stored(line: Line) -> int:
    """Returns the bytes of what strategies carry and of what the encoder has gained since the base."""
    size = _tensor_bytes(line.encoder.state()) - _tensor_bytes(line.base.state())
    for state in line.carried.values():
        size += _tensor_bytes(state.tensors) + len(json.dumps(state.facts, default=str).encode())
    return size


def _tensor_bytes(tensors: Mapping[str, Any]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors.values())
