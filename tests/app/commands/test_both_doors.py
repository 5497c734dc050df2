"""Claims about verbs that judge and files that search writes: a home and a server that has it show the same."""

from __future__ import annotations

import csv
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from app.commands import cli
from app.feedback import votes as feedback
from app.home.settings import Settings
from app.jobs import requests
from ingest.intake import IntakeOptions
from tests.app.server.served import Served, add_held_out, make_home, sample_upload, served
from tests.app.small_home import copy_of, new_home
from tests.ingest.material import folder_of, picture

pytestmark = pytest.mark.usefixtures("starts_at_once")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("home")
    with served(make_home(folder)) as running:
        workspace = running.serving.workspace
        add_held_out(workspace, folder)
        image_id = workspace.catalog.gallery_ids()[0]
        for query in ("a hut that I like", "a hut that is wrong"):
            said = {"query": query, "language": "en", "release": "r1", "verdict": "up", "by": "ada"}
            feedback.thumb(workspace, image_id=image_id, **said)
        sides = {"a": "r1", "b": "r2", "choice": "b"}
        feedback.vote(workspace, query="a boat", language="en", by="ada", **sides)
        yield running


def elsewhere(server: Served, *arguments: str | Path) -> Any:
    return CliRunner().invoke(cli.app, [*map(str, arguments), "--server", server.url])


def at_home(server: Served, *arguments: str | Path) -> Any:
    return CliRunner().invoke(cli.app, [*map(str, arguments), "--home", str(server.settings.home)])


def said(result: Any) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(
    "asked",
    [
        ("changes", "r1", "r2", "-k", "5", "--most", "3"),
        ("quality",),
        ("quality", "--metric", "t2i_r1", "--view", "mixed"),
        ("diff", "r1", "r2"),
        ("drift", "r1", "r2", "--pairs", "20"),
        ("feedback",),
    ],
    ids=" ".join,
)
def test_a_server_shows_what_its_home_shows(server: Served, asked: tuple[str, ...]) -> None:
    # What is shown is made of the document; that of `changes` says how many seconds each query took.
    form = () if asked[0] == "changes" else ("--json",)
    here, there = at_home(server, *asked, *form), elsewhere(server, *asked, *form)
    assert here.exit_code == 0, here.output
    assert there.output == here.output


def test_changes_sends_the_queries_of_a_file_however_many(server: Served, tmp_path: Path) -> None:
    queries = tmp_path / "queries.txt"
    many = [f"a red boat number {n}" for n in range(70)]  # more than a server compares at once
    queries.write_text("\n".join([*many, "x" * 600, many[0]]), encoding="utf-8")
    asked = ("changes", "r1", "r2", "--queries", queries, "-k", "3")
    there = elsewhere(server, *asked)
    assert there.output == at_home(server, *asked).output
    assert "71 queries were asked." in there.output
    assert "Refused" in there.output
    queries.write_text("\n", encoding="utf-8")
    assert elsewhere(server, *asked).exit_code == at_home(server, *asked).exit_code == 2


@pytest.mark.parametrize(
    ("asked", "code", "sentence"),
    [
        (("changes", "r1", "r99"), 1, "r99"),
        (("quality", "--metric", "map"), 2, "t2i_mean"),
        (("diff", "r1", "r99"), 1, "r99"),
        (("drift", "r1", "r99"), 1, "r99"),
        (("feedback", "--to", "out.zip", "--leave-out", "strange"), 2, "not proposed"),
        (("feedback", "--to", "no-such-folder/out.zip"), 2, "folder that exists"),
        (("reject", "r99", "--why", "bad"), 1, "r99"),
        (("reject", "r2"), 2, "say why"),
        (("unpin",), 2, "Nothing is pinned"),
        (("search", "boat", "--zip", "no-such-folder/out.zip"), 2, "folder that exists"),
        (("search", "boat", "--offset", "5001"), 2, "5000"),
        (("compare", "r1", "r2", "boat", "-k", "5000"), 2, "Input should be less than or equal to 500"),
        (
            ("compare", "r1", "r2", "boat", "--language", "x" * 41),
            2,
            "language: String should have at most 40",
        ),
        (("changes", "r1", "r2", "-k", "5000"), 2, "Input should be less than or equal to 500"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_both_doors_refuse_alike(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: Any, code: int, sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for door in (at_home, elsewhere):
        refused = door(server, *asked)
        assert (refused.exit_code, sentence in refused.stderr) == (code, True), refused.output
    assert list(tmp_path.iterdir()) == []


def test_the_proposed_chunk_is_the_same_file_through_both_doors(server: Served, tmp_path: Path) -> None:
    proposal = said(elsewhere(server, "feedback", "--json"))["proposal"]
    wrong = next(pair["id"] for pair in proposal["pairs"] if "wrong" in pair["text"])
    files = [tmp_path / "there.zip", tmp_path / "here.zip"]
    for door, file in zip((elsewhere, at_home), files, strict=True):
        assert door(server, "feedback", "--to", file, "--leave-out", wrong).exit_code == 0
    assert files[0].read_bytes() == files[1].read_bytes()
    with zipfile.ZipFile(files[0]) as archive:
        assert "that is wrong" not in archive.read("captions.csv").decode()
    assert list((server.settings.home / "inbox").iterdir()) == [], "what was made to be sent is left"


def test_what_was_found_goes_into_files_page_by_page(server: Served, tmp_path: Path) -> None:
    tables = {}
    for door in (at_home, elsewhere):
        table, pictures = tmp_path / f"{door.__name__}.csv", tmp_path / f"{door.__name__}.zip"
        asked = ("search", "a red boat", "-k", "3", "--offset", "2", "--csv", table, "--zip", pictures)
        shown = door(server, *asked)
        assert f"What was found is in {table}" in shown.stdout
        hits = said(door(server, *asked, "--json"))["hits"]
        rows = list(csv.DictReader(table.read_text(encoding="utf-8-sig").splitlines()))
        assert [row["rank"] for row in rows] == ["3", "4", "5"]
        assert [row["id"] for row in rows] == [hit.get("id", hit.get("image_id")) for hit in hits]
        with zipfile.ZipFile(pictures) as archive:
            assert len(archive.namelist()) == 4
            assert archive.read("results.csv") == table.read_bytes()
        tables[door] = table.read_bytes()
    assert tables[at_home] == tables[elsewhere]


def test_a_release_is_rejected_and_pinned_on_a_server(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running:
        assert "is rejected: too blue" in elsewhere(running, "reject", "r2", "--why", "too blue").stdout
        refused = elsewhere(running, "promote", "r2")
        assert (refused.exit_code, "too blue" in refused.stderr) == (2, True)
        assert said(elsewhere(running, "keep", "r2", "--why", "after all", "--json"))["said"] == "kept"
        assert said(elsewhere(running, "pin", "--why", "exhibition", "--json"))["said"] == "pinned"
        pinned = elsewhere(running, "promote", "r2")
        assert "exhibition" in pinned.stderr
        assert "is unpinned" in elsewhere(running, "unpin").stdout
        assert elsewhere(running, "promote", "r2").exit_code == 0, "keeping it takes the rejection back"


def test_a_release_travels_from_one_server_to_another(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with served(make_home(tmp_path)) as sender:
        sent = said(elsewhere(sender, "export", "r2", "--to", tmp_path, "--json"))
        again = elsewhere(sender, "export", "r2", "--to", tmp_path)
        assert (again.exit_code, "is there already" in again.stderr) == (2, True)
    assert [path.suffix for path in tmp_path.iterdir() if path.is_file()] == [".perennial"]
    home = copy_of(new_home(tmp_path_factory), tmp_path, "receiver")
    with served(Settings(home=home, poll_seconds=0.1, jobs="elsewhere")) as receiver:
        wrong = elsewhere(receiver, "import", sent["path"], "--sha256", "0" * 64)
        assert (wrong.exit_code, "Traceback" in wrong.output) == (1, False), wrong.output
        came = elsewhere(receiver, "import", sent["path"], "--sha256", sent["sha256"])
        assert came.exit_code == 0, came.output
        assert f"{sent['release']} is here as r2-" in came.stdout
        assert not next(one for one in said(elsewhere(receiver, "releases", "--json")))["live"]


def test_a_stopped_job_goes_on_by_a_word_to_its_server(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running:
        source = sample_upload(tmp_path / "more.zip", first=70, count=4)
        job = requests.intake_job(running.settings, source, IntakeOptions(name="more"), by="test")
        running.serving.workspace.catalog.update_job(job.id, state="cancelled")
        resumed = elsewhere(running, "update", "--resume", job.id)
        assert resumed.exit_code == 0, resumed.output
        assert "4 pictures embedded" in resumed.stdout
        again = elsewhere(running, "update", "--resume", job.id)
        assert (again.exit_code, job.id in again.stderr) == (2, True), again.output


def test_a_table_finds_its_pictures_in_another_folder_by_both_doors(server: Served, tmp_path: Path) -> None:
    photos = folder_of(tmp_path / "photos", {f"{n}.png": picture(n, size=(64, 64)) for n in range(3)})
    table = tmp_path / "captions.csv"
    table.write_text("image,caption\n" + "".join(f"{n}.png,a plain picture number {n}\n" for n in range(3)))
    asked = ("add", table, "--pictures", photos, "--language", "en", "--json")
    there, here = said(elsewhere(server, *asked)), said(at_home(server, *asked))
    assert (there["new_pairs"], there["rejected"], there["name"]) == (3, 0, "captions.csv")
    # The same chunk, which is known by now.
    assert (here["chunk_id"], here["new_pairs"], here["name"]) == (there["chunk_id"], 0, "captions.csv")
    for door in (at_home, elsewhere):
        refused = door(server, "add", table, "--pictures", tmp_path / "fotos")
        assert refused.exit_code == 1
        assert "There is no folder" in refused.stderr
        refused = door(server, "add", table, "--pictures", tmp_path)
        assert refused.exit_code == 1
        assert "3 of 3 named pictures are not in" in " ".join(refused.stderr.split())
