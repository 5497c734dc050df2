"""Planning a lesson: which strategy teaches which pairs of a chunk to which release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from app.errors import UsageProblem
from app.learning.fitting import misfit
from app.learning.outcomes import UpdateRequest
from app.learning.pairs import chunk_pairs
from app.releases.store import ReleaseRecord
from app.workspace import Workspace
from ingest.pair import BASE_LANGUAGE, SliceKey, Split
from ingest.records import ChunkRecord
from model_updates.errors import StrategyMisfit
from model_updates.options import options_of
from model_updates.pairs import TrainingPair
from model_updates.strategies import strategy_named
from model_updates.strategy import Strategy


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
        number: of the update in its line, from 1.
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
    number: int = 1


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
        StrategyMisfit: the strategy has nothing to do with the chunk, or cannot work on the encoder.
        UsageProblem: the chunk has no training pair.
    """
    chunk = workspace.catalog.chunk(request.chunk)
    name = request.strategy or choose_strategy(workspace, chunk.id)[0]
    kind = strategy_named(name)
    strategy = kind(options_of(kind, request.options))
    remembered = workspace.carried(record.version, name)
    if remembered is not None:
        strategy.carry(remembered)
    reason = misfit(workspace, chunk, strategy, record)
    if reason is not None:
        raise StrategyMisfit(reason)
    languages = _taught_languages(strategy, chunk, set(record.manifest.languages))
    train = chunk_pairs(workspace, chunk, Split.TRAIN, languages)
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
        validation=chunk_pairs(workspace, chunk, Split.VALIDATION, languages),
        taught=taught,
        taught_languages=counts,
        languages_after=_in_order(record, counts),
        parent=record,
        number=1 + len(record.manifest.chunks),
    )


def _taught_languages(strategy: Strategy, chunk: ChunkRecord, learned: set[str]) -> set[str]:
    """Returns the languages of a chunk that an update teaches.

    Where a text-only strategy finds new languages, captions in learned ones are there to stand beside them (the
    triples of CLL-CLIP): training on those too could only disturb what is known.
    """
    new = set(chunk.languages) - learned
    return new if new and not strategy.touches_image else set(chunk.languages)


def _in_order(record: ReleaseRecord, taught: Mapping[str, int]) -> list[str]:
    known = list(record.manifest.languages)
    return known + sorted(set(taught) - set(known))
