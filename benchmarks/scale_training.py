"""How long an epoch takes one process, and two of a Ray together: a part of benchmarks/scale.py."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import torch
from speed_timing import ROOT

sys.path.insert(0, str(ROOT))

from app.desk.jobs import UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, going_live, training
from app.learning.lessons import plan
from app.learning.training import Trained, trained
from ingest.intake import IntakeOptions
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from model_updates.progress import TrainingProgress

PICTURES, EPOCHS, PROCESSES = 400, 6, 2


def lines(home: Path) -> list[str]:
    """Trains both towers of the tiny encoder, and returns what is to be said of it."""
    settings = load_settings(home=home, ray="local", training_workers=PROCESSES)
    beginning.initialise(settings, model="perennial-tiny")
    chunk = home.parent / "chunk.zip"
    chosen = list(scenes.all_scenes())[:: 4000 // PICTURES][:PICTURES]
    write_chunk(chunk, scenes=[(scene, "flat", n) for n, scene in enumerate(chosen)], languages=["en", "de"])
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        training.WORTH_SECONDS = 0.0  # however short it is here
        with Workspace.open(settings) as workspace:
            adding.add_chunk(workspace, chunk, IntakeOptions(), by="benchmark")
            alone, each = _timed(workspace, alone=True)
            together, shared = _timed(workspace, alone=False)
    finally:
        torch.set_num_threads(before)
    ours, theirs = alone.encoder.state(), together.encoder.state()
    far = max(float((ours[name].float() - theirs[name].float()).abs().max()) for name in ours)
    return [
        "",
        f"{alone.report.training_pairs:,} pairs are trained on by `finetune`, `perennial-tiny`, one thread each: an "
        f"epoch takes one {each:.1f} s, and {PROCESSES} of a Ray of this machine {shared:.1f} s once it began, which "
        f"takes {together.report.seconds - EPOCHS * shared:.0f} s. After {EPOCHS} epochs no weight is further than "
        f"{far:.1e} from that of one process.",
    ]


def _timed(workspace: Workspace, *, alone: bool) -> tuple[Trained, float]:
    """Trains, and returns what came of it and the seconds of an epoch after the first."""
    record = going_live.live_release(workspace)[1]
    options = {"epochs": EPOCHS}
    lesson = plan(workspace, UpdateRequest(workspace.catalog.chunks()[-1].id, "finetune", options), record)
    seen: list[tuple[float, float]] = []

    def see(step: TrainingProgress) -> None:
        seen.append((time.perf_counter(), step.done * EPOCHS))

    done = trained(workspace, replace(lesson, validation=()), alone=alone, progress=see)
    since = [one for one in seen if one[1] >= 1]
    return done, (since[-1][0] - since[0][0]) / (since[-1][1] - since[0][1])
