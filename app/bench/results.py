"""Finished cells on disk: what each step cost, every recall, and which queries were answered.

A sequence has one file, `NAME.jsonl.xz`, with a line of JSON for each cell, ordered by strategy and seed: the same
cells make the same bytes. Pictures and captions are not in it. A slice is named by language, domain, kind and a digest
of its captions, a query by its number in the slice. Whether a query was answered is kept as a bit, after the step that
taught its slice and after the last step, so that two strategies can be compared query by query.
"""

import base64
import fcntl
import json
import lzma
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.desk.errors import UsageProblem
from app.home.durable import replace_file

FORMAT = 2
TOLD, SEARCHED = "told", "searched"
VIEWS = (TOLD, SEARCHED)
"""Whether a query's language was told, or found out as search does."""
Bits = NDArray[np.bool_]
PACKED = ("learned", "last", "last_ten")
"""Fields of `SliceRun` that are bits of queries."""


@dataclass(frozen=True, eq=False)
class SliceRun:
    """How one slice fared in one cell."""

    language: str  # of its captions
    domain: str  # of its pictures
    kind: str  # "trained" or "held-out"
    since: int  # number of the step that taught it; 0 for the base
    unseen: bool  # whether no step teaches it
    digest: str  # of its captions
    clusters: NDArray[np.int64]  # (n,) int64, equal where two queries ask for one thing, counted from 0
    # by view, a recall for each step from `since` on: name to percent
    recalls: Mapping[str, Sequence[Mapping[str, float]]]
    # by view, (n,) bool: first after the step that taught it (after the first for a slice of the base)
    learned: Mapping[str, Bits]
    last: Mapping[str, Bits]  # by view, (n,) bool: first after the last step
    last_ten: Mapping[str, Bits]  # by view, (n,) bool: among the first ten after the last step
    # (n,) int64, of R@1, 5 and 10 from a caption to its picture and back, how many found it: told, after the last step.
    # None in cells of before 2026-11-26
    six: NDArray[np.int64] | None = None


@dataclass(frozen=True, eq=False)
class Cell:
    """One finished cell."""

    sequence: str  # its name
    strategy: str  # label of the strategy, options included
    seed: int  # of the run
    steps: tuple[Mapping[str, Any], ...]  # what each cost; see `app.bench.teaching.StepRecord`
    slices: tuple[SliceRun, ...]  # how each fared
    peak_bytes: int  # most memory held
    digest: str  # of the sequence and the options that it is of
    options: Mapping[str, Any]  # that were given, tuned ones included
    # accuracy on the probe before the first step and after each, percent; empty without one
    probe: tuple[float, ...]
    # date, machine, torch, threads, processor time with measuring; since 2026-11-26 also the commit, the sha256 of the
    # data, versions, which package brought the strategy, and the sha256 of the code (`app.bench.sources`)
    made: Mapping[str, Any]


def results_path(folder: Path, sequence: str) -> Path:
    """Returns where the cells of a sequence are kept."""
    return folder / f"{sequence}.jsonl.xz"


def read_cells(folder: Path, sequence: str) -> dict[tuple[str, int], Cell]:
    """Returns the finished cells of a sequence by strategy and seed; those of another format are left out.

    Raises:
        UsageProblem: the file is damaged.
    """
    documents = _documents(results_path(folder, sequence))
    return {key: _cell(document) for key, document in documents.items() if document["format"] == FORMAT}


def write_cell(folder: Path, cell: Cell) -> None:
    """Writes a cell beside the others of its sequence, in place of an older one; others may write there meanwhile."""
    folder.mkdir(parents=True, exist_ok=True)
    path = results_path(folder, cell.sequence)
    with _only_writer(folder):
        documents = _documents(path) | {(cell.strategy, cell.seed): _document(cell)}
        lines = [
            json.dumps(document, ensure_ascii=False, separators=(",", ":"))
            for _, document in sorted(documents.items(), key=itemgetter(0))
        ]
        replace_file(path, lzma.compress("".join(f"{line}\n" for line in lines).encode()))


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Waits until no other process writes a cell in the folder; the lock ends with the process that holds it."""
    with (folder / ".lock").open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _documents(path: Path) -> dict[tuple[str, int], dict[str, Any]]:
    if not path.exists():
        return {}
    try:
        documents = [json.loads(line) for line in lzma.decompress(path.read_bytes()).splitlines()]
    except (lzma.LZMAError, ValueError) as error:
        raise UsageProblem(
            f"{path} is damaged ({error}). Restore it, or move it away to run its cells again."
        ) from error
    return {(document["strategy"], document["seed"]): document for document in documents}


def _document(cell: Cell) -> dict[str, Any]:
    return vars(cell) | {"format": FORMAT, "slices": [_slice_document(run) for run in cell.slices]}


def _cell(document: Mapping[str, Any]) -> Cell:
    said = {name: value for name, value in document.items() if name != "format"}
    slices = tuple(_slice_run(run) for run in document["slices"])
    return Cell(**said | {"slices": slices, "steps": tuple(said["steps"]), "probe": tuple(said["probe"])})


def _slice_document(run: SliceRun) -> dict[str, Any]:
    return vars(run) | {
        "queries": len(run.clusters),
        "clusters": base64.b64encode(run.clusters.astype("<u2").tobytes()).decode(),
        "recalls": {view: _columns(run.recalls[view]) for view in VIEWS},
        "six": None if run.six is None else base64.b64encode(run.six.astype(np.uint8).tobytes()).decode(),
        **{name: {view: _packed(getattr(run, name)[view]) for view in VIEWS} for name in PACKED},
    }


def _slice_run(document: Mapping[str, Any]) -> SliceRun:
    said = dict(document)
    count = said.pop("queries")
    clusters = np.frombuffer(base64.b64decode(said["clusters"]), dtype="<u2").astype(np.int64)
    recalls = {view: _rows(said["recalls"][view]) for view in VIEWS}
    six = said.pop("six", None)
    said["six"] = None if six is None else np.frombuffer(base64.b64decode(six), np.uint8).astype(np.int64)
    bits = {name: {view: _unpacked(said[name][view], count) for view in VIEWS} for name in PACKED}
    return SliceRun(**said | {"clusters": clusters, "recalls": recalls} | bits)


def _columns(steps: Sequence[Mapping[str, float]]) -> dict[str, list[float]]:
    return {name: [round(step[name], 2) for step in steps] for name in steps[0]}


def _rows(columns: Mapping[str, Sequence[float]]) -> list[dict[str, float]]:
    count = len(next(iter(columns.values())))
    return [{name: values[n] for name, values in columns.items()} for n in range(count)]


def _packed(bits: Bits) -> str:
    return base64.b64encode(np.packbits(bits).tobytes()).decode()


def _unpacked(text: str, count: int) -> Bits:
    packed = np.frombuffer(base64.b64decode(text), dtype=np.uint8)
    return np.unpackbits(packed, count=count).astype(np.bool_)
