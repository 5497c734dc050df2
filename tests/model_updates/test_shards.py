"""Claims about tensors cut into files: they come back as they were, and what did not change makes the same file."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from model_updates import shards
from model_updates.shards import read_shards, write_shards


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "MOST_BYTES", 4000)


def _model(rows: int = 700) -> dict[str, NDArray[np.float32]]:
    chance = np.random.default_rng(0)
    sizes = {
        "table.weight": (rows, 8),
        "visual.a": (30, 20),
        "visual.b": (30, 20),
        "visual.c.weight": (3,),
        "scale": (),
        "text.flat": (2000,),
    }
    return {
        name: np.asarray(chance.standard_normal(size, dtype=np.float32))
        for name, size in sorted(sizes.items(), reverse=True)
    }


def _written(tensors: dict[str, NDArray[np.float32]], folder: Path) -> dict[str, str]:
    folder.mkdir()
    names = write_shards(tensors, folder, "weights")
    assert sorted(names) == sorted(path.name for path in folder.iterdir())
    return {name: hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in names}


def test_tensors_come_back_as_they_were(tmp_path: Path) -> None:
    written = _model()
    names = _written(written, tmp_path / "a")
    assert max((tmp_path / "a" / name).stat().st_size for name in names) < 4000 + 500
    found = read_shards(tmp_path / "a" / name for name in names)
    assert found.keys() == written.keys()
    assert all(np.array_equal(found[name], written[name]) for name in written)


def test_a_table_that_grew_and_a_part_that_changed_make_only_their_own_files_anew(tmp_path: Path) -> None:
    before = _model()
    after = dict(before)
    after["table.weight"] = np.concatenate([before["table.weight"], np.ones((10, 8), np.float32)])
    after["visual.b"] = before["visual.b"] + 1
    first, second = _written(before, tmp_path / "a"), _written(after, tmp_path / "b")
    changed = {name for name in second if first.get(name) != second[name]}
    assert changed == {"weights-table-005.safetensors", "weights-visual-001.safetensors"}


def test_a_whole_file_of_before_is_read_too(tmp_path: Path) -> None:
    from safetensors.numpy import save_file

    tensors = _model()
    save_file(tensors, tmp_path / "weights.safetensors")
    found = read_shards([tmp_path / "weights.safetensors"])
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)
