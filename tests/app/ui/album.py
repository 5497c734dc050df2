"""A home with pictures of many shapes in folders, enough of them to scroll through."""

from __future__ import annotations

import shutil
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image

from app.home.settings import Settings
from app.local.at_home import AtHome
from ingest.intake import IntakeOptions
from tests.app.server.served import make_home

SHAPES = ((90, 60), (60, 90), (80, 80), (96, 54), (60, 45), (150, 40), (40, 130), (900, 600))
PICTURES = 130


def make_album(folder: Path) -> Settings:
    """Half of the pictures have a caption; those of the template home come before them."""
    shutil.copytree(_template(), folder / "home")
    return Settings(home=folder / "home", poll_seconds=0.1, jobs="elsewhere")


@cache
def _template() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="album-"))
    settings = make_home(folder)
    (folder / "album" / "by the sea").mkdir(parents=True)
    drawn = np.random.default_rng(5)
    for number in range(PICTURES):
        width, height = SHAPES[number % len(SHAPES)]
        coarse = drawn.integers(0, 255, (4, 6, 3), dtype=np.uint8)
        place = folder / "album" / ("by the sea" if number % 3 else ".") / f"picture {number:03}.jpg"
        Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC).save(place)
        if number % 2:
            place.with_suffix(".txt").write_text(f"coloured clouds, number {number}", encoding="utf-8")
    with AtHome(settings, by="tests") as desk:
        desk.add_chunk(folder / "album", IntakeOptions(language="en"), lambda _: None)
    return settings.home
