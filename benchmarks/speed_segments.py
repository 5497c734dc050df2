"""Fifty new pictures into a large index: what publishing them and serving them take, their embedding apart."""

from __future__ import annotations

import statistics
import uuid
from pathlib import Path

import numpy as np
from speed_parts import publish_gallery, random_home
from speed_timing import Measured, timed

from app.home.workspace import Workspace
from app.learning import gallery, going_live
from app.learning.gallery import Vectors
from app.query.snapshot import LiveSnapshot
from index.vectors import unit_rows
from index.writing import contents_of, grow_generation

PICTURES = 50
# Seconds: ViT-B/32 embeds 17 a second (docs/results/speed.md), and publishing may take as long.
EMBEDDING = PICTURES / 17


def fifty_more(work: Path, *, vectors: int, rounds: int) -> Measured:
    """Times adding to an index that the process has not opened yet, and a swap of a server that has."""
    with Workspace.open(random_home(work, f"segments-home-{vectors}")) as workspace:
        publish_gallery(workspace, vectors)
        written: list[int] = []
        made: dict[str, Vectors] = {}
        adding = [timed(lambda: written.append(_add(workspace, made))) for _ in range(rounds)]
        live = LiveSnapshot(workspace)
        swaps = []
        for _ in range(rounds):
            _add(workspace, made)
            swaps.append(timed(live.refresh))
    seconds, swap = statistics.median(adding), statistics.median(swaps)
    size = max(written) / 1e6
    return Measured(
        f"{PICTURES} more vectors into {vectors:,} of 512",
        f"{seconds:.2f} s and {size:.1f} MB written, a swap {swap:.2f} s",
        f"<= {EMBEDDING:.1f} s, <= 1 MB, <= .2 s",
        seconds <= EMBEDDING and size <= 1 and swap <= 0.2,
        f"medians of {rounds}; the index is opened, every byte checked, grown, published, checked and committed; the "
        "swap is of a server that serves the index before",
    )


def _add(workspace: Workspace, made: dict[str, Vectors]) -> int:
    """Makes a release live that has more vectors, which it notes, and returns the bytes written for its generation."""
    live, record = going_live.live_release(workspace)
    encoder, before = workspace.open_encoder(record.version), workspace.open_generation(record.generation)
    rows = unit_rows(np.random.default_rng(live.number).standard_normal((PICTURES, encoder.dim)))
    ids = [uuid.uuid4().hex * 2 for _ in rows]
    made |= dict(zip(ids, rows, strict=True))
    staged = workspace.home.staging / "speed-generation"
    new = contents_of(ids, rows, {})
    grow_generation(staged, before, new, fingerprints=before.fingerprints, mode="delta", choice=before.choice)
    opened = workspace.open_generation(workspace.releases.publish_generation(staged))
    gallery.require_sound(opened, encoder, ids, lambda asked: np.stack([made[one] for one in asked]), before)
    facts = record.manifest.successor(record.id, generation=opened.id)
    release = workspace.releases.publish_release(facts)
    workspace.releases.commit(release, parent=live.number, reason="ingest", why="benchmark", by="benchmark")
    return sum(one.st_size for one in map(Path.stat, opened.folder.iterdir()) if one.st_nlink == 1)
