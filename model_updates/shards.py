"""Tensors cut into files in such a way that what did not change makes the same file again.

Versions share files with equal bytes, so a version that differs in a few tensors costs what those weigh. Tensors of one
part of a model (the first word of their names) lie together in files of up to `MOST_BYTES`, and a larger tensor is cut
by rows: a token table that grew at its end differs in its last file.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from model_updates.kept_tensors import ROW, KeptTensors

MOST_BYTES = 4 << 20  # a table that grew is written again from where it ended, so half of this on average


def write_shards(tensors: Mapping[str, NDArray[Any]], folder: Path, stem: str) -> list[str]:
    """Writes tensors into a folder as `<stem>-<part>-<number>.safetensors`, and returns the names of the files."""
    names = []
    for part, shards in groupby(_cut(tensors), key=lambda shard: _part(next(iter(shard)))):
        for number, shard in enumerate(shards):
            names.append(f"{stem}-{part}-{number:03}.safetensors")
            with saying_what_the_disk_said():
                save_file(
                    {key: np.asarray(value, order="C") for key, value in shard.items()}, folder / names[-1]
                )
    return names


@contextmanager
def saying_what_the_disk_said() -> Iterator[None]:
    """Turns what safetensors raises of the operating system in words alone, as of a full disk, into an `OSError`."""
    try:
        yield
    except SafetensorError as error:
        said = re.search(r"\(os error (\d+)\)", str(error))
        if said is None:
            raise
        raise OSError(int(said[1]), os.strerror(int(said[1]))) from error


def read_shards(files: Iterable[Path]) -> dict[str, NDArray[Any]]:
    """Reads what `write_shards` wrote, or whole tensors from any safetensors files, into memory of their own."""
    kept = KeptTensors(files)
    return {name: kept.copied(name) for name in kept.names()}


def _cut(tensors: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, NDArray[Any]]]:
    """Yields what goes into one file after another, those of one part of the model after each other."""
    for _, names in groupby(sorted(tensors), key=_part):
        shard: dict[str, NDArray[Any]] = {}
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
