"""The pictures that an upload names: in its container, or on the web where its tables name addresses."""

import math
from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

from ingest.blobs import BlobStore
from ingest.catalog import Catalog
from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.plan import IntakePlan
from ingest.readers.container import Container, Origin, Skipped
from ingest.readers.folder import Folder
from ingest.readers.names import is_address
from ingest.sentence import phrase

PORTION = 1000
"""Pictures of a folder that are recorded together: so many are read again at most when somebody stops it."""
FIRST_PORTION = 50
"""Of a folder, so that there is soon something to see."""
FETCHED = 200
"""Fetched pictures that are recorded together."""
Networks = Sequence[IPv4Network | IPv6Network]


class NamedPictures:
    """Reads the pictures of one upload, by the names that its plan has for them."""

    def __init__(
        self, container: Container, catalog: Catalog, blobs: BlobStore, limits: Limits, networks: Networks
    ) -> None:
        """Says what has pictures: a container, what was fetched before, and the web."""
        self._container, self._catalog, self._blobs = container, catalog, blobs
        self._limits, self._networks = limits, networks
        self.left = math.inf  # bytes that may still be fetched

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
        known = {name: one.image_id for name, one in self._catalog.sources.fetched(addresses).items()}
        stored = dict(zip(known, self._blobs.contains(list(known.values())), strict=True))
        yield from ((name, self._blobs.original(known[name])) for name, is_here in stored.items() if is_here)
        from ingest.fetching import Fetcher  # loads httpx, which most uploads do without

        fetcher = Fetcher(self._limits, self._networks, self.left)
        yield from fetcher.read(name for name in addresses if not stored.get(name))
        self.left = fetcher.left

    def origin(self, name: str) -> Origin:
        """Returns where a picture lies."""
        return Origin(None, url=name) if is_address(name) else self._container.origin(name)


def require_most(plan: IntakePlan, folder: Path) -> None:
    """Refuses a table most of whose pictures are not in the folder that was named for them: it is another one.

    In a wrong folder a picture that happens to have the same name would be given a caption of another.

    Raises:
        BadUpload: says how many are missing, and names three.
    """
    missing = list(dict.fromkeys(one.named for one in plan.problems if one.named))
    if len(missing) <= len(plan.rows):
        return
    raise BadUpload(
        "pictures_missing",
        phrase(
            "{count} of {all} named pictures are not in {folder}: {names}. Name the folder they are in, or take their "
            "lines out of the table.",
            count=len(missing),
            all=len(missing) + len(plan.rows),
            folder=str(folder),
            names=", ".join(missing[:3]) + (", …" if len(missing) > 3 else ""),
        ),
    )
