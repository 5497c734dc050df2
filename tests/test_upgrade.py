"""A home that another commit wrote, before versions had graphs and an index had segments, keeps every answer."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from app.commands.cli import app
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live
from ingest.intake import IntakeOptions
from tests.app.small_home import sample_chunk

ROOT = Path(__file__).parent.parent
Answers = list[tuple[str, list[tuple[str, float]]]]  # language, then picture and score
BEFORE = "7b601012471492cd58a48fa20fb2dddafbc51c17"
TEXTS = (
    ("two red boats", "en"),
    ("zwei rote Boote", "de"),
    ("a green house and a tree", "auto"),
    ("ein Hund", "auto"),
)
# Run by both commits, each in its own process.
MAKE = """
import sys, perennial
home = perennial.open(sys.argv[1], create=True, model="perennial-tiny", gate={"samples": 200, "cross_fit": False})
chunk = home.add(sys.argv[2])
taught = home.teach(chunk, strategy="language-tables", options={"epochs": "2"}, promote=False)
assert taught.state in {"succeeded", "review"}, (taught.state, taught.error)
home.desk.promote(taught.result["release"], why="it is to be kept", force=True)
"""
SEARCH = """
import json, sys, perennial
home = perennial.open(sys.argv[1])
found = [home.search(text, language=language, k=20) for text, language in json.loads(sys.argv[2])]
print(json.dumps([[one.language, [(hit.id, hit.score) for hit in one]] for one in found]))
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packages of a commit before."""
    packed = subprocess.run(["git", "archive", BEFORE], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"this clone has no commit {BEFORE[:7]}, whose program writes the older home")
    folder = tmp_path_factory.mktemp("before")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def ran(program: Path, script: str, *words: str) -> str:
    env = os.environ | {"PYTHONPATH": str(program), "HOME": str(program)}
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=program,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def answers(program: Path, home: Path, before: str = "") -> Answers:
    said: Any = json.loads(ran(program, f"{before}\n{SEARCH}", str(home), json.dumps(TEXTS)))
    return [(language, [(image, score) for image, score in hits]) for language, hits in said]


def test_a_home_of_before_keeps_every_answer_grows_and_goes_back(old: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    ran(old, MAKE, str(home), str(sample_chunk(tmp_path / "pairs.zip", pictures=60)))
    assert not list(home.glob("versions/*/search.json"))
    before = answers(old, home)
    said = CliRunner().invoke(app, ["status", "--home", str(home)]).output
    assert (
        "Torch searches it, not its graphs: it was written before versions brought graphs along; the next"
        in said
    )
    assert_same(answers(ROOT, home), before)
    # It has graphs from now on, and needs torch no more.
    assert "Torch searches it" not in CliRunner().invoke(app, ["status", "--home", str(home)]).output
    assert_same(answers(ROOT, home, "import sys; sys.modules['torch'] = None"), before)
    first = _live(home)
    with Workspace.open(load_settings(home=home)) as workspace:
        more = sample_chunk(tmp_path / "more.zip", pictures=5, first=7)
        outcome = adding.add_chunk(workspace, more, IntakeOptions(), by="test")
        assert outcome.commit is not None
        assert len(workspace.open_generation(going_live.live_release(workspace)[1].generation).ids) > 60
        going_live.rollback(workspace, first, why="test", by="test")
    assert_same(answers(ROOT, home), before)


def assert_same(now: Answers, before: Answers) -> None:
    for (language, hits), (language_before, hits_before) in zip(now, before, strict=True):
        assert language == language_before
        assert [image for image, _ in hits] == [image for image, _ in hits_before]
        np.testing.assert_allclose([s for _, s in hits], [s for _, s in hits_before], atol=1e-5)


def _live(home: Path) -> str:
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        return going_live.live_release(workspace)[1].id
