"""Filters: which pictures of the gallery a query may find, by what the catalog knows of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from app.desk.errors import BadQuery
from ingest.captions import normalise_language
from ingest.catalog import Catalog
from ingest.sentence import phrase


@dataclass(frozen=True)
class Filters:
    """What a picture must be to be found; an empty one asks nothing. All that are given must hold."""

    languages: tuple[str, ...] = ()  # captioned in one of these
    domains: tuple[str, ...] = ()  # of one of these
    chunks: tuple[str, ...] = ()  # brought by one of these, by id or its beginning
    since: date | None = None  # taken in on this day (UTC) or later
    until: date | None = None  # taken in on this day (UTC) or earlier
    caption: str = ""  # one of its captions has all these words, the last perhaps only begun

    def __bool__(self) -> bool:
        return self != Filters()

    def allowed(self, catalog: Catalog) -> set[str] | None:
        """Returns the pictures that may be found; None means all.

        Raises:
            BadQuery: the days are in the wrong order, or no picture is of a domain.
            UnknownChunk, UnknownLanguage: there is no such chunk, or no such language at all.
        """
        if not self:
            return None
        if self.since and self.until and self.since > self.until:
            raise BadQuery(
                phrase(
                    "Nothing is from {since} on and until {until}. Exchange the two days.",
                    since=self.since,
                    until=self.until,
                )
            )
        known = catalog.domains() if self.domains else {}
        unknown = [name for name in self.domains if name not in known]
        if unknown:
            there = ", ".join(known) or "none"
            raise BadQuery(f"No picture is of the domain {unknown[0][:80]!r}. Domains here: {there}.")
        return catalog.ids_where(
            languages=[normalise_language(tag) for tag in self.languages] or None,
            domains=list(self.domains) or None,
            chunks=[catalog.chunk(one).id for one in self.chunks] or None,
            since=self.since,
            until=self.until,
            caption=self.caption.strip() or None,
        )
