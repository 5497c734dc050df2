"""The sketch by which near-copies are found: 81 bytes that JPEG, scaling and a small crop hardly change.

The low frequencies of a picture's brightness, mean and contrast taken out, and of its two colour differences.
Unlike the usual perceptual hash (the signs of those numbers) it keeps how large they are: on drawings with
much white most of them are near zero and their signs are noise. Distances were measured on emoji, drawn
scenes and photographs (docs/log.md).
"""

import numpy as np
from numpy.typing import NDArray
from PIL import Image

_SIDE = 32
_BRIGHTNESS = 8  # frequencies a side; the constant one is left out
_COLOUR = 3
SKETCH_BYTES = _BRIGHTNESS**2 - 1 + 2 * _COLOUR**2
_SMALLEST = 32  # pixels a side; of an icon too little is left to tell it from another
_FLAT = 3.0  # standard deviation in grey levels; with less there is nothing to tell a picture by
_STEP = 1 / 120  # of brightness, whose coefficients are in [-1, 1]
_COLOUR_STEP = 1.0  # of colour, in levels of 256
_CROWD = 40  # of one picture's likely ones no more are kept while they are ranked
# How far apart sketches of one picture are at most: relative for brightness, in grey levels for colour.
BRIGHTNESS_APART = 0.36
COLOUR_APART = 20.0


def _frequencies(count: int, side: int) -> NDArray[np.float32]:
    """Returns the first rows of the orthonormal DCT-II: float32 (count, side)."""
    rows = np.cos(np.pi * (np.arange(side)[None, :] + 0.5) * np.arange(count)[:, None] / side)
    found: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return found


_OF_BRIGHTNESS = _frequencies(_BRIGHTNESS, _SIDE)
_OF_COLOUR = _frequencies(_COLOUR, _SIDE)


def sketch_of(image: Image.Image) -> bytes:
    """Returns the sketch of an RGB picture; nothing at all for one that is nearly flat or an icon."""
    if min(image.size) < _SMALLEST:
        return b""
    small = image.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0).convert("YCbCr")
    levels = np.asarray(small, dtype=np.float32)
    grey = levels[..., 0] - levels[..., 0].mean()
    size = float(np.linalg.norm(grey))
    if size < _FLAT * _SIDE:
        return b""
    brightness = (_OF_BRIGHTNESS @ (grey / size) @ _OF_BRIGHTNESS.T).ravel()[1:] / _STEP
    colours = [_OF_COLOUR @ (levels[..., n] - 128) @ _OF_COLOUR.T / _SIDE for n in (1, 2)]
    numbers = np.concatenate([brightness, *(colour.ravel() / _COLOUR_STEP for colour in colours)])
    kept: NDArray[np.int8] = np.clip(np.rint(numbers), -127, 127).astype(np.int8)
    return kept.tobytes()


def as_rows(sketches: list[bytes]) -> NDArray[np.float32]:
    """Returns sketches, none empty, as float32 (n, 81), scaled so that one picture's are at most 1 apart.

    One apart in brightness alone or in colour alone: `likely` looks at both.
    """
    rows = np.frombuffer(b"".join(sketches), dtype=np.int8).reshape(-1, SKETCH_BYTES).astype(np.float32)
    rows[:, : _BRIGHTNESS**2 - 1] *= _STEP / BRIGHTNESS_APART
    rows[:, _BRIGHTNESS**2 - 1 :] *= _COLOUR_STEP / COLOUR_APART
    return rows


def likely(rows: NDArray[np.float32], others: NDArray[np.float32], most: int) -> list[tuple[int, int]]:
    """Returns `(row, other)` of sketches near enough to be looked at closely, nearest first for each row."""
    split = _BRIGHTNESS**2 - 1
    squares = (others**2).sum(axis=1)
    found: list[tuple[int, int]] = []
    block = max(1, 8_000_000 // max(1, len(others)))  # 32 MB of products at a time
    for start in range(0, len(rows), block):
        part = rows[start : start + block]
        # |a - b|² <= 2, both differences of at most 1: rearranged, so that the large array is made only once.
        closeness = part @ others.T
        closeness -= squares / 2
        near, other = np.nonzero(_closest(closeness, ((part**2).sum(axis=1) - 2) / 2))
        differences = (part[near] - others[other]) ** 2
        brightness, colour = differences[:, :split].sum(axis=1), differences[:, split:].sum(axis=1)
        within = (brightness <= 1) & (colour <= 1)
        near, other, apart = near[within], other[within], (brightness + colour)[within]
        order = np.lexsort((other, apart, near))
        near, other = near[order], other[order]
        rank = np.arange(len(near)) - np.searchsorted(near, near)
        kept = rank < most
        found.extend(zip((near[kept] + start).tolist(), other[kept].tolist(), strict=True))
    return found


def _closest(closeness: NDArray[np.float32], least: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Marks in each row what is close enough; the closest alone where very many pictures look alike."""
    marked: NDArray[np.bool_] = closeness >= least[:, None]
    for row in np.flatnonzero(marked.sum(axis=1) > _CROWD):
        closest = np.argpartition(-closeness[row], _CROWD)[:_CROWD]
        marked[row] = False
        marked[row, closest] = True
    return marked
