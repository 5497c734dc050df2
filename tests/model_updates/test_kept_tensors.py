"""Tensors that are mapped: whole or cut, single numbers, nothing."""

from pathlib import Path

import numpy as np
import pytest
import torch

from model_updates import shards
from model_updates.kept_tensors import KeptTensors

STATE = {
    "table.weight": torch.arange(60, dtype=torch.float32).reshape(20, 3),
    "table.half": torch.arange(8).half().reshape(4, 2),
    "scale": torch.tensor(2.5),
    "none": torch.zeros(0, 4),
}


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeptTensors:
    monkeypatch.setattr(shards, "MOST_BYTES", 96)  # seven or eight rows to a piece
    names = shards.write_shards({name: value.numpy() for name, value in STATE.items()}, tmp_path, "weights")
    assert len(names) > len(STATE)
    return KeptTensors(tmp_path / name for name in names)


def test_tensors_come_back_as_they_were_written(kept: KeptTensors) -> None:
    assert kept.names() == sorted(STATE)
    for name, tensor in STATE.items():
        np.testing.assert_array_equal(kept.array(name), tensor.numpy())
    assert "table" not in kept


def test_rows_of_a_cut_tensor_are_found_in_any_shape(kept: KeptTensors) -> None:
    rows = kept.rows("table.weight")
    asked = np.array([[0, 19, 7], [8, 8, 11]])
    np.testing.assert_array_equal(rows[asked], STATE["table.weight"].numpy()[asked])
