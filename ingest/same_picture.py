"""Whether two pictures are one picture saved twice: laid over each other, does anything differ?

One may be scaled, recompressed, cropped by a few hundredths, brighter or paler. So the second is moved,
stretched and its brightness changed until it fits the first best (Lucas and Kanade, 1981, from coarse to
fine); what then still differs in one place is a difference of content: another clock hand, another flag.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

Levels = NDArray[np.float32]

_SIDE = 64
_COLOUR_SIDE = 16
_SMALL = 64  # pixels; of a smaller picture only half the detail is compared
_COARSE, _COARSE_STEPS, _FINE_STEPS = 4, 4, 2
# Slopes of fine lines come out too small and steps too large: whole ones swing around the place.
_DAMPING = 0.6
_MARGIN = 0.05  # of a side; what a crop may have cut away
_MOST_STRETCH, _MOST_SHIFT = 0.08, 0.05
_COARSE_APART = 0.45  # of the contrast, on average; spares most pairs the closer look
# What may differ in the worst place, of the picture's contrast. Measured: docs/log.md.
_PLACE_APART = 0.27
_PLACE_APART_SMALL = 0.25
# In levels of colour, after a change of all colours alike.
_COLOUR_PLACE_APART = 12.0
_COLOUR_PLACE_APART_SMALL = 16.0  # JPEG keeps a quarter of a small picture's few colour pixels
_COLOUR_ALL_APART = 14.0
_COLOUR_STRENGTH = (0.6, 1.6)
_COLOUR_PLACE = 3


@dataclass(frozen=True, slots=True)
class Detail:
    """A picture as it is compared: brightness (64, 64) and two colour differences (2, 16, 16), in levels."""

    brightness: Levels
    colour: Levels
    small: bool


def detail_of(image: Image.Image) -> Detail:
    """Returns what an RGB picture is compared by."""
    scaled = image.resize((_SIDE, _SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0).convert("YCbCr")
    levels = np.moveaxis(np.asarray(scaled, dtype=np.float32), 2, 0)
    colour = np.stack([_pooled(channel, _SIDE // _COLOUR_SIDE) for channel in levels[1:]])
    return Detail(np.ascontiguousarray(levels[0]), colour, min(image.size) < _SMALL)


def same_picture(first: Detail, second: Detail) -> bool:
    """Returns whether one is the other saved another way, and not another picture that looks like it."""
    if first.brightness.std() < second.brightness.std():  # the answer does not depend on which came first
        first, second = second, first
    coarse = _Fit(_pooled(first.brightness, _COARSE), _pooled(second.brightness, _COARSE))
    coarse.improve(_COARSE_STEPS)
    left, contrast = coarse.left()
    if np.sqrt((left**2).mean()) > _COARSE_APART * contrast:
        return False
    fine = _Fit(first.brightness, second.brightness, coarse.place)
    fine.improve(_FINE_STEPS)
    small = first.small or second.small
    left, contrast = fine.left(pool=4 if small else 2)
    worst = _worst_place(left, 2 if small else 3)
    if worst > (_PLACE_APART_SMALL if small else _PLACE_APART) * contrast:
        return False
    limit = _COLOUR_PLACE_APART_SMALL if small else _COLOUR_PLACE_APART
    return all(
        _same_colour(one, fine.moved(other), limit)
        for one, other in zip(first.colour, second.colour, strict=True)
    )


class _Fit:
    """Where the second picture lies on the first: stretch and shift of rows, then of columns, in sides."""

    def __init__(self, first: Levels, second: Levels, place: NDArray[np.float64] | None = None) -> None:
        self._first, self._second = first, second
        self.place = np.zeros(4) if place is None else place
        side = len(first)
        self._inner = slice(max(1, round(_MARGIN * side)), side - max(1, round(_MARGIN * side)))
        self._along = ((np.arange(side) + 0.5) / side - 0.5).astype(np.float32)

    def moved(self, levels: Levels) -> Levels:
        """Returns square levels of any size as they lie on the first picture."""
        rows = _sampling(len(levels), self.place[0], self.place[1])
        columns = _sampling(len(levels), self.place[2], self.place[3])
        return (rows @ levels @ columns.T).astype(np.float32)

    def improve(self, steps: int) -> None:
        """Moves towards the least squares of first - (gain * second + offset), linearised, so many times."""
        wanted = self._first[self._inner, self._inner].ravel()
        along = self._along[self._inner]
        limits = np.array([_MOST_STRETCH, _MOST_SHIFT, _MOST_STRETCH, _MOST_SHIFT])
        for _ in range(steps):
            moved = self.moved(self._second)
            down, across = self._slopes(moved)
            columns = [down * along[:, None], down, across * along, across, moved[self._inner, self._inner]]
            design = np.stack([*(column.ravel() for column in columns), np.ones_like(wanted)])
            normal = (design @ design.T).astype(np.float64)
            # A picture without edges in one direction cannot say where it lies in it: it stays.
            normal[np.diag_indices(6)] += [1e-4 * np.trace(normal[:4, :4]) / 4] * 4 + [1e-6, 1e-6]
            solved = np.linalg.solve(normal, design @ wanted)
            gain = max(float(solved[4]), 0.2)
            self.place = np.clip(self.place + _DAMPING * solved[:4] / gain, -limits, limits)

    def _slopes(self, levels: Levels) -> tuple[Levels, Levels]:
        """Returns the slopes of the inner part, down and across, in levels a side."""
        start, end, half = self._inner.start, self._inner.stop, np.float32(len(levels) / 2)
        down = levels[start + 1 : end + 1, self._inner] - levels[start - 1 : end - 1, self._inner]
        across = levels[self._inner, start + 1 : end + 1] - levels[self._inner, start - 1 : end - 1]
        return down * half, across * half

    def left(self, pool: int = 1) -> tuple[Levels, float]:
        """Returns what differs after the best gain and offset, pooled, and the first picture's contrast."""
        first = self._first[self._inner, self._inner]
        second = self.moved(self._second)[self._inner, self._inner]
        end = len(first) // pool * pool
        first, second = (_pooled(levels[:end, :end], pool) for levels in (first, second))
        contrast = float(np.sqrt(first.var() + 1))
        return _after_tone(first, second), contrast


def _after_tone(first: Levels, second: Levels) -> Levels:
    """Returns what differs when the second's tones are bent to the first's: brighter, paler, clipped a little."""
    scaled = (second - second.mean()) / max(float(second.std()), 1.0)
    curve = np.stack([np.ones_like(scaled), scaled, scaled**2], axis=-1).reshape(-1, 3)
    fitted = curve @ np.linalg.lstsq(curve, first.ravel(), rcond=None)[0]
    left: Levels = (first - fitted.reshape(first.shape)).astype(np.float32)
    return left


def _same_colour(first: Levels, second: Levels, limit: float) -> bool:
    mean, other_mean = float(first.mean()), float(second.mean())
    if abs(mean - other_mean) > _COLOUR_ALL_APART:
        return False
    centred = second - other_mean
    spread = float((centred**2).sum())
    strength = float((centred * (first - mean)).sum()) / spread if spread > 4 * centred.size else 1.0
    left = first - mean - np.clip(strength, *_COLOUR_STRENGTH) * centred
    return float(np.abs(_places(left, _COLOUR_PLACE)).max()) <= limit * _COLOUR_PLACE**2


def _sampling(side: int, stretch: float, shift: float) -> Levels:
    """Returns the matrix (side, side) that reads a row of pixels elsewhere, by cubic interpolation (Keys)."""
    along = (np.arange(side) + 0.5) / side - 0.5
    at = np.clip(((1 + stretch) * along + shift + 0.5) * side - 0.5, 0, side - 1)
    # Four pixels around each place; those beyond the edge are cut off.
    taps = np.floor(at).astype(int)[:, None] + np.arange(-1, 3)
    apart = np.abs(at[:, None] - taps)
    near = 1 + apart**2 * (1.5 * apart - 2.5)
    far = 2 + apart * (-4 + apart * (2.5 - 0.5 * apart))
    weights = np.where((taps < 0) | (taps >= side), 0.0, np.where(apart < 1, near, far))
    wide = np.zeros((side, side + 3), np.float32)
    wide[np.arange(side)[:, None], taps + 1] = weights / weights.sum(axis=1, keepdims=True)
    return wide[:, 1 : side + 1]


def _pooled(levels: Levels, size: int) -> Levels:
    rows, columns = levels.shape[0] // size, levels.shape[1] // size
    pooled: Levels = levels.reshape(rows, size, columns, size).mean(axis=(1, 3))
    return pooled


def _worst_place(left: Levels, size: int) -> float:
    """Returns the largest root mean square of any square of `size` pixels."""
    return float(np.sqrt(max(float(_places(left**2, size).max()), 0.0))) / size


def _places(levels: Levels, size: int) -> NDArray[np.float64]:
    """Returns the sum of every square of `size` pixels."""
    sums = np.pad(levels.astype(np.float64).cumsum(axis=0).cumsum(axis=1), ((1, 0), (1, 0)))
    found: NDArray[np.float64] = sums[size:, size:] - sums[:-size, size:]
    found += sums[:-size, :-size] - sums[size:, :-size]
    return found
