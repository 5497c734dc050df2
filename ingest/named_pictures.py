"""The pictures that an upload names: in its container, or on the web where its tables name addresses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from ingest.blobs import BlobStore
from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.pair import ImageId
from ingest.readers.container import Container, Origin, Skipped
from ingest.readers.folder import Folder
from ingest.readers.names import is_address
from ingest.sentence import phrase

if TYPE_CHECKING:
    from ingest.fetching import Fetcher

PORTION = 1000
"""Pictures of a folder that are recorded together: so many are read again at most when somebody stops it."""
FIRST_PORTION = 200
"""Of a folder, so that there is soon something to see."""
FETCHED = 200
"""Fetched pictures that are recorded together."""


class NamedPictures:
    """Reads the pictures of one upload, by the names that its plan has for them."""

    def __init__(
        self,
        container: Container,
        blobs: BlobStore,
        make_fetcher: Callable[[], Fetcher],
        fetched: Mapping[str, ImageId],
    ) -> None:
        """Says what fetches; `fetched` has the pictures of addresses that are stored already."""
        self._container, self._blobs = container, blobs
        self._make_fetcher, self._fetched = make_fetcher, fetched

    def parts(self, names: Collection[str]) -> list[list[str]]:
        """Returns the names in the order in which they are read, by what is recorded together."""
        inside = [name for name in names if not is_address(name)]
        addresses = [name for name in names if is_address(name)]
        parts = [inside] if inside else []
        if isinstance(self._container, Folder):
            parts = list(self._container.portions(inside, PORTION, FIRST_PORTION))
        parts += [addresses[at : at + FETCHED] for at in range(0, len(addresses), FETCHED)]
        return parts or [[]]

    def read(self, names: Collection[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Yields the bytes of what one part names, or why they cannot be had."""
        addresses = [name for name in names if is_address(name)]
        if not addresses:
            yield from self._container.read(names)
            return
        for name in addresses:
            if name in self._fetched:
                yield name, self._blobs.original(self._fetched[name])
        yield from self._fetcher.read(name for name in addresses if name not in self._fetched)

    def origin(self, name: str) -> Origin:
        """Returns where a picture lies."""
        return Origin(None, url=name) if is_address(name) else self._container.origin(name)

    @cached_property
    def _fetcher(self) -> Fetcher:
        return self._make_fetcher()


def require_few_addresses(names: Collection[str], limits: Limits) -> None:
    """Refuses an upload that would have very many pictures fetched.

    Raises:
        BadUpload: it names more addresses than an archive may have members.
    """
    count = sum(map(is_address, names))
    if count > limits.items:
        raise BadUpload(
            "too_many_items",
            phrase(
                "The upload names {count} addresses; the limit is {most}. Split it.",
                count=f"{count:,}",
                most=f"{limits.items:,}",
            ),
        )
