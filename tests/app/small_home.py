"""A real home with the embedded encoder and one small chunk, made once a test run and copied by tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, update_cycle
from ingest.intake import IntakeOptions
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk

PICTURES = 40


def sample_chunk(path: Path, *, pictures: int = PICTURES, first: int = 0) -> Path:
    """Writes a zip of drawn pictures with English and German captions."""
    every = max(1, min(40, 4000 // pictures))
    chosen = list(scenes.all_scenes())[first::every][:pictures]
    write_chunk(path, scenes=[(scene, "flat", n) for n, scene in enumerate(chosen)], languages=["en", "de"])
    return path


def small_home(factory: pytest.TempPathFactory, *, pictures: int = PICTURES) -> Path:
    """Returns a home not to be changed; release r2 is live and its chunk waits to be learned."""
    folder = factory.getbasetemp() / f"small-home-{pictures}"
    home = folder / "home"
    if not folder.exists():
        folder.mkdir()
        settings = load_settings(home=home, gate={"samples": 200, "cross_fit": False})
        update_cycle.initialise(settings)
        with Workspace.open(settings) as workspace:
            chunk = sample_chunk(folder / "german.zip", pictures=pictures)
            adding.add_chunk(workspace, chunk, IntakeOptions(), by="test")
    return home


def copy_of(home: Path, place: Path) -> Path:
    """Copies a home for a test to change."""
    return Path(shutil.copytree(home, place / "home"))


def taught_chunk(home: Path) -> str:
    """Returns the id of the chunk that waits to be learned."""
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        return workspace.catalog.chunks()[-1].id
