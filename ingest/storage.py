"""One checksummed LMDB store: bytes by key, safe by its settings.

A value on disk is `format byte | sha256(payload)[:16] | payload`; LMDB itself does not check-sum values.
Commits are synchronous: with `sync=False` a power cut loses acknowledged data, which no kill test can show.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import lmdb

from ingest.errors import MayNotWrite, StoreDamaged, StoreError, StoreFull, StoreMissing, StoreMisuse

__all__ = ["Store", "StoreDamaged", "StoreError", "StoreFull", "StoreMissing", "StoreMisuse"]

logger = logging.getLogger(__name__)

T = TypeVar("T")

SCHEMA = 1
DEFAULT_MAP_BYTES = 64 * 1024**3  # address space, not disk
BATCH_RECORDS = 1000  # write transactions stay short, so a kill loses little and readers hold few old pages
BATCH_BYTES = 64 * 1024**2
PAGE_OF_KEYS = 1000  # keys are listed in short read transactions: a long one makes the file grow
READER_CHECK_SECONDS = 60.0
MAX_KEY_BYTES = 511  # LMDB's compiled-in limit
FORMAT_RAW = 1
CHECKSUM_BYTES = 16
_HEADER_BYTES = 1 + CHECKSUM_BYTES
_MAGIC = 0xBEEFC0DE

_open_stores: dict[Path, Store] = {}
_open_lock = threading.Lock()


def _checksum(payload: bytes) -> bytes:
    return hashlib.sha256(payload).digest()[:CHECKSUM_BYTES]


def _shown(key: bytes) -> str:
    return key.decode("ascii") if key.isascii() and key.decode("ascii").isprintable() else "0x" + key.hex()


def wrapped(payload: bytes) -> bytes:
    """Returns a payload as it is stored, with its checksum."""
    return bytes([FORMAT_RAW]) + _checksum(payload) + payload


def unwrap(key: bytes, value: bytes, place: str) -> bytes:
    """Returns the payload of what is stored under a key, in a place that an error names.

    Raises:
        StoreDamaged: it does not match its checksum.
    """
    payload = value[_HEADER_BYTES:]
    if len(value) < _HEADER_BYTES or value[:_HEADER_BYTES] != bytes([FORMAT_RAW]) + _checksum(payload):
        raise StoreDamaged(
            f"The record {_shown(key)} in {place} does not match its checksum. "
            "Restore the store from a backup, or ingest the chunk that holds it again."
        )
    return payload


def _check_file_length(path: Path) -> None:
    """Refuses a file shorter than its newest page table says; mapping it would kill the process (SIGBUS)."""
    data_file = path / "data.mdb"
    if not data_file.exists() or data_file.stat().st_size == 0:
        return
    with data_file.open("rb") as file:
        first = file.read(512)
        page_bytes = struct.unpack_from("<I", first, 40)[0] if len(first) == 512 else 0
        if not 512 <= page_bytes <= 65536:
            raise StoreDamaged(
                f"{path} does not look like a store: its first page is damaged. Restore it from a backup."
            )
        file.seek(page_bytes)
        second = file.read(512)
    metas = [
        page
        for page in (first, second)
        if len(page) == 512 and struct.unpack_from("<I", page, 16)[0] == _MAGIC
    ]
    if len(metas) < 2:
        raise StoreDamaged(
            f"{path} does not look like a store: its first pages are damaged. Restore it from a backup."
        )
    last_page, _ = max((struct.unpack_from("<QQ", page, 136) for page in metas), key=lambda pair: pair[1])
    needed, found = (last_page + 1) * page_bytes, data_file.stat().st_size
    if found < needed:
        raise StoreDamaged(
            f"{data_file} is cut short: {found} bytes, but its newest commit needs {needed}. "
            "Restore it from a backup."
        )


class Store:
    """An open store; get one with `Store.open`.

    One LMDB environment per path and process: opening the same path again returns the same object, and it
    closes when every opener has closed it. It must not be used across `fork()`; start children with `spawn`.
    """

    def __init__(self, path: Path, *, read_only: bool, map_bytes: int) -> None:
        self.path = path
        self.address: str | None = None  # it lies in no bucket
        self.read_only = read_only
        self._environment: lmdb.Environment | None = None
        self._pid = os.getpid()
        self._users = 1
        self._write_lock = threading.Lock()
        self._readers_checked = time.monotonic()
        _check_file_length(path)
        try:
            self._environment = lmdb.open(
                str(path),
                map_size=map_bytes,
                subdir=True,
                readonly=read_only,
                create=not read_only,
                sync=True,
                metasync=True,
                writemap=False,
                map_async=False,
                lock=True,
                max_readers=512,
                max_dbs=16,
            )
            self._environment.reader_check()
            self._data = self._environment.open_db(b"data", create=not read_only)
            self._meta = self._environment.open_db(b"meta", create=not read_only)
        except (lmdb.Error, OSError) as error:
            self._close_files()
            raise self._translated(error) from error
        self._check_schema()

    @classmethod
    def open(cls, path: Path, *, read_only: bool = False, map_bytes: int = DEFAULT_MAP_BYTES) -> Store:
        """Opens the store in folder `path`, making it unless `read_only`.

        `map_bytes` is the size of the window of addresses; it grows by itself when full.

        Raises:
            StoreMissing: `read_only` and there is no store.
            StoreDamaged: the file is shorter than its newest commit, or not a store.
            StoreMisuse: already open in another mode, or inherited through fork.
            MayNotWrite: it may only be read.
        """
        path = path.resolve()
        with _open_lock:
            present = _open_stores.get(path)
            if present is not None:
                present._check_process()
                if present.read_only and not read_only:
                    raise StoreMisuse(
                        f"{path} is open read-only in this process; close it before opening it for writing."
                    )
                present._users += 1
                return present
            if read_only and not (path / "data.mdb").exists():
                raise StoreMissing(f"There is no store at {path} yet. Run `perennial init` first.")
            if not read_only:
                path.mkdir(parents=True, exist_ok=True)
            store = cls(path, read_only=read_only, map_bytes=map_bytes)
            _open_stores[path] = store
            return store

    def close(self) -> None:
        """Gives this opener's share back; the last one closes the files."""
        with _open_lock:
            if self._environment is None or self._pid != os.getpid():
                return
            self._users -= 1
            if self._users == 0:
                self._close_files()
                _open_stores.pop(self.path, None)

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, key: bytes) -> bytes | None:
        """Returns the payload of `key`, or None when there is none.

        Raises:
            StoreDamaged: the stored bytes do not match their checksum.
        """
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Returns the payload or None of each key, in order, from one short read transaction."""
        if not keys:
            return []

        def read(transaction: lmdb.Transaction) -> list[bytes | None]:
            return [_copied(transaction.get(checked(key), db=self._data)) for key in keys]

        found = self._read(read)
        return [
            None if value is None else unwrap(key, value, self.path.name)
            for key, value in zip(keys, found, strict=True)
        ]

    def contains_many(self, keys: Sequence[bytes]) -> list[bool]:
        """Returns for each key whether it is stored, without reading its payload."""

        def read(transaction: lmdb.Transaction) -> list[bool]:
            with transaction.cursor(db=self._data) as cursor:
                return [cursor.set_key(checked(key)) for key in keys]

        return self._read(read) if keys else []

    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:
        """Yields the keys that start with `prefix`, in byte order."""
        start, inclusive = prefix, True
        while True:
            page = self._read(partial(self._key_page, prefix=prefix, start=start, inclusive=inclusive))
            yield from page
            if len(page) < PAGE_OF_KEYS:
                return
            start, inclusive = page[-1], False

    def put_many(self, items: Iterable[tuple[bytes, bytes]]) -> int:
        """Stores `(key, payload)` items in durable batches and returns how many records are new or changed.

        Raises:
            StoreFull: the disk has no room; batches before the failing one are kept.
        """
        written, batch, size = 0, dict[bytes, bytes](), 0
        for key, payload in items:
            batch[checked(key)] = payload
            size += len(payload)
            if len(batch) >= BATCH_RECORDS or size >= BATCH_BYTES:
                written += self._put(batch, size)
                batch, size = {}, 0
        return written + self._put(batch, size)

    def delete_many(self, keys: Iterable[bytes]) -> int:
        """Deletes the keys and returns how many were there."""
        wanted = [checked(key) for key in keys]
        parts = [wanted[start : start + BATCH_RECORDS] for start in range(0, len(wanted), BATCH_RECORDS)]

        def delete(transaction: lmdb.Transaction, part: Sequence[bytes]) -> int:
            return sum(transaction.delete(key, db=self._data) for key in part)

        return sum(self._write(partial(delete, part=part), 0) for part in parts)

    def compact(self) -> None:
        """Writes the file anew with what is stored alone, so that of what was deleted no byte stays; close it then.

        Nobody else may have it open for writing. Who reads it goes on reading the file of before.

        Raises:
            StoreFull: the disk has no room for a second one.
        """
        environment = self._check_process()
        fresh = self.path.with_name(f".{self.path.name}.new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir()
        try:
            environment.copy(str(fresh), compact=True)
            (fresh / "data.mdb").replace(self.path / "data.mdb")
        except (lmdb.Error, OSError) as error:
            raise self._translated(error) from error
        finally:
            shutil.rmtree(fresh, ignore_errors=True)

    @contextmanager
    def held(self) -> Iterator[HeldStore]:
        """Holds the store as it is now while a block reads it; what others replace meanwhile makes the file grow."""
        environment = self._check_process()
        self._read(lambda _: None)  # takes the size that another process gave the file
        with environment.begin(db=self._data) as transaction:
            yield HeldStore(self, environment, transaction)

    def _put(self, batch: dict[bytes, bytes], size: int) -> int:
        def put(transaction: lmdb.Transaction) -> int:
            written = 0
            for key, payload in batch.items():
                value = wrapped(payload)
                if transaction.get(key, db=self._data) != value:
                    transaction.put(key, value, db=self._data)
                    written += 1
            return written

        return self._write(put, size) if batch else 0

    def _key_page(
        self, transaction: lmdb.Transaction, prefix: bytes, start: bytes, inclusive: bool
    ) -> list[bytes]:
        page: list[bytes] = []
        with transaction.cursor(db=self._data) as cursor:
            found = cursor.set_range(start) if start else cursor.first()
            while found and len(page) < PAGE_OF_KEYS:
                key = bytes(cursor.key())
                if not key.startswith(prefix):
                    break
                if inclusive or key != start:
                    page.append(key)
                found = cursor.next()
        return page

    def _check_schema(self) -> None:
        stored = self._read(lambda transaction: _copied(transaction.get(b"schema", db=self._meta)))
        if stored is None and not self.read_only:
            lmdb_format = ".".join(str(part) for part in lmdb.version()[:2]).encode()

            def stamp(transaction: lmdb.Transaction) -> None:
                transaction.put(b"schema", str(SCHEMA).encode(), db=self._meta)
                transaction.put(b"lmdb_format", lmdb_format, db=self._meta)

            self._write(stamp, 0)
        elif stored != str(SCHEMA).encode():
            found = (stored or b"none").decode("ascii", "replace")
            self._close_files()
            raise StoreError(
                f"{self.path} has schema {found}; this Perennial reads schema {SCHEMA}. "
                "Install the release that wrote it."
            )

    def _close_files(self) -> None:
        if self._environment is not None:
            self._environment.close()
            self._environment = None

    def _check_process(self) -> lmdb.Environment:
        if self._pid != os.getpid():
            raise StoreMisuse(
                f"{self.path} was opened by process {self._pid}, and this is its fork {os.getpid()}: "
                "writing here would damage the store. Start the process with `spawn` and open it there."
            )
        if self._environment is None:
            raise StoreMisuse(f"{self.path} is closed; open it again with Store.open.")
        return self._environment

    def _read(self, work: Callable[[lmdb.Transaction], T]) -> T:
        environment = self._check_process()
        for attempt in (1, 2, 3):
            try:
                with environment.begin() as transaction:
                    return work(transaction)
            except lmdb.MapResizedError:
                environment.set_mapsize(0)  # another process grew the file; take its size
            except lmdb.ReadersFullError as error:
                if not environment.reader_check():
                    raise self._translated(error) from error
            except lmdb.Error as error:
                raise self._translated(error) from error
            logger.info("store=%s retry=%d", self.path.name, attempt)
        raise StoreError(f"{self.path} could not be read: other processes keep changing its size. Try again.")

    def _write(self, work: Callable[[lmdb.Transaction], T], payload_bytes: int) -> T:
        environment = self._check_process()
        if self.read_only:
            raise StoreMisuse(f"{self.path} was opened read-only; open it with read_only=False to write.")
        with self._write_lock:
            if time.monotonic() - self._readers_checked > READER_CHECK_SECONDS:
                environment.reader_check()
                self._readers_checked = time.monotonic()
            while True:
                try:
                    with environment.begin(write=True) as transaction:
                        return work(transaction)
                except lmdb.MapFullError:
                    # The whole transaction is rolled back, so growing and repeating is safe.
                    grown = 2 * environment.info()["map_size"] + 2 * payload_bytes
                    environment.set_mapsize(grown)
                    logger.info("store=%s map_bytes=%d", self.path.name, grown)
                except lmdb.MapResizedError:
                    environment.set_mapsize(0)
                except (lmdb.Error, OSError) as error:
                    raise self._translated(error) from error

    def _translated(self, error: lmdb.Error | OSError) -> StoreError | MayNotWrite:
        text = str(error)
        number = getattr(error, "errno", None)
        full = isinstance(error, lmdb.DiskError) or number in (errno.ENOSPC, errno.EDQUOT)
        # A full disk mostly shows up as a plain I/O error (5 of 6 alignments measured).
        if full or "Input/output error" in text or "No space left" in text:
            free = shutil.disk_usage(self.path).free / 1024**2
            return StoreFull(
                f"Writing to {self.path} failed ({text}); {free:.0f} MB are free on that disk. "
                "Free some space, or check the disk if there is enough."
            )
        damaged = (lmdb.CorruptedError, lmdb.InvalidError, lmdb.PageNotFoundError, lmdb.PanicError)
        if isinstance(error, (*damaged, lmdb.VersionMismatchError)):
            return StoreDamaged(f"{self.path} cannot be read as a store ({text}). Restore it from a backup.")
        if "Permission denied" in text or "Read-only file system" in text:
            return MayNotWrite(self.path)
        return StoreError(f"{self.path}: {text}")


class HeldStore:
    """A store as it was at one moment; get one with `Store.held`."""

    def __init__(self, store: Store, environment: lmdb.Environment, transaction: lmdb.Transaction) -> None:
        self._store, self._environment, self._transaction = store, environment, transaction

    def is_newest(self) -> bool:
        """Whether nobody has written to the store since."""
        return bool(self._environment.info()["last_txnid"] == self._transaction.id())

    def has(self, key: bytes) -> bool:
        """Whether a key is there; its payload is not read."""
        with self._transaction.cursor() as cursor:
            return bool(cursor.set_key(key))

    def records(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Yields each key with its payload, None where that does not match its checksum."""
        with self._transaction.cursor() as cursor:
            for key, value in ((bytes(one), bytes(other)) for one, other in cursor):
                try:
                    yield key, unwrap(key, value, self._store.path.name)
                except StoreDamaged as error:
                    logger.warning("%s", error)
                    yield key, None


def _copied(value: bytes | memoryview | None) -> bytes | None:
    # Transactions are opened without `buffers=True`, so LMDB has copied already; this only narrows the type.
    return None if value is None else bytes(value)


def checked(key: bytes) -> bytes:
    """Returns a key that can be one.

    Raises:
        StoreMisuse: it is empty or too long.
    """
    if not 1 <= len(key) <= MAX_KEY_BYTES:
        raise StoreMisuse(
            f"A key has {len(key)} bytes; it must have 1 to {MAX_KEY_BYTES}. Use a content id as key."
        )
    return key
