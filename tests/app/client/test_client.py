"""Claims about the Python client and the command line's --server mode, against a running server."""

from __future__ import annotations

import inspect
import io
import json
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import typer
from PIL import Image
from typer.testing import CliRunner

from app.client import Refused, ServerAway, connect, server_desk
from app.commands import cli
from app.desk.desk import Desk
from app.desk.errors import AppError, JobFailed, UnknownFeedback, UsageProblem
from app.desk.hits import SearchRequest
from app.desk.troubles import trouble_of
from app.home.settings import load_settings
from app.server.security import Passwords, password_line
from ingest.catalog import Catalog
from ingest.records import JobRecord
from tests.app import small_home
from tests.app.server.served import Served, make_home, sample_upload, served

ROOT = Path(__file__).parents[3]


def test_what_is_no_text_is_refused_before_anything_is_sent() -> None:
    with connect("http://127.0.0.1:9") as client, pytest.raises(UsageProblem, match="Write it in UTF-8"):
        client.search(SearchRequest(text="red \udcff boat"))


@pytest.fixture
def client(server: Served) -> Iterator[Desk]:
    with connect(server.url) as client:
        yield client


def run(server: Served, *arguments: str) -> Any:
    return CliRunner().invoke(cli.app, [*arguments, "--server", server.url])


def document(server: Served, *arguments: str) -> Any:
    result = run(server, *arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


# The client


def test_the_client_loads_nothing_heavy() -> None:
    code = "import app.client, sys; print([m for m in ('torch','faiss','gradio','open_clip') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_hits_have_captions_and_pictures(client: Desk) -> None:
    answer = client.search(SearchRequest(text="a red boat", k=3))
    assert [hit.rank for hit in answer.hits] == [1, 2, 3]
    assert answer.hits[0].captions[0].language == "en"
    first = answer.hits[0].id
    sizes = [Image.open(io.BytesIO(show(first))).size for show in (client.thumbnail, client.picture)]
    assert sizes[0] <= sizes[1]


def test_compare_and_releases_are_typed(client: Desk) -> None:
    compared = client.compare("a red boat", "r1", "r2", k=4)
    assert (compared.a.release[:3], compared.b.release[:3]) == ("r1-", "r2-")
    assert {move.id for move in compared.moves} >= {hit.id for hit in compared.b.hits}
    assert [(one.id[:2], one.live) for one in client.releases()] == [
        ("r3", False),
        ("r2", False),
        ("r1", True),
    ]


def test_what_the_server_refuses_is_its_sentence_with_an_exit_code(client: Desk) -> None:
    for act, status, code, exit_code in (
        (lambda: client.search(SearchRequest(text=" ")), 400, "bad_query", 2),
        (lambda: client.drift("r1", "r2", pairs=9999), 422, "invalid_request", 2),
        (lambda: client.job("j77"), 404, "unknown_job", 1),
        (lambda: client.chunk("../releases"), 404, "unknown_route", 1),
        (lambda: client.promote("r99"), 404, "unknown_release", 1),
    ):
        with pytest.raises(Refused) as caught:
            act()
        assert (caught.value.status, caught.value.code, caught.value.exit_code) == (status, code, exit_code)


def test_an_error_leaves_a_verb_with_the_same_code_whether_a_server_or_a_home_raised_it() -> None:
    for kind in (*AppError.__subclasses__(), UnknownFeedback):
        if kind.__module__ == "app.desk.errors" and kind is not JobFailed:  # which takes a job
            error = kind("a sentence")
            trouble = trouble_of(error)
            refused = Refused(trouble.sentence, trouble.status, trouble.code)
            assert refused.exit_code == error.exit_code, trouble.code


@pytest.mark.parametrize("address", ["", "search.example", "ftp://search.example", "http://", "/tmp"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(UsageProblem, match="no address"):
        connect(address)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(ServerAway, match="127.0.0.1:9"), connect("http://127.0.0.1:9") as desk:
        desk.search(SearchRequest(text="boat"))


class _Starting(BaseHTTPRequestHandler):
    """A server that starts: it refuses twice, by way of 503, and then tells of a job that has ended."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        is_ready = self.asked > 2
        ended: dict[str, Any] = {
            "id": "j1",
            "kind": "update",
            "state": "succeeded",
            "arguments": {},
            "created": "2026-11-28",
        }
        ended |= {"progress": {}, "result": {}} | dict.fromkeys(("error", "pid", "started", "finished"))
        refused = {"error": "Perennial is starting. Ask again in a few seconds.", "code": "starting"}
        said = f"data: {json.dumps(ended)}\n\n" if is_ready else json.dumps(refused)
        self.send_response(200 if is_ready else 503)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, *_: object) -> None:
        pass


def test_a_job_is_followed_across_a_start_of_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_desk, "_RECONNECT_SECONDS", 0.01)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Starting) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        with connect(f"http://127.0.0.1:{server.server_port}") as client:
            assert client.follow("j1", lambda _: None).state == "succeeded"
            monkeypatch.setattr(server_desk, "_PATIENCE_SECONDS", 0.0)
            _Starting.asked = 0
            with pytest.raises(Refused, match="starting"):
                client.follow("j1", lambda _: None)
        server.shutdown()


def test_a_job_that_was_interrupted_for_good_is_followed_no_longer(server: Served, client: Desk) -> None:
    catalog = server.serving.workspace.catalog
    job = catalog.add_job("doctor")
    catalog.update_job(job.id, state="interrupted", error="Its process was killed.")
    ended: list[JobRecord] = []
    following = Thread(target=lambda: ended.append(client.follow(job.id, lambda _: None)), daemon=True)
    following.start()
    following.join(timeout=20)
    assert [one.state for one in ended] == ["interrupted"]


# The command line


def test_search_compare_and_releases_show_what_the_server_says(server: Served) -> None:
    assert document(server, "search", "a red boat", "-k", "2")["hits"][0]["rank"] == 1
    assert document(server, "compare", "r1", "r2", "boat", "-k", "3")["overlap"] >= 0
    assert [one["live"] for one in document(server, "releases")] == [False, False, True]
    shown = run(server, "search", "a red boat", "-k", "2")
    assert "Release r1-" in shown.stdout
    assert document(server, "status")["live"]["release"].startswith("r1-")


def test_a_query_may_name_a_picture_here_filters_and_a_page(server: Served, tmp_path: Path) -> None:
    first = document(server, "search", "a red boat", "-k", "1")
    file = tmp_path / "a.webp"
    with connect(server.url) as desk:
        file.write_bytes(desk.picture(first["hits"][0]["id"]))
    assert document(server, "search", str(file), "-k", "1")["hits"][0]["id"] == first["hits"][0]["id"]
    second = document(server, "search", "a red boat", "-k", "1", "--next", first["next"])["hits"][0]
    assert second["rank"] == 2
    assert document(server, "search", "--like", second["id"], "-k", "2")["hits"]
    unknown = run(server, "search", "a red boat", "--domain", "photo")
    assert (unknown.exit_code, "Domains here: scenes." in unknown.stderr.replace("\n", " ")) == (2, True)
    missing = run(server, "search", "./no-such-file.jpg")
    assert (missing.exit_code, "no-such-file" in missing.stderr) == (2, True)


ON_A_HOME = {
    "init",
    "open",
    "watch",
    "serve",
    "work",
    "account",
    "demo",
    "bench",
    "backup",
    "restore",
    "replay",
    "home",
}


def test_every_verb_but_those_of_an_installation_is_written_once_for_both() -> None:
    verbs = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    takes_a_desk = {
        name for name, verb in verbs.items() if "context" in inspect.signature(verb.callback).parameters
    }
    assert set(verbs) - takes_a_desk == ON_A_HOME | {"capacity", "methods", "models"}


def test_a_home_and_a_server_are_not_both_named(server: Served, tmp_path: Path) -> None:
    refused = run(server, "releases", "--home", str(tmp_path))
    assert (refused.exit_code, "name one" in refused.stderr.replace("\n", " ")) == (2, True)


def test_every_way_of_asking_works_on_a_server_and_shows_what_a_home_shows(server: Served) -> None:
    first = document(server, "search", "a red boat", "-k", "1")
    ways = (
        ["a red boat", "--translation", "a red boat"],
        ["a red boat + two birds", "--explain"],
        ["boat", "--mode", "hybrid", "--fold"],
        ["boat", "--min-relevance", "weak"],
        ["boat", "--captions", "3", "--captions-in", "en"],
        ["--like", first["hits"][0]["id"], "--since", "2020-01-01", "--until", "2099-12-31"],
        ["boat", "--caption", "boat", "--domain", "scenes", "--captioned", "en"],
    )
    for way in ways:
        there = run(server, "search", *way, "-k", "3")
        here = CliRunner().invoke(cli.app, ["search", *way, "-k", "3", "--home", str(server.settings.home)])
        # A gallery this small cannot say what a hit is worth, and neither door answers as if it could.
        assert there.exit_code == (2 if "--min-relevance" in way else 0), there.output
        assert (there.exit_code, there.output) == (here.exit_code, here.output), way
    for option in ("--mode", "--min-relevance"):
        assert run(server, "search", "boat", option, "everything").exit_code == 2


def test_a_query_can_be_pinned_on_a_server(server: Served) -> None:
    asked = ["search", "a yellow house", "--language", "en", "-k", "2"]
    said = run(server, *asked, "--pin")
    assert "Pinned" in said.stdout
    with Catalog.open(server.settings.home / "catalog.sqlite") as catalog:
        (pin,) = catalog.pins()
    assert (pin.query, pin.language) == ("a yellow house", "en")
    assert pin.image_id == document(server, *asked)["hits"][0]["id"]
    assert run(server, "search", "--like", pin.image_id, "--pin").exit_code == 2


def test_promote_and_rollback_work_on_the_server(server: Served) -> None:
    assert document(server, "promote", "r2", "--why", "tests")["release"].startswith("r2-")
    assert document(server, "gate", "r2")["gate"]["verdict"] == "promote"
    assert "promote" in run(server, "gate", "r2").stdout
    assert document(server, "rollback")["release"].startswith("r1-")


def test_the_option_may_stand_before_the_verb_and_in_the_environment(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = CliRunner().invoke(cli.app, ["--server", server.url, "releases", "--json"])
    assert len(json.loads(before.stdout)) == 3
    monkeypatch.setenv("PERENNIAL_SERVER", server.url)
    assert len(json.loads(CliRunner().invoke(cli.app, ["releases", "--json"]).stdout)) == 3


def test_mistakes_end_with_a_sentence_and_a_code(server: Served) -> None:
    refused = run(server, "promote", "r99")
    assert (refused.exit_code, "r99" in refused.stderr) == (1, True)
    assert "Traceback" not in refused.output
    here = run(server, "serve")
    assert (here.exit_code, "works on a home on this machine" in here.stderr) == (2, True)
    missing = run(server, "ingest", "/no/such/folder")
    assert (missing.exit_code, "no file or folder '/no/such/folder'" in missing.stderr) == (1, True)


def test_an_account_signs_in_by_address_and_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "passwords"
    path.write_text(password_line("ada", "admin", "correct horse battery") + "\n", encoding="utf-8")
    path.chmod(0o600)
    with served(make_home(tmp_path), Passwords.load(path)) as guarded:
        nobody = run(guarded, "releases")
        assert (nobody.exit_code, "PERENNIAL_SERVER_PASSWORD" in nobody.stderr) == (1, True)
        named = guarded.url.replace("http://", "http://ada@")
        unset = CliRunner().invoke(cli.app, ["--server", named, "releases"])
        assert (unset.exit_code, "password of ada" in unset.stderr) == (2, True)
        monkeypatch.setenv("PERENNIAL_SERVER_PASSWORD", "correct horse battery")
        assert CliRunner().invoke(cli.app, ["--server", named, "releases"]).exit_code == 0


def test_a_folder_is_uploaded_searched_taught_and_judged(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The demo's story in small: every step of it through the server."""
    home = small_home.copy_of(small_home.small_home(tmp_path_factory), tmp_path)
    gate = {"samples": 200, "cross_fit": False, "slice_drop": 100.0, "pooled_drop": 100.0}
    settings = load_settings(home=home, gate=gate, poll_seconds=0.1, jobs="elsewhere")
    import zipfile

    with zipfile.ZipFile(sample_upload(tmp_path / "s.zip", first=70, count=4, languages=("en",))) as archive:
        archive.extractall(tmp_path / "pictures")
    with served(settings) as running:
        before = document(running, "search", "a boat", "-k", "100")["hits"]
        rows = tmp_path / "rows.csv"
        taken = document(
            running, "ingest", str(tmp_path / "pictures"), "--name", "four boats", "--report", str(rows)
        )
        assert "outcome" in rows.read_text(encoding="utf-8-sig").splitlines()[0]
        assert document(running, "check", taken["chunk_id"])["name"] == "four boats"
        assert (taken["standing"], taken["images_embedded"]) == ("new", 4)
        assert len(document(running, "search", "a boat", "-k", "100")["hits"]) == len(before) + 4
        chunk = next(one for one in document(running, "status")["chunks"] if one["id"] != taken["chunk_id"])
        assert document(running, "check", chunk["id"])["id"] == chunk["id"]
        taught = run(
            running,
            "update",
            "--chunk",
            chunk["id"],
            "--strategy",
            "language-tables",
            "--option",
            "epochs=1",
            "--why",
            "tests of the server",
            "--json",
        )
        said = json.loads(taught.stdout)
        assert (taught.exit_code, said["state"]) in {(0, "succeeded"), (3, "rejected"), (4, "review")}, said
        assert document(running, "gate", said["job"])["gate"]["rows"]
