"""Chunks: what one holds, what waits for a decision, and what became of a decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import computed_field

from app.desk.errors import UsageProblem
from ingest.findings import Example, Figure, Outcome
from ingest.records import AsidePair, ChunkRecord, JobRecord, QuestionedPair


@dataclass(frozen=True, slots=True)
class ShownExample(Example):
    """A pair that shows what a finding means, with the address of its picture."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def thumb_url(self) -> str:
        """Where its thumbnail is."""
        return f"/v1/images/{self.image_id}/thumbnail"


@dataclass(frozen=True)
class ShownFinding:
    """What one check of a chunk found."""

    check: str
    outcome: Outcome
    sentence: str
    figures: Mapping[str, Figure]
    examples: tuple[ShownExample, ...] = ()


@dataclass(frozen=True)
class Chunk(ChunkRecord):
    """A chunk: what it holds, what it counts for and since when by whom, its intake, what its checks found."""

    findings: tuple[ShownFinding, ...] = ()
    learned: tuple[str, ...] = ()  # releases that learned from it, oldest first
    # some of its pictures, spread over it, each with a caption while one of it counts
    samples: tuple[ShownExample, ...] = ()


@dataclass(frozen=True)
class Added:
    """What taking an upload in did."""

    chunk: Chunk  # as it is now
    report: Mapping[str, Any]  # of the intake, as `ingest.report.IntakeReport` writes it
    images_embedded: int  # how many pictures the image tower saw for it; others were known to it
    release: str | None = None  # that has them; None when nothing new went live
    job: str | None = None  # that took it in; None when it was done at once
    made_again: str = ""  # what was lost of the index before, for people; empty where nothing was


@dataclass(frozen=True, slots=True)
class ShownAside(AsidePair):
    """A held or rejected pair with the address of its picture."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def thumb_url(self) -> str:
        """Where its thumbnail is; for admins, as nobody has let it in."""
        return f"/v1/aside/{self.id}/thumbnail"


@dataclass(frozen=True, slots=True)
class ShownQuestioned(QuestionedPair):
    """A pair of the chunk that one of its checks names, with the address of its picture."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def thumb_url(self) -> str:
        """Where its thumbnail is."""
        return f"/v1/images/{self.image_id}/thumbnail"


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
    pair: ShownAside | None = None


@dataclass(frozen=True)
class Held:
    """What waits for a person's word: whole chunks by id, and the first of the rows; `total` counts all rows."""

    chunks: tuple[str, ...]
    total: int
    rows: tuple[HeldRow, ...]


@dataclass(frozen=True, slots=True)
class PutAside:
    """What a person may decide, pair by pair, of a chunk, and what was decided."""

    chunk: str  # its id
    counts: dict[str, int]  # as `AsideTable.counts` has them
    pairs: tuple[ShownAside, ...]  # of its upload that were held or rejected
    questioned: tuple[ShownQuestioned, ...] = ()  # of it that its checks name

    def of(self, which: str) -> list[ShownAside]:
        """Returns those that are `waiting`, `decided` or `rejected`."""
        if which == "rejected":
            return [pair for pair in self.pairs if pair.outcome == "rejected"]
        return [p for p in self.pairs if p.outcome == "held" and bool(p.decided) is (which == "decided")]


@dataclass(frozen=True)
class Withdrawn:
    """What became of a chunk that was withdrawn."""

    chunk: ChunkRecord  # as it stands now
    pictures: int  # that leave the gallery, because no other chunk has them
    learned: tuple[str, ...]  # releases that learned from it, oldest first
    # the newest release that was live and had not learned from it; None when what is live has not
    back_to: str | None
    sentence: str  # all of it, and what can be done, for people
    job: JobRecord | None = None  # that takes the pictures out of search; None where none has to go


@dataclass(frozen=True)
class NamedDomain:
    """What became of a domain that was named anew."""

    domain: str  # the name that its pictures have now
    pictures: int  # that were moved
    sentence: str  # what was done, and what the next update does with it
    job: JobRecord  # that makes search find them by what is known of their domain


@dataclass(frozen=True)
class Decided:
    """What a decision did."""

    chunk: ChunkRecord  # as it is now
    pairs: tuple[ShownAside, ...]  # that were decided, as they stand now
    new_pictures: int  # that joined the gallery's chunk and that search does not know yet
    has_changed: bool  # pairs joined the chunk or left it, so that its checks say something else of it
    sentence: str  # all of it, for people
    # that makes new pictures searchable and checks the chunk again; None where nothing follows
    job: JobRecord | None = None


def column_names(pairs: Iterable[str]) -> dict[str, str]:
    """Reads the `theirs=ours` pairs that an upload states.

    Raises:
        UsageProblem: one of them is not of that form.
    """
    mapping = {}
    for pair in pairs:
        theirs, equals, ours = pair.partition("=")
        if not (theirs.strip() and equals and ours.strip()):
            raise UsageProblem(f"map is like text=caption (your column, then ours); found {pair[:80]!r}.")
        mapping[theirs.strip()] = ours.strip()
    return mapping
