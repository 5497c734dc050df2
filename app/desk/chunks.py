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
    """A chunk: what it holds, what it counts for and since when by whom, its intake, what its checks found.

    Attributes:
        learned: releases that learned from it, oldest first.
        samples: some of its pictures, spread over it, each with a caption while one of it counts.
    """

    findings: tuple[ShownFinding, ...] = ()
    learned: tuple[str, ...] = ()
    samples: tuple[ShownExample, ...] = ()


@dataclass(frozen=True)
class Added:
    """What taking an upload in did.

    Attributes:
        chunk: as it is now.
        report: of the intake, as `ingest.report.IntakeReport` writes it.
        images_embedded: how many pictures are searchable now that were not before.
        release: that has them; None when nothing new went live.
        job: that took it in; None when it was done at once.
    """

    chunk: Chunk
    report: Mapping[str, Any]
    images_embedded: int
    release: str | None = None
    job: str | None = None


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
    """What a person may decide, pair by pair, of a chunk, and what was decided.

    Attributes:
        chunk: its id.
        counts: as `AsideTable.counts` has them.
        pairs: of its upload that were held or rejected.
        questioned: of it that its checks name.
    """

    chunk: str
    counts: dict[str, int]
    pairs: tuple[ShownAside, ...]
    questioned: tuple[ShownQuestioned, ...] = ()

    def of(self, which: str) -> list[ShownAside]:
        """Returns those that are `waiting`, `decided` or `rejected`."""
        if which == "rejected":
            return [pair for pair in self.pairs if pair.outcome == "rejected"]
        return [p for p in self.pairs if p.outcome == "held" and bool(p.decided) is (which == "decided")]


@dataclass(frozen=True)
class Withdrawn:
    """What became of a chunk that was withdrawn.

    Attributes:
        chunk: as it stands now.
        pictures: that leave the gallery, because no other chunk has them.
        learned: releases that learned from it, oldest first.
        back_to: the newest release that was live and had not learned from it; None when what is live has not.
        sentence: all of it, and what can be done, for people.
        job: that takes the pictures out of search; None where none has to go.
    """

    chunk: ChunkRecord
    pictures: int
    learned: tuple[str, ...]
    back_to: str | None
    sentence: str
    job: JobRecord | None = None


@dataclass(frozen=True)
class Decided:
    """What a decision did.

    Attributes:
        chunk: as it is now.
        pairs: that were decided, as they stand now.
        new_pictures: that joined the gallery's chunk and that search does not know yet.
        has_changed: pairs joined the chunk or left it, so that its checks say something else of it.
        sentence: all of it, for people.
        job: that makes new pictures searchable and checks the chunk again; None where nothing follows.
    """

    chunk: ChunkRecord
    pairs: tuple[ShownAside, ...]
    new_pictures: int
    has_changed: bool
    sentence: str
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
