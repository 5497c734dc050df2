"""Facets: how many of some pictures are of each domain, language, year and folder."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from sqlalchemy import Select, func, select

from ingest.pair import ImageId
from ingest.schema import captions, images
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

    def facets(self, ids: Collection[ImageId], *, folders: bool) -> Facets:
        """Counts some pictures; `folders` says whether those are told, too."""
        domain = select(images.c.id, images.c.domain).where(images.c.in_gallery)
        language = (
            select(images.c.id, captions.c.language)
            .join(captions, captions.c.image == images.c.seq)
            .where(images.c.in_gallery, ~captions.c.withdrawn)
            .distinct()
        )
        year = select(images.c.id, func.substr(images.c.taken, 1, 4)).where(
            images.c.in_gallery, images.c.taken != ""
        )
        place = select(sources.c.image_id, sources.c.place).where(
            sources.c.kind == "file", sources.c.gone == ""
        )
        years = self._counted(year, ids)
        return Facets(
            _most(self._counted(domain, ids)),
            _most(self._counted(language, ids)),
            tuple(FacetValue(value, years[value]) for value in sorted(years, reverse=True)[:MOST]),
            _most(_folders(self._rows(place), ids)) if folders else (),
        )

    def _counted(self, query: Select[Any], ids: Collection[ImageId]) -> Counter[str]:
        return Counter(value for image_id, value in self._rows(query) if image_id in ids)


def _folders(rows: Iterable[Any], ids: Collection[ImageId]) -> Counter[str]:
    """Counts each picture once for a folder, however many copies lie there."""
    seen = {(image_id, str(PurePosixPath(place).parent)) for image_id, place in rows if image_id in ids}
    return Counter(folder for _, folder in seen)


def _most(found: Counter[str]) -> tuple[FacetValue, ...]:
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return tuple(FacetValue(value, count) for value, count in ordered[:MOST])
