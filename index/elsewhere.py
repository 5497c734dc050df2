"""Which vectors of a generation another engine than FAISS keeps, beside the files: those of its large segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from index.faiss_index import FaissVectors
from index.generation import Generation
from index.kinds import EXACT_BELOW
from index.manifest import Manifest, files_of, read_manifest, segments_of
from index.segment import file_names, open_segment
from index.vector_index import VectorEngine, VectorIndex

Rows = NDArray[np.float32]


def keep_vectors(engine: VectorEngine, folder: Path, queries: Callable[[], Rows]) -> int:
    """Has an engine keep the vectors of a generation's folder that it lacks; returns how many were copied.

    Raises:
        VectorsRefused: the database cannot have them.
        GenerationDamaged: a file of the folder cannot be read.
    """
    manifest, known, copied = read_manifest(folder), engine.known(), 0
    for digest, said in _large(folder, manifest):
        if digest not in known:
            stored = open_segment(folder, manifest, said, verify=True, use_gpu=False).index
            engine.make(digest, stored, said["factory"], queries)
            copied += stored.count if digest in engine.known() else 0  # its graph may find too little
    return copied


def has_moved(generation: Generation, known: Mapping[str, VectorIndex]) -> bool:
    """Whether an opened generation is not searched where its vectors are kept by now, by the sha256 of each file."""
    opened = {portion.number: portion.segment.index for portion in generation.portions}
    for digest, said in _large(generation.folder, generation.manifest):
        index = opened.get(said["number"])
        if index is not None and known.get(digest) != (None if isinstance(index, FaissVectors) else index):
            return True
    return False


def _large(folder: Path, manifest: Manifest) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the segments that are worth it: the sha256 of the index file, and what the manifest says."""
    files = files_of(folder, manifest)
    for said in segments_of(manifest):
        if said["count"] >= EXACT_BELOW:
            yield str(files[file_names(said["number"])[0]]["sha256"]), said
