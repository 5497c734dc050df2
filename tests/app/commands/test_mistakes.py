"""Claims about mistakes on the command line: a sentence, an exit code, and nothing changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from app.commands import cli
from app.home.settings import load_settings
from app.home.workspace import Workspace
from tests.app import small_home
from tests.app.commands.running import document, run


@pytest.mark.parametrize(
    "arguments",
    [
        ["status"],
        ["releases"],
        ["search", "boat"],
        ["ingest", "x"],
        ["update", "--chunk", "x"],
        ["update", "--resume", "j1"],
        ["gate", "r1"],
        ["gate", "j1"],
        ["check", "0a1b"],
        ["accept", "0a1b", "--why", "clean"],
        ["withdraw", "0a1b", "--why", "wrong"],
        ["remove", "0a1b", "--why", "wrong"],
        ["promote", "r1"],
        ["rollback"],
        ["evaluate"],
        ["compare", "r1", "r2", "boat"],
        ["diff", "r1", "r2"],
        ["drift", "r1", "r2"],
        ["serve"],
    ],
)
def test_without_a_home_every_verb_says_how_to_make_one(arguments: list[str], tmp_path: Path) -> None:
    result = run(*arguments, home=tmp_path / "none")
    assert result.exit_code == 1
    assert (
        result.stderr
        == f"There is no home at {tmp_path / 'none'} yet. Run `perennial init --home {tmp_path / 'none'}`.\n"
    )
    assert result.stdout == ""
    assert not (tmp_path / "none").exists()


MISTAKES = [
    (["search", " "], 2, "bad_query", "nothing to look for"),
    (["search", "x" * 501], 2, "bad_query", "at most 500"),
    (["search", "boat", "--rerank"], 2, "bad_query", "cannot re-rank"),
    (["search", "boat", "--release", "r99"], 1, "unknown_release", "no release 'r99'"),
    (["compare", "r1", "r99", "boat"], 1, "unknown_release", "no release 'r99'"),
    (["drift", "r1", "r99"], 1, "unknown_release", "no release 'r99'"),
    (["drift", "r1", "r2", "--pairs", "1"], 2, "usage", "pairs"),
    (["promote", "r99"], 1, "unknown_release", "no release 'r99'"),
    (["gate", "r99"], 1, "unknown_release", "no release 'r99'"),
    (["gate", "j99"], 1, "unknown_job", "j99"),
    (["check", "feedbeef"], 1, "unknown_chunk", "feedbeef"),
    (["promote", "r2"], 2, "usage_problem", "live already"),
    (["rollback"], 2, "nothing_before", "nothing to go back to"),
    (["ingest", "missing.zip"], 1, "source_missing", "missing.zip"),
    (["ingest", "x", "--map", "text"], 2, "usage_problem", "--map takes name=value"),
    (["ingest", "x", "--language", "klingonish"], 2, "unknown_language", "klingonish"),
    (["ingest", ""], 2, "usage", "it is empty"),
    (["ingest", "x", "--report", "no-such-folder/r.csv"], 2, "usage_problem", "Nothing was done"),
    (["ingest", "/dev/null"], 1, "source_special", "neither a file nor a folder"),
    (["update", "--chunk", "a", "--seed", "-5"], 2, "usage", "seed"),
    (["update", "--chunk", "a", "--seed", str(2**31)], 2, "usage", "seed"),
    (["search", "boat", "--language", "zz-??"], 2, "unknown_language", "is not a language tag"),
    (["search", "\udc80 boat"], 2, "bad_query", "not valid text"),
    (["update"], 2, "usage_problem", "Say what to learn from"),
    (["update", "x", "--chunk", "y"], 2, "usage_problem", "Say what to learn from"),
    (["update", "--chunk", "ffffffff"], 1, "unknown_chunk", "no chunk"),
    (["update", "--chunk", "a", "--strategy", "magic"], 2, "unknown_strategy", "language-tables"),
    (
        ["update", "--chunk", "a", "--strategy", "teir", "--option", "x=1"],
        2,
        "bad_strategy_option",
        "has no option",
    ),
    (
        ["update", "--chunk", "a", "--option", "epochs=1"],
        2,
        "usage_problem",
        "--option belongs to a strategy",
    ),
    (["update", "--resume", "j99"], 1, "unknown_job", "no job"),
    (["update", "--cancel", "j99"], 1, "unknown_job", "no job"),
    (["search", "--rerank"], 2, "bad_query", "Nothing is looked for, so rerank cannot be used"),
    (["search", "--sort", "size"], 2, "usage_problem", "--sort is one of added, taken"),
    (["search", "--pin"], 2, "usage_problem", "one text can be pinned"),
    (["nonsense"], 2, "usage", "nonsense"),
]


@pytest.mark.parametrize(("arguments", "exit_code", "code", "words"), MISTAKES)
def test_a_mistake_is_one_sentence_and_changes_nothing(
    template: Path, arguments: list[str], exit_code: int, code: str, words: str
) -> None:
    before = sorted(path.name for path in template.glob("[crv]*s/*"))
    found = document(*arguments, home=template, code=exit_code)
    assert found["code"] == code
    assert words in found["error"]
    result = run(*arguments, home=template)
    assert result.exit_code == exit_code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in template.glob("[crv]*s/*")) == before


@pytest.mark.parametrize("lost", ["catalog.sqlite", "blobs.lmdb/data.mdb"])
@pytest.mark.parametrize(
    "verb", [["status"], ["search", "boat"], ["ingest", "x.zip"], ["update", "--chunk", "a"]]
)
def test_a_home_that_lost_what_everything_refers_to_is_not_made_anew(
    home: Path, lost: str, verb: list[str]
) -> None:
    (home / lost).unlink()
    found = document(*verb, home=home, code=1)
    assert found["code"] == "home_damaged"
    assert "Restore it from a backup" in found["error"]
    assert not (home / lost).exists()


def test_a_strategy_that_does_not_fit_the_chunk_says_why_before_a_job_is_queued(template: Path) -> None:
    probes = document("status", "--probes", home=template)["chunks"][-1]["id"]
    found = document("update", "--chunk", probes, "--strategy", "language-tables", home=template, code=2)
    assert found["code"] == "strategy_misfit"
    assert "captions in en alone, the language that every encoder begins with" in found["error"]
    assert document("status", home=template)["jobs"] == []


def test_the_folder_that_holds_the_home_is_not_taken_in(home: Path) -> None:
    found = document("ingest", home.parent, home=home, code=2)
    assert "holds the home" in found["error"]


def test_an_update_that_cannot_start_takes_nothing_in(home: Path, tmp_path: Path) -> None:
    source = small_home.sample_chunk(tmp_path / "more.zip", pictures=4, first=9)
    with Workspace.open(load_settings(home=home)) as workspace:
        workspace.catalog.add_job("update", {})
        before = [chunk.id for chunk in workspace.catalog.chunks()]
    found = document("update", source, home=home, code=5)
    assert found["code"] == "update_running"
    with Workspace.open(load_settings(home=home)) as workspace:
        assert [chunk.id for chunk in workspace.catalog.chunks()] == before


def test_what_nobody_foresaw_is_one_line_that_names_the_log(home: Path) -> None:
    edge = typer.Typer(cls=cli._Edge)

    @edge.command()
    def divide() -> None:
        from app.commands.terminal import settings_for

        settings_for(home)
        raise ZeroDivisionError("by zero")

    @edge.command()
    def rest() -> None:
        raise KeyboardInterrupt

    result = CliRunner().invoke(edge, ["divide"])
    assert result.exit_code == 1
    assert str(home / "perennial.log") in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert "ZeroDivisionError: by zero" in (home / "perennial.log").read_text()
    assert CliRunner().invoke(edge, ["rest"]).exit_code == 130
