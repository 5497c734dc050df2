"""Checkpoints of an update in progress: everything an interrupted update needs to go on as if nothing happened.

One safetensors file holds the trained weights, the best epoch's weights, the strategy's state, the optimizer's moments
and the random state; its metadata the counters. It replaces the one before by rename, so there is always a whole one.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

FILE = "checkpoint.safetensors"


@dataclass
class Progressed:
    """How far an update is: finished epochs, the best one, and what was logged."""

    epoch: int = 0
    best_epoch: int = 0
    best_score: float | None = None
    history: list[dict[str, float]] = field(default_factory=list)


def save(
    folder: Path,
    progressed: Progressed,
    *,
    weights: dict[str, Tensor],
    best: dict[str, Tensor],
    strategy: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Writes the checkpoint of a finished epoch into a folder, replacing the one before."""
    tensors = {f"weights.{k}": v for k, v in weights.items()}
    tensors |= {f"best.{k}": v for k, v in best.items()}
    tensors |= {f"strategy.{k}": v for k, v in strategy.items()}
    for index, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{index}.{k}": torch.as_tensor(v) for k, v in values.items()}
    tensors["random"] = torch.get_rng_state()
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{FILE}"
    save_file(
        {k: v.detach().cpu().clone().contiguous() for k, v in tensors.items()},
        temporary,
        metadata={"progressed": json.dumps(asdict(progressed))},
    )
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    temporary.replace(folder / FILE)


@dataclass(frozen=True)
class Loaded:
    """A checkpoint read back."""

    progressed: Progressed
    weights: dict[str, Tensor]
    best: dict[str, Tensor]
    strategy: dict[str, Tensor]
    optimizer: dict[int, dict[str, Tensor]]
    random: Tensor

    def restore_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        """Puts the moments back; hyper-parameters stay as the caller made them."""
        state: dict[str, Any] = optimizer.state_dict()
        state["state"] = self.optimizer
        optimizer.load_state_dict(state)


def load(folder: Path) -> Loaded | None:
    """Reads the checkpoint of a folder; None when there is none yet."""
    path = folder / FILE
    if not path.exists():
        return None
    parts: dict[str, dict[str, Tensor]] = {"weights": {}, "best": {}, "strategy": {}}
    optimizer: dict[int, dict[str, Tensor]] = {}
    random = torch.get_rng_state()
    with safe_open(path, framework="pt") as opened:
        progressed = Progressed(**json.loads(opened.metadata()["progressed"]))
        for key in opened.keys():  # noqa: SIM118 - safe_open is no mapping
            part, _, name = key.partition(".")
            if part == "random":
                random = opened.get_tensor(key)
            elif part == "optimizer":
                index, _, moment = name.partition(".")
                optimizer.setdefault(int(index), {})[moment] = opened.get_tensor(key)
            else:
                parts[part][name] = opened.get_tensor(key)
    return Loaded(progressed, parts["weights"], parts["best"], parts["strategy"], optimizer, random)
