"""Real homes with the embedded encoder, new and with one small chunk, made once a test run and copied by tests."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, gallery, going_live
from ingest.intake import IntakeOptions
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from model_updates.versions import write_version

PICTURES = 40


def sample_chunk(path: Path, *, pictures: int = PICTURES, first: int = 0) -> Path:
    """Writes a zip of drawn pictures with English and German captions."""
    every = max(1, min(40, 4000 // pictures))
    chosen = list(scenes.all_scenes())[first::every][:pictures]
    write_chunk(path, scenes=[(scene, "flat", n) for n, scene in enumerate(chosen)], languages=["en", "de"])
    return path


def small_home(factory: pytest.TempPathFactory, *, pictures: int = PICTURES) -> Path:
    """Returns a home not to be changed; release r2 is live and its chunk waits to be learned."""

    def make(home: Path) -> None:
        shutil.copytree(new_home(factory), home)
        with Workspace.open(load_settings(home=home, gate={"samples": 200, "cross_fit": False})) as workspace:
            chunk = sample_chunk(home.parent / "german.zip", pictures=pictures)
            adding.add_chunk(workspace, chunk, IntakeOptions(), by="test")

    return _made_once(factory, f"small-home-{pictures}", make)


def new_home(factory: pytest.TempPathFactory) -> Path:
    """Returns a home not to be changed that was just initialised: the embedded encoder and no chunk."""
    return _made_once(factory, "new-home", lambda home: beginning.initialise(load_settings(home=home)))


def _made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Makes a home once a run of the tests, whichever process of it asks first, and copies it once for each other."""
    own = factory.getbasetemp() / name
    if not own.exists():
        # A worker's folder lies in that of the whole run.
        shared = own.parent.parent / name if "PYTEST_XDIST_WORKER" in os.environ else own
        with shared.with_suffix(".lock").open("w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            if not shared.exists():
                with tempfile.TemporaryDirectory(dir=shared.parent) as work:
                    make(Path(work) / name)
                    (Path(work) / name).rename(shared)
        if shared != own:
            shutil.copytree(shared, own)
    return own


def copy_of(home: Path, place: Path, name: str = "home") -> Path:
    """Copies a home for a test to change."""
    return Path(shutil.copytree(home, place / name))


def older(home: Path) -> Path:
    """Leaves a home one release, as it was written before versions brought graphs along."""
    with Workspace.open(load_settings(home=home)) as workspace:
        record = going_live.live_release(workspace)[1]
        encoder = workspace.open_encoder(record.version)
    for shelf in ("commits", "releases", "generations", "versions"):
        for path in (home / shelf).iterdir():
            path.unlink() if path.is_file() else shutil.rmtree(path)
    with Workspace.open(load_settings(home=home)) as workspace:
        staged = workspace.home.staging / "version"
        write_version(staged, encoder, {"languages": ["en"], "parent": None})
        version = workspace.releases.publish_version(staged)
        generation = gallery.embed_gallery(workspace, encoder, previous=None).generation
        manifest = replace(
            record.manifest,
            version=version,
            version_sha256="",
            generation=generation,
            generation_sha256="",
            files={},
        )
        release = workspace.releases.publish_release(manifest)
        workspace.releases.commit(release, parent=None, reason="init", why="test", by="test")
    return home


def taught_chunk(home: Path) -> str:
    """Returns the id of the chunk that waits to be learned."""
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        return workspace.catalog.chunks()[-1].id
