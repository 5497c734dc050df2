"""The pairs that an update learns from, as strategies want them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.yardstick import usable_chunks
from ingest.pair import BASE_LANGUAGE, Pair, Split
from ingest.records import ChunkRecord
from ingest.standing import WITHDRAWN
from model_updates.pairs import TrainingPair
from model_updates.strategy import UpdateContext

Read = dict[tuple[Any, ...], Any]
"""What an update was told of the catalog, by what it asked."""


def chunk_pairs(
    workspace: Workspace, chunk: ChunkRecord, split: Split, languages: set[str]
) -> tuple[TrainingPair, ...]:
    """Returns a chunk's pairs of one split in some languages, each beside an English caption if there is one."""
    found: list[Pair] = workspace.catalog.pairs(chunk=chunk.id, split=split)
    chunks = usable_chunks(workspace) | {chunk.id}
    return beside_english(workspace, [pair for pair in found if pair.language in languages], chunks)


def beside_english(
    workspace: Workspace, pairs: Sequence[Pair], chunks: Collection[str]
) -> tuple[TrainingPair, ...]:
    """Returns pairs as strategies want them, with an English caption of the same picture where some chunks have one.

    An English caption stands beside itself.
    """
    ids = {pair.image_id for pair in pairs}
    english = workspace.catalog.captions_in(BASE_LANGUAGE, ids, chunks=chunks)
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


def earlier_pairs(workspace: Workspace, release: ReleaseRecord) -> tuple[TrainingPair, ...]:
    """Returns the training pairs of the chunks that a release has learned, oldest first, for strategies that replay.

    Those of withdrawn chunks are left out.
    """
    learned = set(release.manifest.languages)
    records = (workspace.catalog.chunk(chunk) for chunk in release.manifest.chunks)
    chunks = [record for record in records if record.standing != WITHDRAWN]
    return tuple(pair for chunk in chunks for pair in chunk_pairs(workspace, chunk, Split.TRAIN, learned))


def counted_places(workspace: Workspace, pairs: Sequence[TrainingPair]) -> list[int]:
    """Returns the places of the pairs that still count: nobody withdrew their chunk or took them out."""
    ids: dict[str, set[str]] = {}
    for pair in pairs:
        ids.setdefault(pair.language, set()).add(pair.image_id)
    said = {language: workspace.catalog.captions_in(language, own) for language, own in ids.items()}
    return [n for n, pair in enumerate(pairs) if pair.text in said[pair.language].get(pair.image_id, ())]


def known_pairs(
    workspace: Workspace, release: ReleaseRecord, taught: Collection[TrainingPair]
) -> tuple[TrainingPair, ...]:
    """Returns training pairs that an update does not teach, in the languages that a release has learned.

    What people find today: learned by an update or known to the base encoder. Of a picture that the update teaches,
    its captions in other languages are still known, and can be forgotten. Ordered by picture, language and text;
    chunks that wait for a person's word, or were rejected, stay out.
    """
    ours = {(pair.image_id, pair.language) for pair in taught}
    learned = set(release.manifest.languages)
    chunks = usable_chunks(workspace, release)
    found: list[Pair] = workspace.catalog.pairs(split=Split.TRAIN, chunks=chunks)
    pairs = [
        pair for pair in found if pair.language in learned and (pair.image_id, pair.language) not in ours
    ]
    ordered = sorted(pairs, key=lambda pair: (pair.image_id, pair.language, pair.text))
    return beside_english(workspace, ordered, chunks)


def reference_pairs(workspace: Workspace, chunk: str) -> tuple[TrainingPair, ...]:
    """Returns all training pairs of a chunk, in the gallery or not, for methods that distil on reference data.

    Raises:
        UnknownChunk: there is none of that id.
    """
    record = workspace.catalog.chunk(chunk)
    return chunk_pairs(workspace, record, Split.TRAIN, set(record.languages))


def read_once(context: UpdateContext, read: Read) -> UpdateContext:
    """Returns a context that asks the catalog for each thing once, and takes from `read` what was asked before.

    What a cluster trains is ended by another process, maybe hours later. Both have to know the same, or the one could
    not go on from the checkpoint of the other.
    """

    def once(name: str, ask: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*about: Any) -> Any:
            key = (name, *(one if isinstance(one, str) else tuple(one) for one in about))
            if key not in read:
                read[key] = ask(*about)
            return read[key]

        return asked

    return replace(
        context,
        open_earlier=once("earlier", context.open_earlier),
        open_known=once("known", context.open_known),
        open_reference=once("reference", context.open_reference),
        still_counted=once("counted", context.still_counted),
    )
