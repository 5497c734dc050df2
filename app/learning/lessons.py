"""Planning a lesson: which strategy teaches which pairs of a chunk to which release."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from app.desk.errors import UsageProblem
from app.desk.jobs import UpdateRequest
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.domains import known_domains
from app.learning.fitting import misfit
from app.learning.pairs import chunk_pairs
from app.learning.standing import require_teachable
from app.learning.yardstick import usable_chunks
from ingest.pair import BASE_LANGUAGE, SliceKey, Split
from ingest.sentence import joined, phrase
from model_updates.errors import StrategyMisfit
from model_updates.options import options_of
from model_updates.pairs import TrainingPair
from model_updates.strategies import DEFAULT_STRATEGY, strategy_named
from model_updates.strategy import Strategy


@dataclass(frozen=True)
class Lesson:
    """One chunk made ready for one strategy."""

    chunk: str  # its id
    strategy: Strategy  # with its memory of earlier updates loaded
    options: dict[str, Any]  # the strategy's options in effect
    seed: int  # of the update
    train: tuple[TrainingPair, ...]  # pairs to learn from
    validation: tuple[TrainingPair, ...]  # pairs that choose the epoch
    taught: dict[SliceKey, int]  # training pairs of the slices this update is meant to improve
    languages_after: list[str]  # learned languages once it is live
    parent: ReleaseRecord  # the release it starts from
    # domains of the chunk that the parent's encoder knows (see `domains.known_domains`)
    known_domains: frozenset[str] = frozenset()
    number: int = 1  # of the update in its line, from 1
    # how many pairs each chunk has whose pairs may stand beside those taught, by its id
    beside: Mapping[str, int] = field(default_factory=dict)

    def again(self, workspace: Workspace) -> Strategy:
        """Returns a fresh strategy as this one was before it taught."""
        strategy = type(self.strategy)(self.strategy.options)
        remembered = workspace.carried(self.parent.version, strategy.name)
        if remembered is not None:
            strategy.carry(remembered)
        return strategy


def choose_strategy(workspace: Workspace, chunk: str) -> tuple[str, str]:
    """Returns the default strategy for a chunk, and a sentence why: `evergreen`, and what it will teach."""
    record = workspace.catalog.chunk(chunk)
    commit = workspace.releases.current()
    release = None if commit is None else workspace.releases.release(commit.release)
    learned = {BASE_LANGUAGE} if release is None else set(release.manifest.languages)
    adapted = set() if release is None else set(workspace.open_encoder(release.version).image_routes)
    languages = sorted(set(record.languages) - learned)
    domains = sorted(record.domains)
    brings = []
    if languages:
        brings.append(
            phrase("{languages} is new and gets word rows of its own", languages=", ".join(languages))
        )
    if set(record.languages) & learned:
        names = ", ".join(domains)
        if set(domains) <= adapted:
            brings.append(phrase("the image adapter of {domains} goes on learning", domains=names))
        else:
            brings.append(
                phrase(
                    "{domains} gets an image adapter of its own if its pictures look new, and new "
                    "words get rows",
                    domains=names,
                )
            )
    return DEFAULT_STRATEGY, phrase("{why}: nothing known can change.", why=joined(brings, "; "))


def plan(
    workspace: Workspace,
    request: UpdateRequest,
    record: ReleaseRecord,
    known: frozenset[str] | None = None,
) -> Lesson:
    """Collects what an update needs and refuses what cannot work before anything runs.

    `known` are the domains of the chunk that the parent knows, where that was measured before.

    Raises:
        UnknownChunk, UnknownStrategy, BadStrategyOption: the sentence names what there is.
        StrategyMisfit: the strategy has nothing to do with the chunk, or cannot work on the encoder.
        ChunkHeld: the chunk waits for a person's word, or was withdrawn.
        UsageProblem: the chunk has no training pair.
    """
    chunk = workspace.catalog.chunk(request.chunk)
    require_teachable(chunk)
    name = request.strategy or choose_strategy(workspace, chunk.id)[0]
    kind = strategy_named(name)
    strategy = kind(options_of(kind, request.options))
    remembered = workspace.carried(record.version, name)
    if remembered is not None:
        strategy.carry(remembered)
    reason = misfit(workspace, chunk, strategy, record)
    if reason is not None:
        raise StrategyMisfit(reason)
    learned = set(record.manifest.languages)
    everything = chunk_pairs(workspace, chunk, Split.TRAIN, set(chunk.languages))
    domains = known_domains(workspace, record, everything) if known is None else known
    train = tuple(strategy.taught(everything, learned, domains))
    if not train:
        raise UsageProblem(
            f"Chunk {chunk.id} has no captioned picture to train on ({chunk.images} pictures, {chunk.pairs} pairs, "
            "none of them in the training split). Its pictures are searchable all the same."
        )
    taught = dict(Counter(SliceKey(pair.language, pair.domain) for pair in train))
    validation = chunk_pairs(workspace, chunk, Split.VALIDATION, set(chunk.languages))
    return Lesson(
        chunk=chunk.id,
        strategy=strategy,
        options=asdict(strategy.options),
        seed=request.seed,
        train=train,
        validation=tuple(p for p in validation if SliceKey(p.language, p.domain) in taught),
        taught=taught,
        languages_after=_in_order(record, {key.language for key in taught}),
        parent=record,
        known_domains=domains,
        number=1 + len(record.manifest.chunks),
        beside=_beside(workspace),
    )


def _beside(workspace: Workspace) -> dict[str, int]:
    usable = usable_chunks(workspace)
    return {chunk.id: chunk.pairs for chunk in workspace.catalog.chunks(reports=False) if chunk.id in usable}


def _in_order(record: ReleaseRecord, taught: Collection[str]) -> list[str]:
    known = list(record.manifest.languages)
    return known + sorted(set(taught) - set(known))
