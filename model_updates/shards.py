"""Tensors cut into files in such a way that what did not change makes the same file again.

Versions share files with equal bytes, so a version that differs in a few tensors costs what those weigh. Tensors of one
part of a model (the first word of their names) lie together in files of up to `MOST_BYTES`, and a larger tensor is cut
by rows: a token table that grew at its end differs in its last file.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from model_updates.kept_tensors import ROW

MOST_BYTES = 4 << 20  # a table that grew is written again from where it ended, so half of this on average


def write_shards(tensors: Mapping[str, Tensor], folder: Path, stem: str) -> list[str]:
    """Writes tensors into a folder as `<stem>-<part>-<number>.safetensors`, and returns the names of the files."""
    names = []
    for part, shards in groupby(_cut(tensors), key=lambda shard: _part(next(iter(shard)))):
        for number, shard in enumerate(shards):
            names.append(f"{stem}-{part}-{number:03}.safetensors")
            save_file(
                {key: v.detach().cpu().clone().contiguous() for key, v in shard.items()}, folder / names[-1]
            )
    return names


def read_shards(files: Iterable[Path]) -> dict[str, Tensor]:
    """Reads what `write_shards` wrote, or whole tensors from any safetensors files, into memory of their own.

    Raises:
        SafetensorError: one of them is none.
    """
    whole: dict[str, Tensor] = {}
    pieces: dict[str, dict[int, tuple[Path, str]]] = {}
    for path in files:
        with safe_open(path, framework="pt") as opened:
            for key in opened.keys():  # noqa: SIM118 - no mapping
                name, _, row = key.partition(ROW)
                if row:
                    pieces.setdefault(name, {})[int(row)] = (path, key)
                else:
                    whole[name] = opened.get_tensor(key).clone()
    return whole | {name: _joined(found) for name, found in pieces.items()}


def _cut(tensors: Mapping[str, Tensor]) -> Iterator[dict[str, Tensor]]:
    """Yields what goes into one file after another, those of one part of the model after each other."""
    for _, names in groupby(sorted(tensors), key=_part):
        shard: dict[str, Tensor] = {}
        large = []
        for name in names:
            if tensors[name].nbytes > MOST_BYTES and tensors[name].ndim:
                large.append(name)
                continue
            if shard and sum(one.nbytes for one in shard.values()) + tensors[name].nbytes > MOST_BYTES:
                yield shard
                shard = {}
            shard[name] = tensors[name]
        if shard:
            yield shard
        for name in large:
            rows = max(1, MOST_BYTES * len(tensors[name]) // tensors[name].nbytes)
            for first in range(0, len(tensors[name]), rows):
                yield {f"{name}{ROW}{first}": tensors[name][first : first + rows]}


def _part(key: str) -> str:
    return key.partition(ROW)[0].split(".")[0]


def _joined(pieces: Mapping[int, tuple[Path, str]]) -> Tensor:
    """Reads the pieces of a tensor one by one, so that it is never in memory twice."""
    last = max(pieces)
    joined = torch.empty(0)
    for first in sorted(pieces, reverse=True):
        path, key = pieces[first]
        with safe_open(path, framework="pt") as opened:
            piece = opened.get_tensor(key)
        if first == last:
            joined = torch.empty((last + len(piece), *piece.shape[1:]), dtype=piece.dtype)
        joined[first : first + len(piece)] = piece
    return joined
