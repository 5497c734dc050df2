"""Candidates in the shadow of what is live: since when, and sums of how far their answers lie from the live ones."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from sqlalchemy import insert, select, update

from ingest.dialect import upsert
from ingest.engines import writing
from ingest.jobs import now
from ingest.tables import TableQueries, columns_of, record_table

_KEYS = ("release", "against", "language")


@dataclass(frozen=True, slots=True)
class ShadowRecord:
    """A release that was, or is, asked a share of the live queries."""

    id: int  # grows with time
    release: str  # its id
    share: float  # of the live queries, above 0 and up to 1
    started: str  # ISO 8601 in UTC
    by: str  # who started it
    stopped: str = ""  # ISO 8601 in UTC; empty while it goes on
    stopped_by: str = ""  # who ended it
    why: str = ""  # the reason for ending it
    dropped: int = 0  # queries of the share that it was not asked, because the server had no time for them


@dataclass(frozen=True, slots=True)
class ShadowCount:
    """Sums over the queries in one language that a release and a live version both got."""

    release: str  # in the shadow
    against: str  # the version that was live
    language: str  # of the queries; `und` where nobody can tell, empty of those without words
    queries: int = 0  # both answered
    refused: int = 0  # the release in the shadow could not answer
    overlap: float = 0.0  # sum of the shares of hits in common
    same_first: int = 0  # how often both showed the same picture first
    moved: float = 0.0  # sum of the places that pictures stood apart, of each query the mean
    stronger: int = 0  # how often its best hit was worth more than the live one
    weaker: int = 0  # how often it was worth less
    seconds: float = 0.0  # sum of what it took
    seconds_live: float = 0.0  # sum of what the live release took


SUMS = tuple(field.name for field in fields(ShadowCount) if field.name not in _KEYS)

shadows = record_table("shadows", ShadowRecord, said=["why"])
shadow_counts = record_table("shadow_counts", ShadowCount, keys=_KEYS)


class ShadowTable(TableQueries):
    """Shadows in the catalog's database."""

    def start(self, release: str, *, share: float, by: str) -> ShadowRecord | None:
        """Puts a release into the shadow; returns None, and changes nothing, when one is there."""
        values = {"release": release, "share": share, "started": now(), "by": by}
        with writing(self._engine) as connection:
            if connection.execute(select(shadows.c.seq).where(shadows.c.stopped == "")).first() is not None:
                return None
            seq = connection.execute(insert(shadows).values(**values).returning(shadows.c.seq)).scalar_one()
        return ShadowRecord(id=seq, release=release, share=share, started=str(values["started"]), by=by)

    def stop(self, release: str, *, by: str, why: str) -> bool:
        """Ends the shadow of a release; returns whether it was in one."""
        values = {"stopped": now(), "stopped_by": by, "why": why}
        statement = update(shadows).where(shadows.c.release == release, shadows.c.stopped == "")
        with writing(self._engine) as connection:
            return bool(connection.execute(statement.values(**values)).rowcount)

    def active(self) -> ShadowRecord | None:
        """Returns the shadow that goes on, if there is one."""
        return next((one for one in self.all() if not one.stopped), None)

    def all(self) -> list[ShadowRecord]:
        """Returns every shadow, newest first."""
        query = select(*columns_of(shadows, ShadowRecord)).order_by(shadows.c.seq.desc())
        return [ShadowRecord(*row) for row in self._rows(query)]

    def add(self, counts: Sequence[ShadowCount], *, shadow: int, dropped: int = 0) -> None:
        """Adds to the sums, and to what a shadow was not asked, in one transaction.

        `shadow` is the id of the shadow to which the dropped queries belong.
        """
        if not counts and not dropped:
            return
        statement = upsert(shadow_counts)
        added = {name: shadow_counts.c[name] + statement.excluded[name] for name in SUMS}
        adding = statement.on_conflict_do_update(index_elements=list(_KEYS), set_=added)
        with writing(self._engine) as connection:
            if counts:
                connection.execute(adding, [asdict(one) for one in counts])
            if dropped:
                more = update(shadows).where(shadows.c.seq == shadow)
                connection.execute(more.values(dropped=shadows.c.dropped + dropped))

    def counts(self, release: str) -> list[ShadowCount]:
        """Returns the sums of a release, by version that was live and language."""
        query = select(*columns_of(shadow_counts, ShadowCount)).where(shadow_counts.c.release == release)
        query = query.order_by(shadow_counts.c.against, shadow_counts.c.language)
        return [ShadowCount(*row) for row in self._rows(query)]
