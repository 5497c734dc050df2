"""Fifty new pictures into indexes of several sizes: what publishing and serving them take, their embedding apart."""

from __future__ import annotations

import statistics
import uuid
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from speed_parts import known_pictures, publish_gallery, random_home
from speed_timing import Measured, spread, timed

from app.home.workspace import Workspace
from app.learning import adding, going_live
from app.query.snapshot import LiveSnapshot
from model_updates.features import IMAGE

PICTURES = 50
# Seconds: ViT-B/32 embeds 17 a second (docs/results/speed.md), and publishing may take as long.
EMBEDDING = PICTURES / 17
SWAP = 0.2


def fifty_more(work: Path, *, vectors: Sequence[int], rounds: int) -> Measured:
    """Times adding to indexes that the process has opened, and a swap of a server that serves the one before."""
    steps, worst, largest = [], 0.0, 0.0
    for count in vectors:
        with Workspace.open(random_home(work, f"segments-home-{count}")) as workspace:
            publish_gallery(workspace, count)
            live = LiveSnapshot(workspace)
            adds, swaps = [], []
            for _ in range(rounds):
                _take_in(workspace)
                adds.append(timed(lambda: adding.extend_gallery(workspace, why="benchmark", by="benchmark")))
                swaps.append(timed(live.refresh))
                written = _written(workspace)
        steps.append((f"{count:,}: added, {written:.1f} MB written", spread(adds), "–", "–"))
        steps.append((f"{count:,}: a swap", spread(swaps), "–", "–"))
        worst, largest = max(worst, statistics.median(adds)), max(largest, statistics.median(swaps))
    return Measured(
        f"{PICTURES} more pictures into {', '.join(f'{count:,}' for count in vectors)} of 512",
        f"{worst:.2f} s at most, a swap {largest:.2f} s",
        f"<= {EMBEDDING:.1f} s, their own embedding; <= {SWAP} s",
        worst <= EMBEDDING and largest <= SWAP,
        f"minimum / median / maximum of {rounds}, the pictures embedded beforehand: what is new is found, the index "
        "grown, published, checked and committed, as `perennial add` does; the swap is of a server that serves the "
        "index before",
        tuple(steps),
    )


def _take_in(workspace: Workspace) -> None:
    """Has the catalog know pictures that no index has yet, and the features of each kept."""
    live, record = going_live.live_release(workspace)
    encoder = workspace.open_searcher(record.version)
    rows = np.random.default_rng(live.number).standard_normal((PICTURES, encoder.trunk_dim), dtype=np.float32)
    ids = [uuid.uuid4().hex * 2 for _ in rows]
    known_pictures(workspace, ids)
    workspace.features.put(encoder.trunk_fingerprint(), IMAGE, ids, rows)


def _written(workspace: Workspace) -> float:
    """Returns the megabytes of the live index that none before it shares."""
    _, record = going_live.live_release(workspace)
    folder = workspace.home.generations / record.generation
    return sum(one.st_size for one in map(Path.stat, folder.iterdir()) if one.st_nlink == 1) / 1e6
