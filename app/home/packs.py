"""Records of a store in one plain file, which can be read without trusting whoever wrote it.

A store's own file is none to take from others: LMDB believes what stands in it. A pack is a line that names its format,
and then of each record the length of its key (2 bytes) and of its payload (8 bytes, both big-endian), key and payload.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Protocol

from ingest.storage import MAX_KEY_BYTES

_MAGIC = b"perennial pack 1\n"
_LENGTHS = struct.Struct(">HQ")
_LARGEST = 1 << 30  # of a payload, which is read into memory


class Readable(Protocol):
    """What a pack is read from."""

    def read(self, size: int, /) -> bytes:
        """Returns up to so many bytes."""
        ...


def write_pack(path: Path, records: Iterable[tuple[bytes, bytes]]) -> int:
    """Writes records one by one into a new file; returns how many there were, and leaves no file where none."""
    count = 0
    with path.open("xb") as file:
        file.write(_MAGIC)
        for count, (key, payload) in enumerate(records, start=1):  # noqa: B007 - the count is returned
            file.write(_LENGTHS.pack(len(key), len(payload)) + key)
            file.write(payload)
    if not count:
        path.unlink()
    return count


def records_of(file: Readable) -> Iterator[tuple[bytes, bytes]]:
    """Yields the records of a pack.

    Raises:
        ValueError: it is none, or it ends early.
    """
    for key_bytes, payload_bytes in _lengths(file):
        yield _exactly(file, key_bytes), _exactly(file, payload_bytes)


def keys_of(path: Path) -> Iterator[bytes]:
    """Yields the keys of a pack; payloads are passed over.

    Raises:
        ValueError: it is none.
    """
    with path.open("rb") as file:
        for key_bytes, payload_bytes in _lengths(file):
            yield _exactly(file, key_bytes)
            file.seek(payload_bytes, os.SEEK_CUR)


def _lengths(file: Readable) -> Iterator[tuple[int, int]]:
    if file.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it is no pack of records")
    while head := file.read(_LENGTHS.size):
        if len(head) < _LENGTHS.size:
            raise ValueError("it ends early")
        key_bytes, payload_bytes = _LENGTHS.unpack(head)
        if not 1 <= key_bytes <= MAX_KEY_BYTES or payload_bytes > _LARGEST:
            raise ValueError("it holds a record that no store has")
        yield key_bytes, payload_bytes


def _exactly(file: Readable, size: int) -> bytes:
    data = file.read(size)
    if len(data) < size:
        raise ValueError("it ends early")
    return data
