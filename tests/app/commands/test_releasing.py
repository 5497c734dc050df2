"""Claims about verbs that look at releases, compare them, and make them live."""

from __future__ import annotations

from pathlib import Path

from PIL import Image

from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.jobs import worker
from app.learning import going_live
from model_updates.gate.report import GateReport
from tests.app import small_home
from tests.app.commands.running import document, run
from tests.app.gate_reports import gate_report


def test_a_review_needs_force_and_rollback_goes_back(reviewed: Path, tmp_path: Path) -> None:
    home = small_home.copy_of(reviewed, tmp_path)
    release = document("releases", home=home)[0]
    assert (release["verdict"], release["live"], release["languages"]) == ("review", False, ["en", "de"])
    assert "Verdict: review" in run("gate", release["id"], home=home).stdout
    assert document("gate", release["id"], home=home)["gate"]["verdict"] == "review"
    refused = document("promote", release["id"], home=home, code=4)
    assert "--force" in refused["error"]
    assert "say why" in document("promote", release["id"], "--force", home=home, code=2)["error"]
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


def test_going_back_starts_a_job_for_the_pictures_that_came_later(home: Path, tmp_path: Path) -> None:
    settings = load_settings(home=home)
    old = document("status", home=home)["live"]["release"]
    more = small_home.sample_chunk(tmp_path / "more.zip", pictures=4, first=7)
    document("ingest", more, home=home)
    back = document("rollback", old, home=home)
    assert back["left_out"] == 4
    assert worker.follow(settings, back["job"]["id"]).state == "succeeded"
    with Workspace.open(settings) as workspace:
        assert going_live.left_out(workspace, going_live.live_release(workspace)[1].id) == 0
    assert document("update", "--resume", back["job"]["id"], home=home, code=2)["code"] == "usage_problem"


def test_compare_shows_how_pictures_moved(reviewed: Path) -> None:
    found = document("compare", "r2", "r3", "ein rotes Boot", "-k", "3", home=reviewed)
    assert len(found["a"]["hits"]) == len(found["b"]["hits"]) == 3
    assert [hit["rank"] for hit in found["b"]["hits"]] == [1, 2, 3]
    assert "are the same" in run("compare", "r2", "r3", "boat", home=reviewed).stdout


def test_compare_takes_what_a_search_takes(reviewed: Path, tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.png"
    Image.linear_gradient("L").save(drawn)
    text = f"boat + 2:{drawn} - house"
    found = document("compare", "r2", "r3", text, "-k", "3", home=reviewed)
    alone = document("search", text, "--release", "r2", "-k", "3", home=reviewed)
    assert [hit["id"] for hit in found["a"]["hits"]] == [hit["id"] for hit in alone["hits"]]
    refused = document("compare", "r2", "r3", "boat + ./none.png", home=reviewed, code=2)
    assert "./none.png cannot be read" in refused["error"]


def test_drift_shows_that_a_table_of_its_own_turned_nothing(reviewed: Path) -> None:
    found = document("drift", "r2", "r3", "--pairs", "60", home=reviewed)
    assert (found["before"][:3], found["after"][:3]) == ("r2-", "r3-")
    assert 0 < found["pairs"] < 60, "the built-in checks are none of a person's own pictures"
    assert set(found["drift"]) == {
        *("sam_pictures", "sam_texts", "ram_pictures", "ram_texts"),
        *("imam_text_to_image", "imam_image_to_text", "finds"),
    }
    finds = found["drift"].pop("finds")
    assert finds["before"] == finds["after"] == finds["mixed"] > 0, (
        "no vector of the languages that both know moved"
    )
    for angles in found["drift"].values():
        assert angles["mean"] is None or angles["mean"] < 1e-3
        assert angles["count"] == 0 or angles["shares"][0] == 100
    said = run("drift", "r2", "r3", "--pairs", "60", home=reviewed).stdout
    assert f"{found['pairs']} held-out pairs" in said
    assert "pictures turned" in said
    assert "find their picture first" in said


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


def test_what_is_live_is_pinned_and_a_candidate_rejected(home: Path) -> None:
    assert document("pin", "--why", "exhibition", home=home)["said"] == "pinned"
    assert run("pin", home=home).exit_code != 0
    assert "is unpinned" in run("unpin", home=home).stdout
    live = next(one["id"] for one in document("releases", home=home) if one["live"])
    refused = run("reject", live, "--why", "x", home=home)
    assert refused.exit_code != 0
    assert "Go back to another release first" in refused.stderr
    other = next(one["id"] for one in document("releases", home=home) if not one["live"])
    assert document("keep", other, "--why", "for later", home=home)["said"] == "kept"
