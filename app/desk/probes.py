"""The built-in checks, called probes in the code: drawn pictures that guard updates and are nobody's own.

What a person reads counts and measures their own pictures alone, unless they ask for these too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from ingest.catalog import Catalog
    from ingest.records import ChunkRecord

DOMAIN = "probes"
"""Of their pictures; no slice of it is a person's own."""
NAME = "built-in checks"
_NAMES = {NAME, "probe slices"}  # the second in homes that an earlier release made


class _OfDomain(Protocol):
    @property
    def domain(self) -> str: ...


Slice = TypeVar("Slice", bound=_OfDomain)


def probe_chunks(catalog: Catalog) -> frozenset[str]:
    """Returns the ids of the chunks that making a home drew: one, or none where it was removed."""
    likely = [one for one in catalog.standings() if one.name in _NAMES and not one.in_gallery]
    return frozenset(one.id for one in likely if is_probes(catalog.chunk(one.id)))


def is_probes(chunk: ChunkRecord) -> bool:
    """Whether a chunk is the one that making a home drew."""
    return chunk.name in _NAMES and not chunk.in_gallery and set(chunk.domains) <= {DOMAIN}


def shown_slices(slices: Iterable[Slice], *, probes: bool = False) -> tuple[Slice, ...]:
    """Returns slices of a person's own pictures; with `probes` those of the built-in checks too."""
    return tuple(one for one in slices if probes or one.domain != DOMAIN)
