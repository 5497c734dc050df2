"""Tensors of a version's files as arrays that are mapped and not read, however they are cut; see `shards.py`."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROW = "@"
"""Between a tensor's name and the row that its piece begins at; no parameter's name has one."""
_DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}


class KeptTensors:
    """The tensors of some safetensors files by name.

    Source: the format's description (safetensors, *Format*): eight bytes of length, a JSON header, then the data.
    """

    def __init__(self, files: Iterable[Path]) -> None:
        self._pieces: dict[str, dict[int, tuple[Path, int, dict[str, Any]]]] = {}
        for file in files:
            with file.open("rb") as opened:
                length = int.from_bytes(opened.read(8), "little")
                header = json.loads(opened.read(length))
            for key, said in header.items():
                if key != "__metadata__":
                    name, _, row = key.partition(ROW)
                    self._pieces.setdefault(name, {})[int(row or 0)] = (file, 8 + length, said)

    def __contains__(self, name: str) -> bool:
        return name in self._pieces

    def names(self) -> list[str]:
        """Returns the names of the tensors, sorted."""
        return sorted(self._pieces)

    def array(self, name: str) -> NDArray[Any]:
        """Returns a whole tensor; in memory where it is cut, mapped where it is not."""
        pieces = [_mapped(*piece) for _, piece in sorted(self._pieces[name].items())]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def copied(self, name: str) -> NDArray[Any]:
        """Returns a whole tensor in memory of its own, in which it never stands twice."""
        pieces = [_mapped(*piece) for _, piece in sorted(self._pieces[name].items())]
        return np.concatenate(pieces) if pieces[0].ndim else pieces[0]

    def rows(self, name: str) -> "KeptRows":
        """Returns a tensor of which single rows are read."""
        pieces = sorted(self._pieces[name].items())
        return KeptRows([first for first, _ in pieces], [_mapped(*piece) for _, piece in pieces])


class KeptRows:
    """Rows of a tensor that lies in files."""

    def __init__(self, firsts: list[int], pieces: list[NDArray[Any]]) -> None:
        self._firsts, self._pieces = np.asarray(firsts), pieces

    def __getitem__(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        """Returns (…, width) float32 of row numbers of any shape."""
        flat = rows.ravel()
        found = np.empty((len(flat), self._pieces[0].shape[1]), dtype=np.float32)
        place = np.searchsorted(self._firsts, flat, side="right") - 1
        for piece in np.unique(place):
            own = place == piece
            found[own] = self._pieces[piece][flat[own] - self._firsts[piece]]
        return found.reshape(*rows.shape, -1)


def _mapped(file: Path, start: int, said: dict[str, Any]) -> NDArray[Any]:
    offset = start + said["data_offsets"][0]
    shape = tuple(said["shape"])
    if 0 in shape or not shape:  # a single number has no axis to map
        count = 0 if 0 in shape else 1
        values = np.fromfile(file, dtype=_DTYPES[said["dtype"]], count=count, offset=offset)
        return values.reshape(shape)
    return np.memmap(file, dtype=_DTYPES[said["dtype"]], mode="r", offset=offset, shape=shape)
