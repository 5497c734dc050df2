"""One of two processes that train together, and what one alone makes of the same."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, distributed
from torch.distributed import ProcessGroup

from model_updates.data_parallel import DataParallelEncoder
from tests.model_updates.contract import first_context, made, run
from tests.model_updates.tiny import tiny_encoder

ROOT = Path(__file__).parents[2]
# Else gloo looks for the machine by its name, which may be known to nobody.
HERE = {"GLOO_SOCKET_IFNAME": "lo"} if sys.platform == "linux" else {}
RESNET = "tiny-resnet"


class Learned(NamedTuple):
    """What an update left."""

    state: dict[str, Tensor]  # of the encoder
    shared: int  # rows that were shared out
    forwards: int  # pictures that the image tower embedded
    next_number: float  # that the update's generator would have drawn


def learn(case: str, group: ProcessGroup | None) -> Learned:
    """Runs a strategy's first update; of ``name@architecture`` on an encoder of that."""
    name, _, architecture = case.partition("@")
    context = first_context(name, tiny_encoder(architecture=architecture or "tiny"))
    encoder = DataParallelEncoder.of(context.encoder, group)
    previous, anchor = context.open_previous, context.open_anchor
    context = replace(
        context,
        encoder=encoder,
        open_previous=lambda: DataParallelEncoder.of(previous(), group),
        open_anchor=lambda: DataParallelEncoder.of(anchor(), group),
    )
    # Each process leaves out numbers of its own where the adapters do.
    options: dict[str, Any] = {"dropout": 0.0} if name == "c-clip" else {}
    strategy = made(name, **options)
    run(strategy, context)
    state = {key: value.detach().clone() for key, value in encoder.state().items()}
    return Learned(state, encoder.shared, encoder.image_forwards, float(torch.rand(())))


def start(folder: Path, cases: list[str]) -> list[subprocess.Popen[bytes]]:
    """Starts two processes that learn cases together, one after another; each puts what it has into a file."""
    command = [sys.executable, "-m", "tests.model_updates.two_processes", str(folder)]
    told = os.environ | HERE
    return [subprocess.Popen([*command, str(rank), *cases], cwd=ROOT, env=told) for rank in range(2)]


def file_of(folder: Path, rank: int) -> Path:
    return folder / f"{rank}.pt"


def _main(folder: Path, rank: int, cases: list[str]) -> None:
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2, timeout=timedelta(seconds=60)
    )
    found = {case: tuple(learn(case, distributed.group.WORLD)) for case in cases}
    torch.save(found, file_of(folder, rank))
    distributed.destroy_process_group()


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
