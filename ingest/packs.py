"""Pictures in a bucket: many in one object, since a bucket counts what is written one by one.

A pack is written first, and then which records lie where in it, as one transaction of the catalog: a crash in between
leaves a pack that nobody knows. What is deleted is taken out of its pack at once: the rest is written as a new pack,
and the old one removed. A pack begins with what lies in it, so that a catalog of before can find it again.
"""

from __future__ import annotations

import json
import logging
import struct
import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ingest.bucket_rows import Packed, PackRows
from ingest.errors import ObjectMissing, ObjectsUnreachable
from ingest.objects import Objects
from ingest.storage import PAGE_OF_KEYS, checked, unwrap, wrapped

logger = logging.getLogger(__name__)

FOLDER = "packs"
PACK_RECORDS = 2000
PACK_BYTES = 16 * 1024**2  # what is rewritten, at most, where one picture of it is deleted
_TRIES = 3
_DAY = 86_400.0
_LENGTH = ">Q"  # of the header, in bytes


class Packs:
    """Records by key, as `ingest.storage.Store` keeps them; the rows are those of the home's catalog."""

    def __init__(self, objects: Objects, rows: PackRows) -> None:
        self._objects, self._rows = objects, rows
        self.address: str | None = objects.address

    def get(self, key: bytes) -> bytes | None:
        """Returns the payload of a key, or None when there is none.

        Raises:
            StoreDamaged: what lies there does not match its checksum.
            ObjectsUnreachable: the bucket does not answer.
        """
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the payload or None of each key, in order; raises as `get`."""
        for left in reversed(range(_TRIES)):
            places = self._rows.places([checked(key) for key in keys])
            try:
                found = self._values(places)
                break
            except ObjectMissing:  # written anew in this moment
                if not left:
                    raise
        return [unwrap(key, found[key], self._objects.address) if key in found else None for key in keys]

    def contains_many(self, keys: Sequence[bytes]) -> list[bool]:
        """Returns for each key whether it is stored."""
        places = self._rows.places([checked(key) for key in keys])
        return [key in places for key in keys]

    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:
        """Yields the keys that start with `prefix`, in byte order."""
        after = b""
        while page := self._rows.keys(prefix, after, PAGE_OF_KEYS):
            yield from page
            after = page[-1]

    def put_many(self, items: Iterable[tuple[bytes, bytes]]) -> int:
        """Stores `(key, payload)` items in durable packs and returns how many records are new.

        What a key has already stays: pictures are called by what they are.

        Raises:
            ObjectsUnreachable: the bucket does not answer; packs before the failing one are kept.
        """
        written, batch, size = 0, dict[bytes, bytes](), 0
        for key, payload in items:
            batch[checked(key)] = payload
            size += len(payload)
            if len(batch) >= PACK_RECORDS or size >= PACK_BYTES:
                written += self._put(batch)
                batch, size = {}, 0
        return written + self._put(batch)

    def delete_many(self, keys: Iterable[bytes]) -> int:
        """Deletes the keys, also from the bucket, and returns how many were there.

        Raises:
            ObjectsUnreachable: the bucket does not answer; what was not deleted is there as before.
        """
        wanted = [checked(key) for key in keys]
        count = 0
        # Others may write the same packs anew meanwhile; then the keys lie elsewhere.
        while by_pack := _by_pack(self._rows.places(wanted)):
            for name, gone in by_pack.items():
                left = {key: place for key, place in self._rows.of_pack(name).items() if key not in gone}
                try:
                    new, places = self._packed(self._values(left))
                except ObjectMissing:
                    if self._objects.size(_object(name)) is not None or not self._rows.of_pack(name):
                        continue
                    new, places = "", {}  # it is lost; what lay in it stays known as such
                count += self._rows.rewrite(name, new, places, list(gone))
        # Whoever was killed after the rows were written has left an empty one.
        empty = self._rows.empty()
        self._objects.delete([_object(name) for name in empty])
        self._rows.drop(empty)
        return count

    def remove_strays(self, *, older_than: float = _DAY) -> list[str]:
        """Removes packs that nobody knows and returns their names; one that is being written is younger, in seconds.

        Where a database was put back from a backup, packs that were written anew since then are unknown, and those
        that it knows are gone: what it misses is found in these, and they stay.
        """
        known, old = set(self._rows.names()), time.time() - older_than
        written = {name.rpartition("/")[2]: when for name, when in self._objects.written(FOLDER)}
        removed = []
        for name in sorted(name for name, when in written.items() if name not in known and when < old):
            places = self._header(name)
            where = self._rows.places(list(places))
            missed = {
                key: place for key, place in places.items() if key in where and where[key].pack not in written
            }
            if missed:
                self._rows.enter(name, missed, anew=True)
                logger.warning("%d records were found again in pack %s", len(missed), name)
            else:
                self._objects.delete([_object(name)])
                removed.append(name)
        return removed

    def close(self) -> None:
        """Has nothing to close: the catalog has the connections."""

    def _put(self, batch: dict[bytes, bytes]) -> int:
        known = self._rows.places(list(batch))
        lost = {
            name
            for name in {place.pack for place in known.values()}
            if self._objects.size(_object(name)) is None
        }
        new = {
            key: wrapped(payload)
            for key, payload in batch.items()
            if key not in known or known[key].pack in lost
        }
        if new:
            self._rows.enter(*self._packed(new), anew=bool(lost))
        return len(new)

    def _packed(self, values: Mapping[bytes, bytes]) -> tuple[str, dict[bytes, tuple[int, int]]]:
        """Writes a pack: how long its header is, the header, the values; returns its name, and where each lies."""
        if not values:
            return "", {}
        name = uuid.uuid4().hex
        header = json.dumps([[key.hex(), len(value)] for key, value in values.items()]).encode()
        data = b"".join([struct.pack(_LENGTH, len(header)), header, *values.values()])
        self._objects.put(_object(name), data)
        return name, _places(header)

    def _header(self, name: str) -> dict[bytes, tuple[int, int]]:
        """Reads where what lies in a pack; nothing of one that cannot be read."""
        size = struct.calcsize(_LENGTH)
        try:
            (length,) = struct.unpack(_LENGTH, self._objects.ranges(_object(name), [0], [size])[0])
            return _places(self._objects.ranges(_object(name), [size], [length])[0])
        except (ObjectMissing, ObjectsUnreachable, ValueError, TypeError, struct.error) as error:
            logger.warning("pack %s cannot be read: %s", name, error)
            return {}

    def _values(self, places: Mapping[bytes, Packed]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for name, theirs in _by_pack(places).items():
            begins, lengths = [one.begins for one in theirs.values()], [one.length for one in theirs.values()]
            found |= dict(zip(theirs, self._objects.ranges(_object(name), begins, lengths), strict=True))
        return found


def _places(header: bytes) -> dict[bytes, tuple[int, int]]:
    places, begins = dict[bytes, tuple[int, int]](), struct.calcsize(_LENGTH) + len(header)
    for key, length in json.loads(header):
        places[bytes.fromhex(key)] = begins, length
        begins += length
    return places


def _by_pack(places: Mapping[bytes, Packed]) -> dict[str, dict[bytes, Packed]]:
    found = defaultdict[str, dict[bytes, Packed]](dict)
    for key, place in places.items():
        found[place.pack][key] = place
    return found


def _object(name: str) -> str:
    return f"{FOLDER}/{name}"
