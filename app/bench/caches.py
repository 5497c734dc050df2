"""What a cell keeps in memory, so that nothing is computed twice: features, and pictures at the size a tower takes.

A cell embeds the same pictures after every step; decoding and resizing took more than half of that (docs/log.md). What
is kept is the picture just before it becomes numbers: resizing it again changes no pixel.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from model_updates.features import FeatureCache, LoadImage, Rows
from model_updates.preprocessing import Preprocessing

MOST_BYTES = 1 << 30


class Overlay:
    """A feature cache that reads a home's and keeps its own in memory: a benchmark leaves no features behind."""

    def __init__(self, below: FeatureCache) -> None:
        self._below = below
        self._own: dict[tuple[str, str, str], Rows] = {}

    def get(
        self, fingerprint: str, kind: str, content_ids: Sequence[str], dim: int
    ) -> tuple[Rows, NDArray[np.bool_]]:
        """Returns the known rows (m, dim) in the order asked, and a mask (n,) saying which were known."""
        own = [self._own.get((fingerprint, kind, name)) for name in content_ids]
        missing = [name for name, row in zip(content_ids, own, strict=True) if row is None]
        kept, found = self._below.get(fingerprint, kind, missing, dim)
        below = iter(kept)
        known = iter(found.tolist())
        rows = [row if row is not None else (next(below) if next(known) else None) for row in own]
        mask = np.asarray([row is not None for row in rows], dtype=np.bool_)
        chosen = [row for row in rows if row is not None]
        return (np.stack(chosen) if chosen else np.empty((0, dim), dtype=np.float32)), mask

    def put(self, fingerprint: str, kind: str, content_ids: Sequence[str], rows: Rows, /) -> None:
        """Keeps rows (n, dim) in memory."""
        self._own |= {(fingerprint, kind, name): row for name, row in zip(content_ids, rows, strict=True)}

    def forget_but(self, fingerprints: set[str]) -> None:
        """Drops rows under other fingerprints: those of encoders that are gone."""
        self._own = {key: row for key, row in self._own.items() if key[0] in fingerprints}


def resized_once(load: LoadImage, preprocessing: Preprocessing, *, most_bytes: int = MOST_BYTES) -> LoadImage:
    """Returns a way to load pictures at the size that a tower takes, which remembers them.

    What comes after `most_bytes` of pixels is decoded each time.
    """
    resize = preprocessing.resized()
    kept: dict[str, Image.Image] = {}
    room = most_bytes // (3 * preprocessing.size**2)

    def resized(image_id: str) -> Image.Image:
        found = kept.get(image_id)
        if found is None:
            found = resize(load(image_id))
            if len(kept) < room:
                kept[image_id] = found
        return found

    return resized
