"""A home that another commit wrote keeps every answer: of each earlier schema, and from before graphs and segments."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import subprocess
import sys
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.jobs import UpdateRequest
from app.doctor.examination import examine
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, update_cycle
from ingest.intake import IntakeOptions
from ingest.schema import SCHEMA
from tests.app.small_home import sample_chunk

pytestmark = pytest.mark.usefixtures("starts_at_once")

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
taught = home.teach(chunk, strategy="language-tables", options={"epochs": "1"}, promote=False)
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
    return packages_of(BEFORE, tmp_path_factory)


def packages_of(commit: str, factory: pytest.TempPathFactory) -> Path:
    """The packages of a commit before."""
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode:
        pytest.skip(f"this clone has no commit {commit[:7]}, whose program writes the older home")
    folder = factory.mktemp("before")
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
    ran(old, MAKE, str(home), str(sample_chunk(tmp_path / "pairs.zip", pictures=30)))
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
        assert len(workspace.open_generation(going_live.live_release(workspace)[1].generation).ids) > 30
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


# The last program of each schema before today's: by number, its commit.
EARLIER = {
    1: "50bfe9f0",
    2: "c6e23fda",
    3: "101bbae8",
    4: "b76d256d",
    5: "f7f4087c",
    6: "74a61a35",
    7: "ffee28f3",
    8: "cb992e2e",
    9: "535b902f",
}
# Runs several verbs in one process, which loads torch once, and prints what each of them printed.
VERBS = """
import contextlib, io, json, sys
try:
    from perennial import main
except ImportError:
    from app.__main__ import main
printed = []
for words in json.loads(sys.argv[1]):
    sys.argv[1:] = words
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            code = main()
        except SystemExit as leaving:
            code = leaving.code
    assert not code, (words, code)
    printed.append(out.getvalue())
print(json.dumps(printed))
"""


@pytest.mark.parametrize(
    "schema", [one if one == 1 else pytest.param(one, marks=pytest.mark.slow) for one in EARLIER]
)
def test_a_home_of_each_earlier_schema_keeps_everything_and_goes_on(
    schema: int, tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    program, home = packages_of(EARLIER[schema], tmp_path_factory), tmp_path / "home"
    there = ("--home", str(home))
    pairs = str(sample_chunk(tmp_path / "pairs.zip", pictures=40))
    made = [["init", "--model", "perennial-tiny", *there], ["ingest", pairs, *there]]
    printed = json.loads(ran(program, VERBS, json.dumps([*made, *asked(home)])))
    before = [found_in(said) for said in printed[len(made) :]]
    kept = kept_in(home)
    assert kept["schema"] == schema
    assert found_now(home) == before
    assert kept_in(home) == kept | {"schema": SCHEMA}
    with Workspace.open(load_settings(home=home, gate={"samples": 200, "cross_fit": False})) as workspace:
        first = going_live.live_release(workspace)[1].id
        more = sample_chunk(tmp_path / "more.zip", pictures=5, first=7)
        outcome = adding.add_chunk(workspace, more, IntakeOptions(), by="test")
        assert outcome.commit is not None
        request = UpdateRequest(
            chunk=next(one.id for one in workspace.catalog.chunks() if one.name.startswith("pairs")),
            strategy="language-tables",
            options={"epochs": 1},
            by="test",
        )
        scratch = workspace.home.staging / "j1"
        assert update_cycle.update(workspace, request, scratch=scratch, progress=lambda _: None).version
        going_live.rollback(workspace, first, why="test", by="test")
    assert found_now(home) == before
    wrong = {one.check for one in examine(load_settings(home=home)).found if one.level == "error"}
    assert wrong <= {"coverage"}, "what came after the release that is live again is added by a job"


def asked(home: Path) -> list[list[str]]:
    return [
        ["search", text, "--language", language, "-k", "20", "--json", "--home", str(home)]
        for text, language in TEXTS[:2]
    ]


def found_in(printed: str) -> list[str]:
    """The ids of what was found, best first; the field had another name once."""
    return [hit.get("image_id") or hit["id"] for hit in json.loads(printed)["hits"]]


def found_now(home: Path) -> list[list[str]]:
    return [found_in(CliRunner().invoke(app, words).stdout) for words in asked(home)]


def kept_in(home: Path) -> dict[str, Any]:
    """What stands in a home's catalog: chunks, pairs, and which pictures are held out."""
    with closing(sqlite3.connect(home / "catalog.sqlite")) as catalog:
        return {
            "schema": catalog.execute("PRAGMA user_version").fetchone()[0],
            "chunks": catalog.execute("SELECT id, name, created FROM chunks ORDER BY id").fetchall(),
            "splits": catalog.execute("SELECT id, split FROM images ORDER BY id").fetchall(),
            "pairs": catalog.execute("SELECT image, language, text FROM captions ORDER BY seq").fetchall(),
        }
