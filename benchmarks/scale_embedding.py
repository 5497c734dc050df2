"""How many pictures are embedded a second by one process, and by a Ray of two actors: a part of benchmarks/scale.py."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image
from speed_timing import ROOT, timed

sys.path.insert(0, str(ROOT))

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import beginning, going_live
from app.learning.embedder import Here, ImageBatch
from app.learning.ray_embedding import OnRay
from ingest.pair import image_id_of
from model_updates.features import IMAGE
from model_updates.routes import BASE
from model_updates.search_encoder import IMAGE_BATCH, Rows

BATCHES, SIDE = 128, 160


def photographs() -> Iterator[tuple[str, bytes, bytes]]:
    """Yields drawn pictures with their ids, as they are stored."""
    draw = np.random.default_rng(0)
    for _ in range(BATCHES * IMAGE_BATCH):
        rough = Image.fromarray(draw.integers(0, 256, (12, 12, 3), dtype=np.uint8))
        file = io.BytesIO()
        rough.resize((SIDE, SIDE)).save(file, "JPEG")
        yield image_id_of(file.getvalue()), file.getvalue(), b""


def lines(home: Path, model: str = "perennial-tiny") -> list[str]:
    """Measures a home with an encoder that is made in a folder, and returns what is to be said of it."""
    settings = load_settings(home=home, ray="local")
    beginning.initialise(settings, model=model)
    with Workspace.open(settings) as workspace:
        workspace.blobs.put(photographs())
        version = going_live.live_release(workspace)[1].version
        encoder = workspace.open_searcher(version)
        ids = sorted(workspace.blobs.ids())[: BATCHES * IMAGE_BATCH]
        batches = [ImageBatch(BASE, ids[n : n + IMAGE_BATCH]) for n in range(0, len(ids), IMAGE_BATCH)]
        plain: dict[str, Rows] = {}
        here = timed(
            lambda: Here(workspace, encoder)(batches, lambda one, rows: plain.update({one.ids[0]: rows}))
        )
        first = batches[0]
        workspace.features.put(encoder.trunk_fingerprint(), IMAGE, first.ids, plain[first.ids[0]])
        came: dict[str, Rows] = {}
        times = [time.perf_counter()]

        def keep(one: ImageBatch, rows: Rows) -> None:
            times.append(time.perf_counter())
            came[one.ids[0]] = rows

        OnRay(workspace, encoder, version, first)(batches, keep)
    same = all(np.array_equal(rows, came[name]) for name, rows in plain.items())
    begins, took = times[1] - times[0], times[-1] - times[1]
    return [
        "",
        f"{len(ids):,} pictures of {SIDE} pixels are embedded by `{model}`: {len(ids) / here:,.0f} a second by "
        f"one process, {(len(ids) - IMAGE_BATCH) / took:,.0f} by a Ray of this machine once it has begun, which takes "
        f"{begins:.0f} s. The vectors are {'the same bit for bit' if same else 'NOT the same'}.",
    ]
