"""A home with very many pictures whose vectors are drawn at random: everything else in it is real."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, going_live
from ingest.pair import Split
from ingest.records import NewChunk, NewImage, Recorded
from ingest.report import IntakeReport
from model_updates.search_encoder import SearchEncoder

_CHUNK = 10_000
_THUMBNAILS = 32


def make_home(folder: Path, pictures: int, given: np.ndarray | None = None, **encoder: Any) -> Path:
    """Makes the home and returns where it lies.

    Args:
        folder: for it and nothing else.
        pictures: how many.
        given: (pictures, dim) float32 vectors; None draws them.
        encoder: `model` and `pretrained` as `init` takes them.
    """
    settings = load_settings(home=folder / "home")
    beginning.initialise(settings, **encoder)
    with Workspace.open(settings) as workspace:
        opened = workspace.open_encoder(going_live.live_release(workspace)[1].version)
        drawn = _drawn(opened) if given is None else given.__getitem__
        for start in range(0, pictures, _CHUNK):
            ids = [_id(n) for n in range(start, min(start + _CHUNK, pictures))]
            rows = drawn(slice(start, start + len(ids)))
            workspace.blobs.put(_files(ids))
            workspace.features.put(opened.trunk_fingerprint(), "image", ids, rows)
            workspace.catalog.record_chunk(_chunk(start, ids), partial(_report, start, len(ids)))
        adding.extend_gallery(workspace, why="drawn vectors", by="benchmark")
    return settings.home


def _drawn(encoder: SearchEncoder) -> Callable[[slice], np.ndarray]:
    """Returns what draws rows around what texts give, so that queries have near and far pictures as in real life."""
    generator = np.random.default_rng(0)
    middle = encoder.encode_texts(["two red boats on the beach", "a cat", "a house at night"])

    def draw(part: slice) -> np.ndarray:
        count = part.stop - part.start
        spread = generator.normal(scale=0.08, size=(count, encoder.dim))
        rows: np.ndarray = (middle[generator.integers(3, size=count)] + spread).astype(np.float32)
        return rows

    return draw


def _id(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def _files(ids: list[str]) -> Iterator[tuple[str, bytes, bytes]]:
    drawn = []
    for number in range(_THUMBNAILS):
        picture = io.BytesIO()
        colour = tuple(np.random.default_rng(number).integers(256, size=3).tolist())
        Image.new("RGB", (192, 192), colour).save(picture, "WEBP")
        drawn.append(picture.getvalue())
    for number, image_id in enumerate(ids):
        yield image_id, drawn[number % _THUMBNAILS], drawn[number % _THUMBNAILS]


def _chunk(start: int, ids: list[str]) -> NewChunk:
    images = [NewImage(one, "drawn", Split.TRAIN, 192, 192, "WEBP", sketch=b"") for one in ids]
    captions = [(one, "en", f"picture number {start + n}") for n, one in enumerate(ids)]
    name = f"pictures from {start}"
    return NewChunk(hashlib.sha256(name.encode()).hexdigest()[:12], name, True, images, captions)


def _report(start: int, count: int, _: Recorded) -> dict[str, Any]:
    name = f"pictures from {start}"
    report = IntakeReport(
        hashlib.sha256(name.encode()).hexdigest()[:12], name, count, 0, count, 0, 0, {}, None, (), ()
    )
    return report.to_json()
