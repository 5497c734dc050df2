"""The least that a search by text can be: onnxruntime, an index library, and nothing around them.

Run by `benchmarks/peers.py` in an environment without Perennial; tokens and pixels are prepared by rclip's functions.

    python peers_bare.py build LIBRARY INDEX VECTORS
    python peers_bare.py search LIBRARY INDEX MODEL TEXT
    python peers_bare.py loop LIBRARY INDEX MODEL SECONDS CLIENTS...
    python peers_bare.py add LIBRARY INDEX MODEL FOLDER

`loop` prints JSON: what `asked` returns for each number of clients, and memory in MB. That function asks servers, too.
"""

from __future__ import annotations

import itertools
import json
import resource
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np

HITS = 24
COLOURS = ("two red", "a black", "three white", "an old", "a small", "my yellow")
THINGS = ("boats", "houses", "cats", "trees", "birds", "cars", "horses", "dogs")
PLACES = ("on the beach", "in the snow", "at night", "in a city", "by the sea", "at sunset", "in the desert")
DIM = 512
_BATCH = 16


class Index(Protocol):
    """What a library does with the vectors."""

    def add(self, rows: np.ndarray) -> None:
        """Takes rows of length 1 in."""

    def nearest(self, row: np.ndarray) -> np.ndarray:
        """Returns the numbers of the nearest."""

    def write(self, path: Path) -> None:
        """Writes the whole index."""


class Faiss:
    """Exact, as Perennial and clip-retrieval are asked here."""

    def __init__(self, path: Path | None) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self._faiss = faiss
        self._index = faiss.IndexFlatIP(DIM) if path is None else faiss.read_index(str(path))

    def add(self, rows: np.ndarray) -> None:
        """Takes rows in."""
        self._index.add(rows)

    def nearest(self, row: np.ndarray) -> np.ndarray:
        """Returns the numbers of the nearest."""
        found: np.ndarray = self._index.search(row[None], HITS)[1][0]
        return found

    def write(self, path: Path) -> None:
        """Writes the whole index."""
        self._faiss.write_index(self._index, str(path))


class Hnswlib:
    """A graph: approximate."""

    def __init__(self, path: Path | None) -> None:
        import hnswlib

        self._index = hnswlib.Index("ip", DIM)
        if path is None:
            self._index.init_index(0, ef_construction=100, M=16)
        else:
            self._index.load_index(str(path))
        self._index.set_num_threads(1)
        self._index.set_ef(64)

    def add(self, rows: np.ndarray) -> None:
        """Takes rows in."""
        self._index.resize_index(self._index.element_count + len(rows))
        self._index.add_items(rows)

    def nearest(self, row: np.ndarray) -> np.ndarray:
        """Returns the numbers of the nearest."""
        found: np.ndarray = self._index.knn_query(row, HITS)[0][0]
        return found

    def write(self, path: Path) -> None:
        """Writes the whole index."""
        self._index.save_index(str(path))


class Usearch:
    """A graph: approximate."""

    def __init__(self, path: Path | None) -> None:
        from usearch.index import Index as Graph

        self._index = Graph(ndim=DIM, metric="ip", dtype="f32")
        if path is not None:
            self._index.load(str(path))

    def add(self, rows: np.ndarray) -> None:
        """Takes rows in."""
        self._index.add(np.arange(len(self._index), len(self._index) + len(rows)), rows, threads=1)

    def nearest(self, row: np.ndarray) -> np.ndarray:
        """Returns the numbers of the nearest."""
        found: np.ndarray = self._index.search(row, HITS, threads=1).keys
        return found

    def write(self, path: Path) -> None:
        """Writes the whole index."""
        self._index.save(str(path))


LIBRARIES: dict[str, Callable[[Path | None], Index]] = {
    "faiss": Faiss,
    "hnswlib": Hnswlib,
    "usearch": Usearch,
}


def asked(
    call: Callable[[str], object], clients: int, seconds: float, cpu: Callable[[], float] = time.process_time
) -> dict[str, float]:
    """Asks different texts from some threads, each one query after another, for some seconds.

    `cpu` reads the seconds of processor time of what answers.

    Returns:
        `p50`, `p99` and `cpu`, processor time a query, in milliseconds; `rate`, queries a second; `asked`, how many.
    """
    took: list[float] = []
    texts, begun, used = queries(), time.perf_counter(), cpu()

    def client() -> None:
        while True:
            text, since = next(texts), time.perf_counter()
            call(text)
            took.append(time.perf_counter() - since)
            if time.perf_counter() > begun + seconds:
                return

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    whole = time.perf_counter() - begun
    p50, p99 = (1000 * float(np.quantile(took, share)) for share in (0.5, 0.99))
    each = 1000 * (cpu() - used) / len(took)
    return {"p50": p50, "p99": p99, "cpu": each, "rate": len(took) / whole, "asked": len(took)}


def queries() -> Iterator[str]:
    """Yields texts of which no two are the same in a process, so that no cache of answers helps anybody."""
    return map(_text, _numbers)  # not a generator, in which two threads cannot be at once


def _text(n: int) -> str:
    return f"{COLOURS[n % 6]} {THINGS[n % 8]} {PLACES[n % 7]} with {n} others"


_numbers = itertools.count(time.time_ns() % 10**6)


def main() -> None:
    """Does what the words say; see above."""
    verb, library, index, *words = sys.argv[1:]
    kind, path = LIBRARIES[library], Path(index)
    if verb == "build":
        made = kind(None)
        made.add(np.load(words[0]))
        made.write(path)
        return
    model = Path(words[0])
    if verb == "add":
        rows = _pictures(model, sorted(Path(words[1]).iterdir()))
        grown = kind(path)
        grown.add(rows)
        grown.write(path)
        return
    read = _reader(model)  # first: onnxruntime does not load after usearch
    opened = kind(path)
    if verb == "search":
        print(opened.nearest(read(words[1])))
    else:
        print(json.dumps(_loop(opened, read, float(words[1]), [int(n) for n in words[2:]])))


def _session(file: Path) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])


def _reader(model: Path) -> Callable[[str], np.ndarray]:
    """Returns what maps a text to a row of length 1."""
    from rclip.utils.tokenizer import SimpleTokenizer

    tokenizer = SimpleTokenizer(str(model.parent / "tokenizer" / "bpe_simple_vocab_16e6.txt.gz"))
    session = _session(model / "textual.onnx")

    def read(text: str) -> np.ndarray:
        row: np.ndarray = _unit(session.run(None, {"input": tokenizer([text])})[0])[0]
        return row

    return read


def _pictures(model: Path, files: list[Path]) -> np.ndarray:
    """Returns (n, DIM) rows of length 1 of picture files."""
    from PIL import Image
    from rclip.utils.preprocess import preprocess

    session = _session(model / "visual.onnx")
    rows = []
    for start in range(0, len(files), _BATCH):
        pixels = np.stack([preprocess(Image.open(file)) for file in files[start : start + _BATCH]])
        rows.append(session.run(None, {"input": pixels})[0])
    return _unit(np.concatenate(rows))


def _unit(rows: np.ndarray) -> np.ndarray:
    divided: np.ndarray = rows / np.linalg.norm(rows, axis=-1, keepdims=True)
    return divided


def _loop(index: Index, read: Callable[[str], np.ndarray], seconds: float, clients: list[int]) -> Any:
    index.nearest(read("the first query is slower"))
    ready = time.process_time()
    load = {str(n): asked(lambda text: index.nearest(read(text)), n, seconds) for n in clients}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    return {"load": load, "memory": peak, "ready": ready}


if __name__ == "__main__":
    main()
