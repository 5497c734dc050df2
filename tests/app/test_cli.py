from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import typer
from huggingface_hub import constants
from typer.testing import CliRunner

from app import cli
from app.commands import (
    chunks,
    homes,
    judging,
    learning,
    releasing,
    reports,
    searching,
    standing,
    status,
    words,
)
from app.jobs import requests, worker
from app.learning import going_live, update_cycle
from app.learning.outcomes import AddOutcome, UpdateRequest
from app.settings import load_settings
from app.workspace import Workspace
from ingest.intake import IntakeOptions
from ingest.records import JobRecord
from ingest.report import IntakeReport
from model_updates.gate.report import GateReport
from tests.app import small_home
from tests.app.gate_reports import HOSTILE, chunk_with_findings, findings, gate_report
from tests.app.releases.publishing import damage
from tests.model_updates.sentence_folders import both_folders

VERBS = {
    *(
        "init",
        "ingest",
        "update",
        "methods",
        "evaluate",
        "gate",
        "check",
        "accept",
        "withdraw",
        "remove",
        "compare",
        "diff",
        "drift",
        "promote",
        "rollback",
        "releases",
        "reject",
        "pin",
        "unpin",
    ),
    *("search", "serve", "work", "mcp", "demo", "status", "models"),
    *("changes", "quality", "feedback"),
}


def run(*arguments: str | Path, home: Path | None = None) -> Any:
    place = [] if home is None else ["--home", str(home)]
    return CliRunner().invoke(cli.app, [*map(str, arguments), *place])


def document(*arguments: str | Path, home: Path, code: int = 0) -> Any:
    result = run(*arguments, "--json", home=home)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home to be looked at, not changed."""
    return small_home.small_home(tmp_path_factory)


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Path:
    return small_home.copy_of(template, tmp_path)


@pytest.fixture(scope="module")
def reviewed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which an update has left a release for a person to review."""
    place = small_home.copy_of(template, tmp_path_factory.mktemp("reviewed"))
    # Generous, so that a home too small to teach anything gets a review and no rejection.
    gate = {"samples": 200, "slice_drop": 100.0, "pooled_drop": 100.0}
    with Workspace.open(load_settings(home=place, gate=gate)) as workspace:
        request = UpdateRequest(
            chunk=small_home.taught_chunk(place), strategy="language-tables", options={"epochs": 1}, by="test"
        )
        scratch = workspace.home.staging / "j1"
        outcome = update_cycle.update(workspace, request, scratch=scratch, progress=lambda _: None)
    assert outcome.verdict == "review", outcome.sentence
    return place


# Before anything runs


def test_help_loads_nothing_heavy_and_names_every_verb() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from app.cli import app;"
        "print(CliRunner().invoke(app, ['--help']).output);"
        "heavy = ['torch', 'faiss', 'gradio', 'numpy', 'sqlalchemy', 'PIL', 'pydantic_settings', 'rich'];"
        "print('loaded:', [name for name in heavy if name in sys.modules])"
    )
    root = str(Path(__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": root}
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert "loaded: []" in output
    assert {line.split()[0] for line in output.splitlines() if line.startswith("  ")} >= VERBS


def test_every_verb_knows_json_and_home() -> None:
    verbs = {
        name: function
        for module in (
            homes,
            chunks,
            judging,
            learning,
            releasing,
            reports,
            searching,
            standing,
            status,
            words,
        )
        for name, function in vars(module).items()
        if name in VERBS and inspect.isfunction(function)
    }
    assert set(verbs) == VERBS
    for name, function in verbs.items():
        parameters = set(inspect.signature(function).parameters)
        assert "home" in parameters or name in {"methods", "models"}
        assert "is_json" in parameters or name in {"serve", "work", "mcp", "demo"}


# Mistakes


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
    assert "run `python -m app init`" in result.stderr
    assert result.stdout == ""
    assert not (tmp_path / "none").exists()


MISTAKES = [
    (["search", " "], 2, "BadQuery", "nothing to look for"),
    (["search", "x" * 501], 2, "BadQuery", "at most 500"),
    (["search", "boat", "--rerank"], 2, "BadQuery", "cannot re-rank"),
    (["search", "boat", "--release", "r99"], 1, "UnknownRelease", "no release 'r99'"),
    (["compare", "r1", "r99", "boat"], 1, "UnknownRelease", "no release 'r99'"),
    (["drift", "r1", "r99"], 1, "UnknownRelease", "no release 'r99'"),
    (["drift", "r1", "r2", "--pairs", "1"], 2, "Usage", "pairs"),
    (["promote", "r99"], 1, "UnknownRelease", "no release 'r99'"),
    (["gate", "r99"], 1, "UnknownRelease", "no release 'r99'"),
    (["gate", "j99"], 1, "UnknownJob", "j99"),
    (["check", "feedbeef"], 1, "UnknownChunk", "feedbeef"),
    (["promote", "r2"], 2, "UsageProblem", "live already"),
    (["rollback"], 2, "UsageProblem", "nothing to go back to"),
    (["ingest", "missing.zip"], 1, "BadUpload", "missing.zip"),
    (["ingest", "x", "--map", "text"], 2, "UsageProblem", "--map takes name=value"),
    (["ingest", "x", "--language", "klingonish"], 2, "UnknownLanguage", "klingonish"),
    (["ingest", ""], 2, "Usage", "it is empty"),
    (["ingest", "x", "--report", "no-such-folder/r.csv"], 2, "UsageProblem", "Nothing was done"),
    (["ingest", "/dev/null"], 1, "BadUpload", "neither a file nor a folder"),
    (["update", "--chunk", "a", "--seed", "-5"], 2, "Usage", "seed"),
    (["update", "--chunk", "a", "--seed", str(2**31)], 2, "Usage", "seed"),
    (["search", "boat", "--language", "zz-??"], 2, "UnknownLanguage", "is not a language tag"),
    (["search", "\udc80 boat"], 2, "BadQuery", "not valid text"),
    (["update"], 2, "UsageProblem", "Say what to learn from"),
    (["update", "x", "--chunk", "y"], 2, "UsageProblem", "Say what to learn from"),
    (["update", "--chunk", "ffffffff"], 1, "UnknownChunk", "no chunk"),
    (["update", "--chunk", "a", "--strategy", "magic"], 2, "UnknownStrategy", "language-tables"),
    (
        ["update", "--chunk", "a", "--strategy", "teir", "--option", "x=1"],
        2,
        "BadStrategyOption",
        "has no option",
    ),
    (["update", "--chunk", "a", "--option", "epochs=1"], 2, "UsageProblem", "--option belongs to a strategy"),
    (["update", "--resume", "j99"], 1, "UnknownJob", "no job"),
    (["update", "--cancel", "j99"], 1, "UnknownJob", "no job"),
    (["search"], 2, "BadQuery", "nothing to look for"),
    (["nonsense"], 2, "Usage", "nonsense"),
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
    assert found["code"] == "HomeDamaged"
    assert "Restore it from a backup" in found["error"]
    assert not (home / lost).exists()


def test_a_strategy_that_does_not_fit_the_chunk_says_why_before_a_job_is_queued(template: Path) -> None:
    probes = document("status", home=template)["chunks"][0]["id"]
    found = document("update", "--chunk", probes, "--strategy", "language-tables", home=template, code=2)
    assert found["code"] == "StrategyMisfit"
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
    assert found["code"] == "UpdateRunning"
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


# Verbs


def test_init_refuses_a_home_that_has_releases(template: Path) -> None:
    found = document("init", home=template, code=2)
    assert "already has releases" in found["error"]


def test_ingest_reports_what_became_of_each_row_and_the_same_again_is_0_new(
    home: Path, tmp_path: Path
) -> None:
    source = small_home.sample_chunk(tmp_path / "more.zip", pictures=4, first=11)
    first = document("ingest", source, "--name", "four", "--report", tmp_path / "rows.csv", home=home)
    assert (first["name"], first["new_images"], first["images_embedded"]) == ("four", 4, 4)
    assert first["commit"]["reason"] == "ingest"
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8-sig").startswith("where,outcome,code,sentence")
    again = run("ingest", source, home=home)
    assert again.exit_code == 0
    assert "0 new pairs" in again.stdout
    assert document("ingest", source, home=home)["commit"] is None


def test_search_prints_ranks_and_a_pin_is_kept(home: Path) -> None:
    result = run("search", "a red boat", "-k", "3", "--pin", home=home)
    assert result.exit_code == 0
    assert "Pinned" in result.stdout
    found = document("search", "a red boat", "-k", "3", home=home)
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
    with Workspace.open(load_settings(home=home)) as workspace:
        assert [pin.image_id for pin in workspace.catalog.pins()] == [found["hits"][0]["image_id"]]


def test_status_tells_what_is_live_and_what_it_knows(template: Path) -> None:
    found = document("status", home=template)
    assert found["live"]["release"].startswith("r2-")
    assert found["live"]["languages"] == ["en"]
    assert found["counts"]["gallery"] == small_home.PICTURES
    assert found["disk"]["used_bytes"] > 0
    text = run("status", home=template).stdout
    assert "Live: r2-" in text
    assert "probes" in text


def test_methods_list_every_strategy_with_its_options() -> None:
    from model_updates.strategies import STRATEGIES

    found = json.loads(run("methods", "--json").stdout)["strategies"]
    assert sorted(method["name"] for method in found) == sorted(STRATEGIES)
    assert all(method["summary"] and "epochs" in method["options"] for method in found)
    assert "language-tables" in run("methods").stdout


def test_one_method_is_shown_alone_and_an_unknown_one_is_refused() -> None:
    assert json.loads(run("methods", "teir", "--json").stdout)["keeps"] == "how often each token was seen"
    assert "apply_to" in run("methods", "teir").stdout
    refused = run("methods", "tier")
    assert refused.exit_code == 2
    assert "no strategy 'tier'; choose one of" in " ".join(refused.output.split())


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def test_init_takes_folders_of_sentence_transformers_and_the_home_searches(tmp_path: Path) -> None:
    images, texts = both_folders()
    home = tmp_path / "home"
    made = run("init", "--model", images, "--texts", texts, "--languages", "en, DE", "--json", home=home)
    assert made.exit_code == 0, made.output
    found = document("status", home=home)
    assert found["live"]["languages"] == ["en", "de"]
    assert document("search", "ein roter Kreis", "--language", "de", home=home)["hits"] == []


@pytest.mark.usefixtures("offline")
def test_models_list_what_init_takes() -> None:
    found = json.loads(run("models", "--json").stdout)
    assert inspect.signature(homes.init).parameters["model"].default in found["embedded"]
    assert "laion400m_e31" in found["architectures"]["ViT-B-16"]
    assert found["hub"] is False
    assert "perennial-photo (the default)" in run("models", "perennial").stdout
    text = run("models", "vit-b-16").stdout
    assert "ViT-B-16-quickgelu" in text
    assert "RN50" not in text
    assert "--pretrained weights.safetensors" in text
    assert "none answers from here" in text


@pytest.mark.usefixtures("offline")
def test_help_and_an_unknown_encoder_lead_to_the_list(tmp_path: Path) -> None:
    assert "`models` lists them" in " ".join(run("init", "--help").stdout.split())
    refused = document("init", "--model", "ViT-B-17", home=tmp_path / "home", code=2)
    assert refused["code"] == "UnknownModel"
    assert "similar: ViT-B-16" in refused["error"]
    assert "`python -m app models`" in refused["error"]
    assert "has 'zzz' in its name" in run("models", "zzz").output
    assert not (tmp_path / "home").exists()


def test_evaluate_measures_the_live_release(template: Path) -> None:
    found = document("evaluate", home=template)
    assert {part["language"] for part in found["slices"]} == {"en"}
    assert run("evaluate", "--release", "r1", home=template).exit_code == 0


def test_a_review_needs_force_and_rollback_goes_back(reviewed: Path, tmp_path: Path) -> None:
    home = small_home.copy_of(reviewed, tmp_path)
    release = document("releases", home=home)[0]
    assert (release["verdict"], release["live"], release["languages"]) == ("review", False, ["en", "de"])
    assert "Verdict: review" in run("gate", release["id"], home=home).stdout
    assert document("gate", release["id"], home=home)["gate"]["verdict"] == "review"
    refused = document("promote", release["id"], home=home, code=4)
    assert "--force" in refused["error"]
    assert document("promote", release["id"], "--force", "--why", "looked", home=home)["why"] == "looked"
    assert document("releases", home=home)[0]["live"]
    assert document("rollback", home=home)["reason"] == "rollback"
    assert not document("releases", home=home)[0]["live"]


def test_gate_shows_the_whole_report_of_a_rejected_update_by_its_job(home: Path) -> None:
    report = gate_report("reject")
    with Workspace.open(load_settings(home=home)) as workspace:
        job = workspace.catalog.add_job("update", {"chunk": "0a1b2c3d4e5f"})
        workspace.catalog.update_job(job.id, state="rejected", result={"gate": report.to_json()})
    said = run("gate", job.id, home=home).stdout
    assert "Verdict: reject" in said
    assert report.first_reason in said
    assert "What to do next:" in said
    assert GateReport.from_json(document("gate", job.id, home=home)["gate"]) == report


def test_gate_of_a_release_that_learned_nothing_says_so(template: Path) -> None:
    assert "went through no gate" in run("gate", "r2", home=template).stdout
    assert document("gate", "r2", home=template)["gate"] is None


def test_check_shows_findings_standing_and_next_steps(home: Path) -> None:
    chunk = small_home.taught_chunk(home)
    with Workspace.open(load_settings(home=home)) as workspace:
        workspace.catalog.add_findings(chunk, findings())
        workspace.catalog.set_standing(chunk, "held", by="checks", why="row shift")
    said = run("check", chunk[:6], home=home).stdout
    for expected in (
        "Standing: held",
        "By checks",
        "HOLD  row shift",
        "offset 1",
        f"accept {chunk}",
        f"withdraw {chunk}",
    ):
        assert expected in said
    found = document("check", chunk, home=home)
    assert (found["standing"], found["standing_by"], found["standing_why"]) == ("held", "checks", "row shift")
    shift = next(finding for finding in found["findings"] if finding["check"] == "row_shift")
    assert shift["examples"][0]["text"] == HOSTILE


def test_what_was_taken_in_and_is_held_is_not_offered_for_teaching() -> None:
    report = IntakeReport("0a1b2c3d4e5f", "names", 5, 0, 5, 0, 0, {}, None, (), ())
    outcome = AddOutcome(report, None, 0)
    held = "\n".join(chunks.added_lines(outcome, chunk_with_findings("held")))
    assert "It is held and teaches nothing yet:\n  row shift: The captions look moved by one row." in held
    assert "check 0a1b2c3d4e5f" in held
    assert "Teach it" not in held
    new = "\n".join(chunks.added_lines(outcome, chunk_with_findings("new")))
    assert "Teach it: `python -m app update --chunk 0a1b2c3d4e5f`." in new
    assert "held and" not in new


def test_accept_and_withdraw_change_what_a_chunk_counts_for(home: Path) -> None:
    chunk = small_home.taught_chunk(home)
    assert run("accept", chunk, home=home).exit_code == 2, "a reason is asked for"
    accepted = document("accept", chunk[:6], "--why", "checked by hand", "--measure", home=home)
    assert (accepted["standing"], accepted["measures"]) == ("accepted", True)
    assert "accepted, measures" in run("status", home=home).stdout

    gone = document("withdraw", chunk, "--why", "wrong names", home=home)
    assert (gone["chunk"]["standing"], gone["chunk"]["standing_why"]) == ("withdrawn", "wrong names")
    assert gone["pictures"] == small_home.PICTURES
    assert worker.follow(load_settings(home=home), gone["job"]).state == "succeeded"
    assert document("search", "a red boat", home=home)["hits"] == []
    refused = document("update", "--chunk", chunk, home=home, code=4)
    assert "withdrawn (wrong names)" in refused["error"]


def test_status_reads_every_byte_when_asked(home: Path) -> None:
    assert document("status", "--verify", home=home)["damaged"] == []
    release = document("status", home=home)["live"]
    index = home / "generations" / release["generation"] / "index.faiss"
    index.chmod(0o644)
    damage(index)
    damaged = document("status", "--verify", home=home)["damaged"]
    assert damaged
    assert "index.faiss" in damaged[-1]


def test_going_back_starts_a_job_for_the_pictures_that_came_later(home: Path, tmp_path: Path) -> None:
    settings = load_settings(home=home)
    old = document("status", home=home)["live"]["release"]
    more = small_home.sample_chunk(tmp_path / "more.zip", pictures=4, first=7)
    document("ingest", more, home=home)
    back = document("rollback", old, home=home)
    assert back["left_out"] == 4
    assert worker.follow(settings, back["job"]).state == "succeeded"
    with Workspace.open(settings) as workspace:
        assert going_live.left_out(workspace, going_live.live_release(workspace)[1].id) == 0
    assert document("update", "--resume", back["job"], home=home, code=2)["code"] == "UsageProblem"


def test_an_interrupted_upload_is_resumed_in_the_terminal_too(home: Path, tmp_path: Path) -> None:
    settings = load_settings(home=home)
    source = small_home.sample_chunk(tmp_path / "more.zip", pictures=4, first=7)
    job = requests.intake_job(settings, source, IntakeOptions(name="more"), by="test")
    with Workspace.open(settings) as workspace:
        workspace.catalog.update_job(job.id, state="interrupted")
    said = run("update", "--resume", job.id, home=home)
    assert said.exit_code == 0, said.output
    assert "4 new pictures" in said.stdout
    assert "4 pictures embedded" in said.stdout


def test_compare_shows_how_pictures_moved(reviewed: Path) -> None:
    found = document("compare", "r2", "r3", "ein rotes Boot", "-k", "3", home=reviewed)
    assert len(found["a"]["hits"]) == len(found["b"]["hits"]) == 3
    assert "are the same" in run("compare", "r2", "r3", "boat", home=reviewed).stdout


def test_drift_shows_that_a_table_of_its_own_turned_nothing(reviewed: Path) -> None:
    found = document("drift", "r2", "r3", "--pairs", "60", home=reviewed)
    assert (found["before"][:3], found["after"][:3], found["pairs"]) == ("r2-", "r3-", 60)
    assert set(found["drift"]) == {
        *("sam_pictures", "sam_texts", "ram_pictures", "ram_texts"),
        *("imam_text_to_image", "imam_image_to_text"),
    }
    for angles in found["drift"].values():
        assert angles["mean"] is None or angles["mean"] < 1e-3
        assert angles["count"] == 0 or angles["shares"][0] == 100
    said = run("drift", "r2", "r3", "--pairs", "60", home=reviewed).stdout
    assert "60 held-out pairs" in said
    assert "pictures turned" in said


def test_diff_says_what_two_releases_differ_in(reviewed: Path) -> None:
    found = document("diff", "r2", "r3", home=reviewed)
    assert found["b"][:3] == "r3-"
    assert not found["same_version"]
    said = run("diff", "r2", "r3", home=reviewed).stdout
    assert "A was trained last by" in said


def test_releases_are_drawn_with_who_made_them_live(reviewed: Path) -> None:
    nodes = document("releases", "--lineage", home=reviewed)
    assert [node["release"][:3] for node in nodes][-1] == "r1-"
    assert "init by init" in run("releases", "--lineage", home=reviewed).stdout


def test_a_dry_run_says_what_an_update_would_take_and_starts_nothing(home: Path) -> None:
    chunk = next(one["id"] for one in document("status", home=home)["chunks"])
    found = document("update", "--chunk", chunk, "--dry-run", home=home)
    assert found["recommended"] == "evergreen"
    assert found["total_seconds"] >= 0
    assert document("status", home=home)["jobs"] == []
    refused = run("update", "somewhere", "--dry-run", home=home)
    assert refused.exit_code == 2
    assert "Take SOURCE in with `ingest`" in refused.stderr


def test_what_is_live_is_pinned_and_a_candidate_rejected(home: Path) -> None:
    assert document("pin", "--why", "exhibition", home=home)["said"] == "pinned"
    assert run("pin", home=home).exit_code != 0
    assert "is unpinned" in run("unpin", home=home).stdout
    live = next(one["id"] for one in document("releases", home=home) if one["live"])
    refused = run("reject", live, "--why", "x", home=home)
    assert refused.exit_code != 0
    assert "Go back to another release first" in refused.stderr


# How an update ends

JOB = JobRecord("j1", "update", "succeeded", {}, {}, {}, None, None, "", None, None)


@pytest.mark.parametrize(
    ("state", "result", "exit_code"),
    [
        ("succeeded", {}, 0),
        ("rejected", {}, 3),
        ("review", {}, 4),
        ("failed", {"code": "NothingToLearn", "exit_code": 1}, 1),
        ("failed", {"code": "UpdateRunning", "exit_code": 5}, 5),
        ("cancelled", {}, 1),
        ("interrupted", {}, 1),
    ],
)
def test_the_exit_code_tells_the_verdict(state: str, result: dict[str, Any], exit_code: int) -> None:
    ended = replace(JOB, state=state, error="It went wrong." if state == "failed" else None)
    outcome = {"sentence": "s", "seconds": 1.0, "images_embedded": 0, "release": "r3-1", "version": "v2-1"}
    ended = replace(ended, result=result or outcome)
    with pytest.raises((typer.Exit, learning.JobFailed)) as left:
        learning._finish(ended, is_json=True)
    assert isinstance(left.value, (typer.Exit, learning.JobFailed))
    assert left.value.exit_code == exit_code
    if isinstance(left.value, learning.JobFailed):
        assert left.value.code == result.get("code", "JobFailed")
