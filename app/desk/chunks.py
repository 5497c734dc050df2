"""Chunks: what waits for a decision, and what became of a decision."""

from __future__ import annotations

from dataclasses import dataclass

from ingest.records import AsidePair, ChunkRecord, QuestionedPair


@dataclass(frozen=True, slots=True)
class HeldRow:
    """A row of an upload that intake did not take, because a person has to decide; where it stood, and why.

    `pair` is what was kept of it, None where nothing was: there was no room, or an earlier Perennial held it.
    """

    chunk: str
    name: str
    where: str
    code: str
    sentence: str
    pair: AsidePair | None = None


@dataclass(frozen=True, slots=True)
class PutAside:
    """What a person may decide, pair by pair, of a chunk, and what was decided.

    Attributes:
        chunk: its id.
        counts: as `AsideTable.counts` has them.
        pairs: of its upload that were held or rejected.
        questioned: of it that its checks name.
    """

    chunk: str
    counts: dict[str, int]
    pairs: tuple[AsidePair, ...]
    questioned: tuple[QuestionedPair, ...] = ()

    def of(self, which: str) -> list[AsidePair]:
        """Returns those that are `waiting`, `decided` or `rejected`."""
        if which == "rejected":
            return [pair for pair in self.pairs if pair.outcome == "rejected"]
        return [p for p in self.pairs if p.outcome == "held" and bool(p.decided) is (which == "decided")]


@dataclass(frozen=True, slots=True)
class OneThing:
    """Pictures of one thing: near-copies of one another, or stated to be so by an upload. They count once."""

    id: str
    images: tuple[str, ...]


@dataclass(frozen=True)
class Withdrawn:
    """What became of a chunk that was withdrawn.

    Attributes:
        chunk: as it stands now.
        pictures: that leave the gallery, because no other chunk has them.
        learned: releases that learned from it, oldest first.
        back_to: the newest release that was live and had not learned from it; None when what is live has not.
        sentence: all of it, and what can be done, for people.
    """

    chunk: ChunkRecord
    pictures: int
    learned: tuple[str, ...]
    back_to: str | None
    sentence: str


@dataclass(frozen=True)
class Decided:
    """What a decision did.

    Attributes:
        chunk: as it is now.
        pairs: that were decided, as they stand now.
        new_pictures: that joined the gallery's chunk and that search does not know yet.
        has_changed: pairs joined the chunk or left it, so that its checks say something else of it.
        sentence: all of it, for people.
    """

    chunk: ChunkRecord
    pairs: tuple[AsidePair, ...]
    new_pictures: int
    has_changed: bool
    sentence: str
