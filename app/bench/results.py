"""A finished cell as a small JSON file: what each step cost, every recall, and which queries were answered.

Pictures and captions are not in it: a slice is named by language, domain, kind and a digest of its captions, a query by
its number in it. Of the queries' hits those after the step that taught a slice and after the last are kept, packed to
bits, so that two strategies can be compared query by query.
"""

from __future__ import annotations

import base64
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from app.bench.cell import CellResult
from app.bench.matrix import VIEWS, Looked
from app.bench.sequence import BenchSequence, Compared

FORMAT = 1
Bits = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class SliceRun:
    """How one slice fared in one cell.

    Attributes:
        language: of its captions.
        domain: of its pictures.
        kind: "trained" or "held-out".
        since: number of the step that taught it; 0 for the base.
        unseen: whether no step teaches it.
        digest: of its captions.
        clusters: (n,) int64, equal where two queries ask for one thing, counted from 0.
        recalls: by view, a recall for each step from `since` on: name to percent.
        learned: by view, (n,) bool: first after the step that taught it (after the first for a slice of the base).
        last: by view, (n,) bool: first after the last step.
        last_ten: by view, (n,) bool: among the first ten after the last step.
    """

    language: str
    domain: str
    kind: str
    since: int
    unseen: bool
    digest: str
    clusters: NDArray[np.int64]
    recalls: Mapping[str, Sequence[Mapping[str, float]]]
    learned: Mapping[str, Bits]
    last: Mapping[str, Bits]
    last_ten: Mapping[str, Bits]


@dataclass(frozen=True, eq=False)
class Cell:
    """One finished cell.

    Attributes:
        sequence: its name.
        strategy: label of the strategy, options included.
        seed: of the run.
        steps: what each cost; see `app.bench.teaching.StepRecord`.
        slices: how each fared.
        peak_bytes: most memory held.
        digest: of the sequence and the options that it is of.
        options: that were given, tuned ones included.
        probe: accuracy on the probe before the first step and after each, percent; empty without one.
        made: date, machine, torch, threads, and processor time with measuring.
    """

    sequence: str
    strategy: str
    seed: int
    steps: tuple[Mapping[str, Any], ...]
    slices: tuple[SliceRun, ...]
    peak_bytes: int
    digest: str
    options: Mapping[str, Any]
    probe: tuple[float, ...]
    made: Mapping[str, Any]


def cell_path(folder: Path, sequence: str, strategy: str, seed: int) -> Path:
    """Returns where a cell is kept."""
    safe = re.sub(r"[^A-Za-z0-9+=,.-]", "_", strategy)
    return folder / sequence / f"{safe}.{seed}.json"


def cell_of(sequence: BenchSequence, compared: Compared, seed: int, result: CellResult) -> Cell:
    """Returns a run as what is kept of it."""
    material = result.material
    names = {name: n for n, name in enumerate(sorted({g for one in material.slices for g in one.groups}))}
    runs = []
    for number, one in enumerate(material.slices):
        looked = [found for step in result.looked for found in step if found.slice == number]
        runs.append(
            SliceRun(
                one.key.language,
                one.key.domain,
                one.kind,
                one.since,
                one.unseen,
                one.digest,
                np.asarray([names[group] for group in one.groups], dtype=np.int64),
                {view: [found.recalls[view] for found in looked] for view in VIEWS},
                _bits(looked[0]),
                _bits(looked[-1]),
                dict(looked[-1].ten),
            )
        )
    return Cell(
        sequence.name,
        compared.label,
        seed,
        tuple(asdict(step) for step in result.steps),
        tuple(runs),
        result.peak_bytes,
        sequence.digest(compared),
        sequence.options_of(compared),
        result.probe,
        made_here() | {"cpu_seconds": result.cpu_seconds},
    )


def made_here() -> dict[str, Any]:
    """Returns when and on what a run was made."""
    return {
        "date": date.today().isoformat(),  # noqa: DTZ011 - a day is enough, and it is the machine's own
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__.partition("+")[0],
    }


def write_cell(path: Path, cell: Cell) -> None:
    """Writes a cell; a file that is there is whole."""
    document = {
        "format": FORMAT,
        "sequence": cell.sequence,
        "digest": cell.digest,
        "strategy": cell.strategy,
        "seed": cell.seed,
        "options": dict(cell.options),
        "probe_accuracy": list(cell.probe),
        "made": dict(cell.made),
        "peak_bytes": cell.peak_bytes,
        "steps": [dict(step) for step in cell.steps],
        "slices": [_slice_json(run) for run in cell.slices],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(_one_line_each(document), encoding="utf-8")
    partial.replace(path)


def read_cell(path: Path) -> Cell | None:
    """Reads a cell; None where there is none of this format."""
    if not path.exists():
        return None
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("format") != FORMAT:
        return None
    return Cell(
        document["sequence"],
        document["strategy"],
        document["seed"],
        tuple(document["steps"]),
        tuple(_slice_run(said) for said in document["slices"]),
        document["peak_bytes"],
        document["digest"],
        document["options"],
        tuple(document["probe_accuracy"]),
        document["made"],
    )


def _bits(looked: Looked) -> dict[str, Bits]:
    return dict(looked.first)


def _slice_json(run: SliceRun) -> dict[str, Any]:
    return {
        "language": run.language,
        "domain": run.domain,
        "kind": run.kind,
        "since": run.since,
        "unseen": run.unseen,
        "digest": run.digest,
        "queries": len(run.clusters),
        "clusters": base64.b64encode(run.clusters.astype("<u2").tobytes()).decode(),
        "recalls": {view: _columns(run.recalls[view]) for view in VIEWS},
        "learned": {view: _packed(run.learned[view]) for view in VIEWS},
        "last": {view: _packed(run.last[view]) for view in VIEWS},
        "last_ten": {view: _packed(run.last_ten[view]) for view in VIEWS},
    }


def _slice_run(said: Mapping[str, Any]) -> SliceRun:
    count = said["queries"]
    return SliceRun(
        said["language"],
        said["domain"],
        said["kind"],
        said["since"],
        said["unseen"],
        said["digest"],
        np.frombuffer(base64.b64decode(said["clusters"]), dtype="<u2").astype(np.int64),
        {view: _rows(said["recalls"][view]) for view in VIEWS},
        {view: _unpacked(said["learned"][view], count) for view in VIEWS},
        {view: _unpacked(said["last"][view], count) for view in VIEWS},
        {view: _unpacked(said["last_ten"][view], count) for view in VIEWS},
    )


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


def _one_line_each(document: Mapping[str, Any]) -> str:
    """Steps and slices on a line each, so that a file is small and its changes can be read."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list):
            rows = ",\n".join("  " + json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f" {json.dumps(key)}: [\n{rows}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"
