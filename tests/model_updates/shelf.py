"""A feature cache in memory, which tests can look into."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from model_updates.search_encoder import Rows


class Shelf:
    """A cache in a dictionary."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, str], NDArray[np.float32]] = {}

    def get(
        self, fingerprint: str, kind: str, content_ids: Sequence[str], dim: int
    ) -> tuple[Rows, NDArray[np.bool_]]:
        known = np.array([(fingerprint, kind, i) in self.rows for i in content_ids], dtype=np.bool_)
        rows = [self.rows[fingerprint, kind, i] for i in content_ids if (fingerprint, kind, i) in self.rows]
        return np.array(rows, dtype=np.float32).reshape(len(rows), dim), known

    def put(self, fingerprint: str, kind: str, content_ids: Sequence[str], rows: Rows) -> None:
        self.rows |= {(fingerprint, kind, i): row.copy() for i, row in zip(content_ids, rows, strict=True)}
