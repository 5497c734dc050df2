"""Claims about the verbs that judge answers."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.commands import cli
from app.feedback import votes as feedback
from app.home.settings import load_settings
from app.home.workspace import Workspace
from tests.app.server.served import add_held_out, make_home


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    settings = make_home(folder)
    with Workspace.open(settings) as workspace:
        add_held_out(workspace, folder)
    return settings.home


def run(home: Path, *arguments: str) -> Any:
    return CliRunner().invoke(cli.app, [*arguments, "--home", str(home)])


def test_changes_shows_what_changed_most_of_known_queries(home: Path) -> None:
    found = json.loads(run(home, "changes", "r1", "r2", "--json").stdout)
    assert found["queries"] > 0
    overlaps = [one["overlap"] for one in found["changed"]]
    assert overlaps == sorted(overlaps)
    assert "On average" in run(home, "changes", "r1", "r2").stdout


def test_changes_of_a_home_without_queries_says_how_to_name_some(tmp_path: Path) -> None:
    said = run(make_home(tmp_path).home, "changes", "r1", "r2").stdout
    assert "There is nothing to ask" in said
    assert "--queries FILE" in said


def test_changes_asks_the_queries_of_a_file_and_says_which_were_refused(home: Path, tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    queries.write_text("\ufeffa red boat\n\nein rotes Boot\n" + "x" * 600 + "\n", encoding="utf-8")
    found = json.loads(run(home, "changes", "r1", "r2", "--queries", str(queries), "--json").stdout)
    assert found["queries"] == 3
    assert "at most" in found["refused"][0]["error"]
    assert {one["query"] for one in found["changed"]} <= {"a red boat", "ein rotes Boot"}
    same = run(home, "changes", "r2", "r2", "--queries", str(queries))
    assert "No answer changed." in same.stdout


def test_changes_refuses_a_release_and_a_file_that_are_not_there(home: Path) -> None:
    unknown = run(home, "changes", "r1", "r99")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
    assert "no release 'r99'" in unknown.stderr
    assert run(home, "changes", "r1", "r2", "--queries", "missing.txt").exit_code == 2


def test_quality_shows_slices_by_version_and_refuses_an_unknown_metric(home: Path) -> None:
    found = json.loads(run(home, "quality", "--json").stdout)
    assert [line["language"] for line in found["table"]["lines"]] == ["de", "en"]
    assert "en/scenes" in run(home, "quality").stdout
    refused = run(home, "quality", "--metric", "map")
    assert (refused.exit_code, "t2i_mean" in refused.stderr) == (2, True)


def test_feedback_writes_the_proposed_chunk_without_what_was_left_out(home: Path, tmp_path: Path) -> None:
    with Workspace.open(load_settings(home=home)) as workspace:
        image_id = workspace.catalog.gallery_ids()[0]
        for query in ("a hut that I like", "a hut that is wrong"):
            said = {"query": query, "language": "en", "release": "r1", "verdict": "up", "by": "ada"}
            feedback.thumb(workspace, image_id=image_id, **said)
    proposal = json.loads(run(home, "feedback", "--json").stdout)["proposal"]
    wrong = next(pair["id"] for pair in proposal["pairs"] if "wrong" in pair["text"])
    file = tmp_path / "feedback.zip"
    written = run(home, "feedback", "--to", str(file), "--leave-out", wrong)
    assert written.exit_code == 0, written.output
    with zipfile.ZipFile(file) as archive:
        table = archive.read("captions.csv").decode()
    assert "that I like" in table
    assert "that is wrong" not in table
    assert run(home, "feedback", "--to", str(file), "--leave-out", "strange").exit_code == 2
