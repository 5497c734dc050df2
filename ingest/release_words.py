"""What people said of releases: kept or rejected with a note, pinned or unpinned; nothing is ever taken away."""

from dataclasses import dataclass

from sqlalchemy import insert, select

from ingest.engines import writing
from ingest.errors import BadOption
from ingest.jobs import now
from ingest.sentence import phrase
from ingest.tables import TableQueries, columns_of, record_table

JUDGEMENTS = ("kept", "rejected")
PINS = ("pinned", "unpinned")


@dataclass(frozen=True, slots=True)
class ReleaseWord:
    """One person's word on a release."""

    id: int  # grows with time
    created: str  # ISO 8601 in UTC
    release: str  # its id
    said: str  # one of `JUDGEMENTS` or of `PINS`
    by: str  # who said so
    why: str  # in that person's words


release_words = record_table("release_words", ReleaseWord)


class ReleaseWordTable(TableQueries):
    """Words on releases in the catalog's database."""

    def say(self, release: str, said: str, *, by: str, why: str) -> ReleaseWord:
        """Keeps a word.

        Raises:
            BadOption: it is none of those that there are, or nobody said it, or a rejection has no reason.
        """
        known = (*JUDGEMENTS, *PINS)
        if said not in known:
            raise BadOption(f"{said[:40]!r} is no word on a release; use one of {', '.join(known)}.")
        if not by.strip():
            raise BadOption(f"A release is {said} by somebody's word: say whose.")
        if said == "rejected" and not why.strip():
            raise BadOption(phrase("A release is rejected for a reason: say why."))
        values = {"created": now(), "release": release, "said": said, "by": by.strip(), "why": why.strip()}
        with writing(self._engine) as connection:
            seq = connection.execute(insert(release_words).values(**values).returning(release_words.c.seq))
            return ReleaseWord(int(seq.scalar_one()), **values)

    def all(self) -> list[ReleaseWord]:
        """Returns every word, newest first."""
        query = select(*columns_of(release_words, ReleaseWord)).order_by(release_words.c.seq.desc())
        return [ReleaseWord(*row) for row in self._rows(query)]
