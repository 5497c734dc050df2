"""Raw float32 features by (tower fingerprint, kind, content id), on one checksummed LMDB store.

A feature carries the fingerprint of the tower that made it, so nothing is ever computed twice and
features of two towers can never be mixed up.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from index.errors import DimensionMismatch, VectorError
from index.vectors import finite_rows
from ingest.errors import StoreDamaged, StoreFull
from ingest.storage import Store

logger = logging.getLogger(__name__)

# Rows per read transaction: a long-held LMDB reader makes the file grow (300 overwrites of 100 KB: 100x).
READ_BATCH = 4096
LITTLE_ENDIAN_FLOAT = np.dtype("<f4")


class FeatureStore:
    """Caches encoder outputs, not normalised, across versions and releases."""

    def __init__(self, store: Store, *, needs_room: bool = True) -> None:
        self._store, self._needs_room = store, needs_room

    def as_room_allows(self) -> FeatureStore:
        """Returns the same cache, for which a full disk is no error: what finds no room is not kept."""
        return FeatureStore(self._store, needs_room=False)

    def get(
        self, fingerprint: str, kind: str, content_ids: Sequence[str], dim: int
    ) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """Looks up the cached features of some contents.

        `kind` is `"image"` or `"text:<table>"`; the (n,) ids may repeat. The rows found, (m, dim) float32, raw, come in
        the order asked, with a mask (n,), true where found.

        Raises:
            DimensionMismatch: A cached row has another dimension than `dim`.
        """
        mask = np.zeros(len(content_ids), dtype=np.bool_)
        found: list[bytes] = []
        for start in range(0, len(content_ids), READ_BATCH):
            batch = content_ids[start : start + READ_BATCH]
            values = self._store.get_many([_key(fingerprint, kind, content_id) for content_id in batch])
            for offset, value in enumerate(values):
                if value is None:
                    continue
                cached_dim = len(value) // LITTLE_ENDIAN_FLOAT.itemsize
                if cached_dim != dim:
                    raise DimensionMismatch(
                        f"The cache holds {cached_dim}-dimensional {kind} features for tower "
                        f"{fingerprint[:12]}; {dim} dimensions were asked for. "
                        "A fingerprint must change when the tower's output does."
                    )
                mask[start + offset] = True
                found.append(value)
        rows = np.frombuffer(b"".join(found), dtype=LITTLE_ENDIAN_FLOAT).reshape(len(found), dim)
        return rows.astype(np.float32), mask

    def examine(self) -> Examined:
        """Reads every row that is kept."""
        rows = damaged = non_finite = zero = 0
        for key in self._store.keys():  # noqa: SIM118 - no mapping
            rows += 1
            try:
                value = self._store.get(key) or b""
                row = np.frombuffer(value, dtype=LITTLE_ENDIAN_FLOAT)
            except (StoreDamaged, ValueError):
                damaged += 1
                continue
            is_finite = bool(np.isfinite(row).all())
            non_finite += not is_finite
            zero += is_finite and not row.any()
        return Examined(rows, damaged, non_finite, zero)

    def put(self, fingerprint: str, kind: str, content_ids: Sequence[str], raw: ArrayLike) -> int:
        """Stores features, the same content under the same tower once; returns how many rows are new.

        Where the home may only be read nothing is kept: they were computed all the same, and are so again.

        Raises:
            VectorError: Rows are not finite, or their number differs from the ids'.
            StoreFull: The disk has no room.
        """
        rows = finite_rows(raw)
        if len(rows) != len(content_ids):
            raise VectorError(
                f"{len(content_ids)} ids came with {len(rows)} vectors; each id needs exactly one."
            )
        if self._store.read_only:
            return 0
        try:
            return self._store.put_many(_records(fingerprint, kind, content_ids, rows))
        except StoreFull as error:
            if self._needs_room:
                raise
            logger.warning("%d features were not kept: %s", len(rows), error)
            return 0


@dataclass(frozen=True, slots=True)
class Examined:
    """How many rows are kept; of these, whose checksum fails, that are not finite, and that are all zero."""

    rows: int = 0
    damaged: int = 0
    non_finite: int = 0
    zero: int = 0


def _records(
    fingerprint: str, kind: str, content_ids: Sequence[str], rows: NDArray[np.float32]
) -> Iterator[tuple[bytes, bytes]]:
    for content_id, row in zip(content_ids, rows.astype(LITTLE_ENDIAN_FLOAT, copy=False), strict=True):
        yield _key(fingerprint, kind, content_id), row.tobytes()


def _key(fingerprint: str, kind: str, content_id: str) -> bytes:
    # NUL cannot occur in a fingerprint or a kind, so the joined text is unambiguous.
    return hashlib.sha256(f"{fingerprint}\0{kind}\0{content_id}".encode()).digest()[:16]
