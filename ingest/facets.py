"""Facets: how many of some pictures are of each domain, language, year and folder."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Unpack

from sqlalchemy import ColumnElement, FromClause, Select, distinct, func, literal, select, union_all

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
        # Named once and read by each count, so that databases find the pictures once.
        pictures = select(images.c.seq, images.c.id, images.c.domain, images.c.taken).where(*there).cte()
        spoken = pictures.join(captions, captions.c.image == pictures.c.seq)
        files = pictures.join(sources, sources.c.image_id == pictures.c.id)
        year = func.substr(pictures.c.taken, 1, 4)
        # All up to the last stroke: what is cut from the end is whatever else a place is spelt with.
        folder = func.rtrim(sources.c.place, func.replace(sources.c.place, "/", ""))
        counts = [
            _counted("domains", pictures.c.domain, pictures),
            _counted("languages", captions.c.language, spoken, ~captions.c.withdrawn),
            _counted("years", year, pictures, year != ""),
        ]
        if folders:
            counts.append(_counted("folders", folder, files, sources.c.kind == "file", sources.c.gone == ""))
        found: dict[str, dict[str, int]] = defaultdict(dict)
        with self._engine.connect() as connection:
            for facet, value, count in connection.execute(union_all(*counts)):
                found[facet][value] = count
        years = found["years"]
        return Facets(
            _most(found["domains"]),
            _most(found["languages"]),
            tuple(FacetValue(value, years[value]) for value in sorted(years, reverse=True)[:MOST]),
            _most({place.rstrip("/") or "/": count for place, count in found["folders"].items()}),
        )


def _counted(
    facet: str, value: ColumnElement[str], of: FromClause, *those: ColumnElement[bool]
) -> Select[str, str, int]:
    """Returns the query that counts each picture once for a value of a facet, however many rows have both."""
    number = next(column for column in of.c if column.name.endswith("seq"))
    query = select(literal(facet), value, func.count(distinct(number))).select_from(of)
    return query.where(*those).group_by(value)


def _most(found: Mapping[str, int]) -> tuple[FacetValue, ...]:
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return tuple(FacetValue(value, count) for value, count in ordered[:MOST])
