"""Claims about verbs that take chunks in and say what they count for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from app.desk.chunks import Added, Chunk
from app.desk.operation import grown
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.jobs import requests, worker
from app.words.chunk import added_lines
from ingest.catalog import Catalog
from ingest.intake import IntakeOptions
from ingest.report import IntakeReport
from tests.app import small_home
from tests.app.commands.running import document, run
from tests.app.gate_reports import HOSTILE, chunk_with_findings, findings
from tests.ingest.material import folder_of, picture
from tests.ingest.web import web_server


def test_ingest_reports_what_became_of_each_row_and_the_same_again_is_0_new(
    home: Path, tmp_path: Path
) -> None:
    source = small_home.sample_chunk(tmp_path / "more.zip", pictures=4, first=11)
    first = document("ingest", source, "--name", "four", "--report", tmp_path / "rows.csv", home=home)
    assert (first["name"], first["new_images"], first["images_embedded"]) == ("four", 4, 4)
    assert first["release"].startswith("r3-")
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8-sig").startswith("where,outcome,code,sentence")
    again = run("ingest", source, home=home)
    assert again.exit_code == 0
    assert "(more.zip): 8 known pairs." in again.stdout
    assert document("ingest", source, home=home)["release"] is None


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


def test_check_shows_findings_standing_and_next_steps(home: Path) -> None:
    chunk = small_home.taught_chunk(home)
    with Workspace.open(load_settings(home=home)) as workspace:
        workspace.catalog.set_findings(chunk, findings())
        workspace.catalog.set_standing(chunk, "held", by="checks", why="row shift")
    said = run("check", chunk[:6], home=home).stdout
    for expected in (
        "Status: held",
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


def _added(report: IntakeReport, standing: str) -> str:
    chunk = grown(Chunk, chunk_with_findings(standing))
    return "\n".join(added_lines(Added(chunk, report.to_json(), 0)))


def test_what_was_taken_in_and_is_held_is_not_offered_for_teaching() -> None:
    report = IntakeReport("0a1b2c3d4e5f", "names", 5, 0, 5, 0, 0, {}, None, (), ())
    held, new = (_added(report, standing) for standing in ("held", "new"))
    assert "It is held and teaches nothing yet:\n  row shift: The captions look moved by one row." in held
    assert "check 0a1b2c3d4e5f" in held
    assert "Teach it" not in held
    assert "Teach it: `perennial update --chunk 0a1b2c3d4e5f`." in new
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
    assert worker.follow(load_settings(home=home), gone["job"]["id"]).state == "succeeded"
    assert document("search", "a red boat", home=home)["hits"] == []
    refused = document("update", "--chunk", chunk, home=home, code=4)
    assert "withdrawn (wrong names)" in refused["error"]


def test_a_folder_read_again_says_what_changed_without_loading_a_model(home: Path, tmp_path: Path) -> None:
    photos = {f"{n}.png": picture(n) for n in range(3)}
    folder = folder_of(tmp_path / "photos", {**photos, "broken.png": b"nothing", "film.mov": b"nothing"})
    first = document("add", folder, home=home)
    command = [sys.executable, "-X", "importtime", "-m", "perennial", "add", str(folder), "--home", str(home)]

    again = subprocess.run(command, capture_output=True, text=True, check=True)

    assert "unchanged pictures, which were not read again: 3" in again.stdout
    loaded = {line.rpartition("|")[2].strip() for line in again.stderr.splitlines()}
    assert "ingest.rescan" in loaded
    assert "torch" not in loaded
    told = document("add", folder, home=home)
    assert told["rows"] == [row for row in first["rows"] if row["outcome"] == "rejected"]
    assert {row["where"] for row in told["rows"]} == {"broken.png", "film.mov"}
    (folder / "broken.png").write_bytes(picture(4))
    assert document("add", folder, home=home)["new_images"] == 1
    (folder / "1.png").unlink()
    gone = document("add", folder, home=home)
    assert (gone["unchanged"], gone["gone"], gone["release"] is not None) == (3, 1, True)
    assert document("add", folder, "--forget", home=home)["forgotten"] == 1


def test_pictures_that_a_table_names_by_address_are_fetched_and_found(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with web_server(pictures=3) as web:
        table = tmp_path / "web.csv"
        table.write_text("".join(["image\n", *(f"{web.url}/{n}.png\n" for n in (0, 1, 9))]))
        refused = document("add", table, "--fetch", home=home, code=1)
        assert "public internet are asked" in refused["error"]
        monkeypatch.setenv("PERENNIAL_FETCH_NETWORKS", "127.0.0.1/32,10.0.0.0/8")
        added = document("add", table, "--fetch", home=home)
        assert (added["new_images"], added["rejected"], added["images_embedded"]) == (2, 1, 2)
        found = document("search", "--chunk", added["chunk_id"], home=home)["hits"]
        assert {hit["sources"][0]["place"] for hit in found} == {f"{web.url}/{n}.png" for n in (0, 1)}
        assert run("pictures", found[0]["id"], "--save", tmp_path / "saved", home=home).exit_code == 0
        assert (tmp_path / "saved").read_bytes() in (picture(0), picture(1))


def test_own_ids_come_from_the_column_that_is_named(home: Path, tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "photos", {"a.png": picture(1), "t.csv": "image,sku,brand\na.png,b-17,Acme\n"}
    )
    run("add", folder, "--key", "sku", home=home)
    (image,) = document("search", "a boat", "-k", "1", "--chunk", _newest(home), home=home)["hits"]
    assert [(one["key"], one["fields"]) for one in image["sources"]] == [("b-17", {"brand": "Acme"})]


def _newest(home: Path) -> str:
    with Catalog.open(home / "catalog.sqlite") as catalog:
        return catalog.chunks()[-1].id
