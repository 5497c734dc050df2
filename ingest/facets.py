"""Facets: how many of some pictures are of each domain, language, year and folder."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Unpack

from sqlalchemy import ColumnElement, FromClause, distinct, func, select

from ingest.dialect import values_of
from ingest.pair import ImageId
from ingest.schema import captions, images
from ingest.selection import Conditions, images_where
from ingest.sources import sources
from ingest.tables import TableQueries

MOST = 100
"""Values of a facet; the most frequent ones."""


@dataclass(frozen=True)
class FacetValue:
    """A value, and how many pictures have it."""

    value: str
    count: int


@dataclass(frozen=True)
class Facets:
    """The values of each facet, the most frequent first; years newest first."""

    domains: tuple[FacetValue, ...]
    languages: tuple[FacetValue, ...]  # of captions
    years: tuple[FacetValue, ...]  # in which they were taken
    folders: tuple[FacetValue, ...] = ()  # in which their files lie, as absolute paths


class FacetQueries(TableQueries):
    """The part of `Catalog` that counts."""

    def facets(
        self, *, folders: bool, ids: Collection[ImageId] | None = None, **given: Unpack[Conditions]
    ) -> Facets:
        """Counts the gallery's pictures for which all conditions hold, of some where `ids` says so.

        `folders` says whether those are told, too.
        """
        there: list[ColumnElement[bool]] = [images.c.in_gallery]
        if given:
            there.append(images.c.id.in_(images_where(given)))
        if ids is not None:
            there.append(images.c.id.in_(values_of(ids)))
        pictures = select(images.c.seq, images.c.id, images.c.domain, images.c.taken).where(*there).subquery()
        spoken = captions.c.image == pictures.c.seq
        year = func.substr(pictures.c.taken, 1, 4)
        years = self._counted(year, pictures, year != "")
        # All up to the last stroke: what is cut from the end is whatever else a place is spelt with.
        folder = func.rtrim(sources.c.place, func.replace(sources.c.place, "/", ""))
        files = pictures.join(sources, sources.c.image_id == pictures.c.id)
        lying = (
            self._counted(folder, files, sources.c.kind == "file", sources.c.gone == "") if folders else {}
        )
        return Facets(
            _most(self._counted(pictures.c.domain, pictures)),
            _most(self._counted(captions.c.language, pictures.join(captions, spoken), ~captions.c.withdrawn)),
            tuple(FacetValue(value, years[value]) for value in sorted(years, reverse=True)[:MOST]),
            _most({place.rstrip("/") or "/": count for place, count in lying.items()}),
        )

    def _counted(
        self, value: ColumnElement[str], of: FromClause, *those: ColumnElement[bool]
    ) -> dict[str, int]:
        """Counts each picture once for a value, however many rows have both."""
        number = next(column for column in of.c if column.name.endswith("seq"))
        query = select(value, func.count(distinct(number))).select_from(of).where(*those).group_by(value)
        with self._engine.connect() as connection:
            return {name: count for name, count in connection.execute(query)}


def _most(found: Mapping[str, int]) -> tuple[FacetValue, ...]:
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return tuple(FacetValue(value, count) for value, count in ordered[:MOST])
