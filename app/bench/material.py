"""What a sequence teaches and what it measures: pairs and slices, from the chunks of a home."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.bench.sequence import BenchSequence, Choice, SequenceStep, step_name
from app.desk.errors import UsageProblem
from app.home.workspace import Workspace
from app.learning.pairs import beside_english
from ingest.errors import UnknownChunk
from ingest.pair import Pair, SliceKey, Split
from model_updates.pairs import TrainingPair
from model_updates.zero_shot import Probe

TRAINED = "trained"
"""Captions that were taught, looked up among all pictures that were: what is remembered."""
HELD_OUT = "held-out"
"""Captions of pictures that never train in any step: what generalises."""
KINDS = (TRAINED, HELD_OUT)


@dataclass(frozen=True)
class StepLesson:
    """What one step teaches."""

    step: SequenceStep  # as the sequence says it
    name: str  # of the step
    train: tuple[TrainingPair, ...]  # pairs to learn from
    validation: tuple[TrainingPair, ...]  # pairs that choose the epoch


@dataclass(frozen=True)
class Slice:
    """Captions that are looked up after every step from the one that taught them on."""

    key: SliceKey  # language and domain
    kind: str  # `TRAINED` or `HELD_OUT`
    since: int  # number of the step that taught it, from 1; 0 for what is known from the start
    captions: tuple[tuple[str, str], ...]  # (image id, text)
    english: tuple[str, ...]  # an English caption beside each, "" where there is none
    groups: tuple[str, ...]  # the group of each caption's picture
    unseen: bool = False  # whether no step teaches its domain

    @property
    def digest(self) -> str:
        """The sha256 (hex) of its captions: results are compared only where it agrees."""
        return hashlib.sha256(repr((self.kind, self.captions)).encode()).hexdigest()


@dataclass(frozen=True)
class Material:
    """All that a run of a sequence with one seed uses."""

    lessons: tuple[StepLesson, ...]  # in order
    # training pairs of what the encoder knows before the first step, where the sequence says what that is
    known: tuple[TrainingPair, ...]
    slices: tuple[Slice, ...]  # every slice of every step, each once, by the step that taught it
    # by kind and step number (0 for the base), the pictures that it brings
    galleries: dict[tuple[str, int], tuple[str, ...]]
    domains: dict[str, str]  # of every picture
    groups: dict[str, str]  # of every picture
    probe: Probe | None = None  # pictures to classify, None where the sequence has none

    @property
    def digest(self) -> str:
        """The sha256 (hex) of all pairs that are taught and looked up; a picture's id is that of its bytes."""
        taught = [(lesson.name, lesson.train, lesson.validation) for lesson in self.lessons]
        said = (taught, self.known, [one.digest for one in self.slices], self.probe)
        return hashlib.sha256(repr(said).encode()).hexdigest()

    def gallery(self, kind: str, until: int | None = None) -> tuple[str, ...]:
        """Returns the pictures of a kind that the steps up to one bring, all steps' when None; each once."""
        steps = [
            ids
            for (of, step), ids in self.galleries.items()
            if of == kind and (until is None or step <= until)
        ]
        return tuple(dict.fromkeys(image_id for ids in steps for image_id in ids))


def material_of(workspace: Workspace, sequence: BenchSequence, seed: int) -> Material:
    """Collects what a sequence teaches and measures.

    Raises:
        UsageProblem: a step names a chunk that is not there, or has no pair to teach.
    """
    collected = _Collector(workspace, sequence, seed)
    for choice, unseen in ((sequence.base, False), (sequence.unseen, True)):
        if choice is not None:
            collected.measured(sequence.filled(choice), 0, unseen=unseen)
    lessons = []
    for number, step in enumerate(sequence.ordered(seed), start=1):
        lessons.append(collected.lesson(step))
        collected.measured(step, number)
    return collected.material(lessons, collected.probe())


class _Collector:
    """Gathers slices, each set of captions once."""

    def __init__(self, workspace: Workspace, sequence: BenchSequence, seed: int) -> None:
        self._workspace, self._sequence, self._seed = workspace, sequence, seed
        self._slices: dict[str, Slice] = {}
        self._galleries: dict[tuple[str, int], tuple[str, ...]] = {}
        self._domains: dict[str, str] = {}
        self._groups: dict[str, str] = {}
        self._chunks = [chunk.id for chunk in workspace.catalog.chunks()]
        self._read: dict[tuple[str, Split], list[Pair]] = {}

    def lesson(self, step: SequenceStep) -> StepLesson:
        name = step_name(step)
        train = self._beside(self._pairs(step, Split.TRAIN))
        if len(train) < 2:
            raise UsageProblem(
                f"Step {name!r} has {len(train)} training pairs; a step needs at least 2. "
                "Look at its chunks, languages and domains."
            )
        return StepLesson(step, name, train, self._beside(self._pairs(step, Split.VALIDATION)))

    def measured(self, choice: Choice, number: int, *, unseen: bool = False) -> None:
        for kind, split in ((TRAINED, Split.TRAIN), (HELD_OUT, Split.TEST)):
            if unseen and kind == TRAINED:
                continue
            pairs = self._pairs(choice, split)
            self._galleries[kind, number] = (
                *self._galleries.get((kind, number), ()), *dict.fromkeys(pair.image_id for pair in pairs)
            )  # fmt: skip
            self._domains |= {pair.image_id: pair.domain for pair in pairs}
            keys = sorted({SliceKey(pair.language, pair.domain) for pair in pairs})
            for key in keys:
                own = [pair for pair in pairs if (pair.language, pair.domain) == (key.language, key.domain)]
                self._add(key, kind, number, own, unseen=unseen)

    def probe(self) -> Probe | None:
        choice = self._sequence.probe
        if choice is None:
            return None
        pairs = self._pairs(self._sequence.filled(choice), Split.TEST)
        if len({pair.text for pair in pairs}) < 2:
            raise UsageProblem(
                f"The probe has {len(pairs)} held-out pictures and fewer than 2 classes; "
                "its captions are the names of the classes."
            )
        classes = tuple(sorted({pair.text for pair in pairs}))
        self._domains |= {pair.image_id: pair.domain for pair in pairs}
        return Probe(
            step_name(choice) or "probe",
            tuple(pair.image_id for pair in pairs),
            tuple(classes.index(pair.text) for pair in pairs),
            classes,
            language=pairs[0].language,
            domain=pairs[0].domain,
        )

    def material(self, lessons: Sequence[StepLesson], probe: Probe | None) -> Material:
        base = self._sequence.base
        known = () if base is None else self._beside(self._pairs(self._sequence.filled(base), Split.TRAIN))
        slices = tuple(self._slices.values())
        return Material(tuple(lessons), known, slices, self._galleries, self._domains, self._groups, probe)

    def _add(self, key: SliceKey, kind: str, number: int, pairs: Sequence[Pair], *, unseen: bool) -> None:
        # In an order of their own: that in which intake takes pairs is no part of what a slice is.
        ordered = sorted(pairs, key=lambda pair: (pair.image_id, pair.text))
        chosen = sampled(pairs, self._sequence.trained) if kind == TRAINED else ordered
        self._groups |= self._workspace.catalog.groups(
            {pair.image_id for pair in pairs} - self._groups.keys()
        )
        beside = self._beside(chosen)
        one = Slice(
            key,
            kind,
            number,
            tuple((pair.image_id, pair.text) for pair in chosen),
            tuple(pair.english or "" for pair in beside),
            tuple(self._groups.get(pair.image_id, pair.image_id) for pair in chosen),
            unseen,
        )
        self._slices.setdefault(one.digest, one)

    def _pairs(self, choice: Choice, split: Split) -> list[Pair]:
        found: list[Pair] = []
        for chunk in choice.chunks or self._chunks:
            found += self._of_chunk(chunk, split)
        chosen = [
            pair
            for pair in dict.fromkeys(found)
            if (not choice.languages or pair.language in choice.languages)
            and (not choice.domains or pair.domain in choice.domains)
        ]
        if isinstance(choice, SequenceStep) and split is not Split.TEST:
            one, of = choice.share
            return [pair for pair in chosen if part_of(pair.image_id, of, self._seed) == one]
        return chosen

    def _of_chunk(self, chunk: str, split: Split) -> list[Pair]:
        """Returns a chunk's pairs; read once, since every step of a sequence may ask for its part of the same chunk."""
        if (chunk, split) not in self._read:
            named = chunk_named(self._workspace, chunk)
            self._read[chunk, split] = self._workspace.catalog.pairs(chunk=named, split=split)
        return self._read[chunk, split]

    def _beside(self, pairs: Sequence[Pair]) -> tuple[TrainingPair, ...]:
        return beside_english(self._workspace, pairs, self._chunks)


def chunk_named(workspace: Workspace, said: str) -> str:
    """Returns the id of the chunk with a name or id, an archive's with or without its ending; of several the latest.

    Raises:
        UsageProblem: there is none; the sentence lists those there are.
    """
    named = [chunk.id for chunk in workspace.catalog.chunks() if said in {chunk.name, Path(chunk.name).stem}]
    if named:
        return named[-1]
    try:
        return workspace.catalog.chunk(said).id
    except UnknownChunk as error:
        known = sorted({chunk.name for chunk in workspace.catalog.chunks() if chunk.in_gallery})
        raise UsageProblem(
            f"No chunk has the id or name {said!r}; this home has: {', '.join(known) or 'none'}."
        ) from error


def part_of(image_id: str, parts: int, seed: int) -> int:
    """Returns which of so many random parts a picture belongs to, from 1."""
    return 1 + int(hashlib.sha256(f"part:{seed}:{image_id}".encode()).hexdigest(), 16) % parts


def sampled(pairs: Iterable[Pair], count: int) -> list[Pair]:
    """Returns up to so many pairs, one a picture, those whose hashes are lowest."""
    one_each = {pair.image_id: pair for pair in pairs}
    return sorted(one_each.values(), key=lambda pair: hashlib.sha256(pair.image_id.encode()).hexdigest())[
        :count
    ]
