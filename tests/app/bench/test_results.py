"""Cells on disk: kept beside one another, the same in the same bytes, none lost to another writer."""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.bench.results import read_cells, results_path, write_cell
from app.desk.errors import UsageProblem
from tests.app.bench.cells import cell, slice_run

WRITER = """
import sys
from pathlib import Path
from app.bench.results import write_cell
from tests.app.bench.cells import cell, slice_run

for seed in range(20):
    write_cell(Path(sys.argv[1]), cell([slice_run([50])], strategy=sys.argv[2], seed=seed))
"""


def test_a_cell_is_read_as_it_was_written(tmp_path: Path) -> None:
    slices = [
        slice_run(
            [12.5, 50], clusters=[0, 1, 1, 0], learned=[1, 0, 0, 1], last=[0, 1, 1, 1], six=[0, 6, 3, 1]
        )
    ]
    written = cell(slices, strategy="teir,lambda=0.5", seed=3, probe=[50.0, 62.5])
    write_cell(tmp_path, written)
    (read,) = read_cells(tmp_path, "made-up").values()
    assert vars(read) | {"slices": ()} == vars(written) | {"slices": ()}
    for name, value in vars(slices[0]).items():
        np.testing.assert_equal(vars(read.slices[0])[name], value)


def test_a_cell_takes_the_place_of_an_older_one_alone(tmp_path: Path) -> None:
    for seed in (1, 0):
        write_cell(tmp_path, cell([slice_run([50])], seed=seed, digest="old"))
    write_cell(tmp_path, cell([slice_run([50])], seed=1, digest="new"))
    found = {key: one.digest for key, one in read_cells(tmp_path, "made-up").items()}
    assert found == {("finetune", 0): "old", ("finetune", 1): "new"}


def test_the_same_cells_make_the_same_bytes_in_whatever_order_they_are_written(tmp_path: Path) -> None:
    cells = [cell([slice_run([50])], strategy=name, seed=seed) for name in ("b", "a") for seed in (0, 1)]
    for folder, order in ((tmp_path / "one", cells), (tmp_path / "two", cells[::-1])):
        for one in order:
            write_cell(folder, one)
    written = [results_path(tmp_path / name, "made-up").read_bytes() for name in ("one", "two")]
    assert written[0] == written[1]


def test_no_cell_is_lost_when_two_processes_write_at_once(tmp_path: Path) -> None:
    names = ("first", "second")
    processes = [subprocess.Popen([sys.executable, "-c", WRITER, tmp_path, name]) for name in names]
    assert [process.wait() for process in processes] == [0, 0]
    assert set(read_cells(tmp_path, "made-up")) == {(name, seed) for name in names for seed in range(20)}


def test_cells_of_another_format_are_left_out(tmp_path: Path) -> None:
    write_cell(tmp_path, cell([slice_run([50])]))
    path = results_path(tmp_path, "made-up")
    document = json.loads(lzma.decompress(path.read_bytes())) | {"format": 1}
    path.write_bytes(lzma.compress(json.dumps(document).encode()))
    assert read_cells(tmp_path, "made-up") == {}


def test_a_damaged_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    write_cell(tmp_path, cell([slice_run([50])]))
    path = results_path(tmp_path, "made-up")
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(UsageProblem, match=r"made-up\.jsonl\.xz is damaged .*Restore it, or move it away"):
        read_cells(tmp_path, "made-up")
    with pytest.raises(UsageProblem, match="is damaged"):
        write_cell(tmp_path, replace(cell([slice_run([50])]), seed=1))
