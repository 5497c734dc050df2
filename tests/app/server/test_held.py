"""Claims about deciding single held pairs: the engine's rules, REST, and the command line on a home and a server."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image
from typer.testing import CliRunner

from app.client import Refused, ServerDesk, connect
from app.commands import cli
from app.desk.chunks import ShownAside
from app.desk.desk import Desk
from app.desk.errors import UsageProblem
from app.desk.hits import Mode, SearchRequest
from app.desk.operation import grown
from app.home.workspace import Workspace
from app.learning import held_pairs, standing
from app.learning.held_pairs import decide
from app.server.security import Passwords, password_line
from ingest.findings import Example, Finding, Outcome
from tests.app.gate_reports import HOSTILE
from tests.app.held_upload import put_in
from tests.app.server.served import Served, make_home, served

SEARCHER = ("sue", "seven quiet otters")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("home")
    path = folder / "passwords"
    lines = [
        password_line(SEARCHER[0], "searcher", SEARCHER[1]),
        password_line("ada", "admin", "ada's words"),
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    path.chmod(0o600)
    with served(make_home(folder), Passwords.load(path)) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[Desk]:
    with connect(server.url, auth=("ada", "ada's words")) as opened:
        yield opened


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace.open(make_home(tmp_path)) as opened:
        yield opened


def test_rest_lists_what_waits_and_shows_its_picture_to_admins_alone(
    server: Served, client: Desk, tmp_path: Path
) -> None:
    chunk, waiting = put_in(server.serving.workspace, tmp_path, seed=2000)
    held = client.held()
    assert held.total == len(held.rows)
    mine = [row.pair for row in held.rows if row.chunk == chunk]
    assert mine == [grown(ShownAside, pair) for pair in waiting]
    found = client.put_aside(chunk)
    assert found.counts == {"waiting": 3, "accepted": 0, "left_out": 0, "rejected": 1}
    address = mine[0].thumb_url if mine[0] else ""
    with server.client(auth=("ada", "ada's words")) as admin:
        shown = admin.get(address)
    assert shown.headers["Content-Type"] == "image/webp"
    assert Image.open(io.BytesIO(shown.content)).size == (256, 256)
    with server.client(auth=SEARCHER) as searcher:
        for path in (address, "/v1/held", f"/v1/chunks/{chunk}/aside"):
            assert searcher.get(path).status_code == 403, path
        assert searcher.post(f"/v1/chunks/{chunk}/decide", json={"accept": [1]}).status_code == 403


def test_rest_accepts_some_leaves_out_others_and_makes_new_pictures_searchable(
    server: Served, client: Desk, tmp_path: Path
) -> None:
    chunk, (first, second, third) = put_in(server.serving.workspace, tmp_path, seed=3000)
    done = client.decide(
        chunk, accept=[first.id, second.id], leave_out=[third.id], language="de", why=HOSTILE
    )
    assert done.new_pictures == 2
    assert done.sentence.startswith(f"Pairs {first.id}, {second.id} belong to chunk {chunk} now.")
    assert [(one.decided, one.decided_by, one.decided_why) for one in done.pairs] == [
        ("accepted", "ada", HOSTILE),
        ("accepted", "ada", HOSTILE),
        ("left_out", "ada", HOSTILE),
    ]
    assert done.chunk.languages == {"de": 2, "en": 2}
    assert done.job is not None
    ended = client.follow(done.job.id, lambda _: None)
    assert (ended.state, ended.result["held"]) == ("succeeded", False)
    hits = client.search(SearchRequest(text="3333", k=100, mode=Mode.CAPTIONS)).hits
    assert first.image_id in {hit.id for hit in hits}
    assert client.put_aside(chunk).counts == {"waiting": 0, "accepted": 2, "left_out": 1, "rejected": 1}


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({}, "No pair is named"),
        ({"accept": [10**9]}, "no held pair 1000000000"),
        ({"accept": ["x"]}, "accept"),
        ({"accept": [2**63]}, "accept"),
        ({"accept": [1], "langauge": "de"}, "langauge"),
    ],
)
def test_rest_refuses_what_cannot_be_decided(server: Served, body: dict[str, Any], says: str) -> None:
    chunk = server.serving.workspace.catalog.chunks()[0].id
    with (
        ServerDesk(server.url, auth=("ada", "ada's words")) as opened,
        pytest.raises(Refused, match=says) as refused,
    ):
        opened.ask("POST", f"/v1/chunks/{chunk}/decide", json=body)
    assert 400 <= refused.value.status < 500


def test_a_picture_that_nobody_kept_is_not_found(server: Served) -> None:
    with server.client(auth=("ada", "ada's words")) as asked:
        assert asked.get(f"/v1/aside/{10**12}/thumbnail").status_code == httpx.codes.NOT_FOUND
        assert asked.get("/v1/aside/0/thumbnail").status_code == httpx.codes.UNPROCESSABLE_ENTITY


def test_a_pair_is_decided_once_unless_it_was_left_out(workspace: Workspace, tmp_path: Path) -> None:
    chunk, (first, second, _) = put_in(workspace, tmp_path, seed=1)
    with pytest.raises(UsageProblem, match="to be accepted and to be left out"):
        decide(workspace, chunk, accept=[first.id], leave_out=[first.id], by="ada")
    decide(workspace, chunk, leave_out=[first.id, second.id], by="ada")
    decide(workspace, chunk, accept=[first.id], language="de", by="bo")
    with pytest.raises(UsageProblem, match="accepted already, by bo"):
        decide(workspace, chunk, leave_out=[first.id], by="cy")
    states = {pair.id: pair.decided for pair in workspace.catalog.aside.named([first.id, second.id])}
    assert states == {first.id: "accepted", second.id: "left_out"}


def test_a_rejected_pair_and_one_of_another_chunk_are_refused(workspace: Workspace, tmp_path: Path) -> None:
    chunk, _ = put_in(workspace, tmp_path, seed=1)
    other, (strange, *_) = put_in(workspace, tmp_path, seed=500)
    (rejected,) = workspace.catalog.aside.pairs(chunk=chunk, outcome="rejected")
    with pytest.raises(UsageProblem, match="was rejected.*empty"):
        decide(workspace, chunk, accept=[rejected.id], by="ada")
    with pytest.raises(UsageProblem, match=f"has no held pair {strange.id}"):
        decide(workspace, chunk, accept=[strange.id], language="de", by="ada")
    assert workspace.catalog.chunk(other).pairs == 2


def test_what_has_taught_stays_as_it_was(workspace: Workspace, tmp_path: Path) -> None:
    chunk, (first, second, _) = put_in(workspace, tmp_path, seed=1)
    job = workspace.catalog.add_job("update", {"chunk": chunk})
    with pytest.raises(UsageProblem, match=f"Job {job.id} is learning"):
        decide(workspace, chunk, accept=[first.id], language="de", by="ada")
    workspace.catalog.update_job(job.id, state="cancelled")
    live = workspace.releases.release("r1")
    learned = live.manifest.successor(live.id, chunks=(chunk,))
    workspace.releases.publish_release(learned)
    with pytest.raises(UsageProblem, match="learned from chunk"):
        decide(workspace, chunk, accept=[first.id], language="de", by="ada")
    # Saying that a pair stays out changes nothing that was learned.
    assert held_pairs.decide(workspace, chunk, leave_out=[second.id], by="ada").new_pictures == 0


def test_a_withdrawn_chunk_is_not_decided_and_its_pictures_are_gone(
    workspace: Workspace, tmp_path: Path
) -> None:
    put_in(workspace, tmp_path, seed=500)
    chunk, (first, *_) = put_in(workspace, tmp_path, seed=1)
    standing.withdraw(workspace, chunk, why="wrong file", by="ada")
    with pytest.raises(UsageProblem, match="withdrawn"):
        decide(workspace, chunk, accept=[first.id], language="de", by="ada")
    assert workspace.catalog.aside.pairs(chunk=chunk) == []


def test_what_the_checks_name_is_taken_out_of_its_chunk(server: Served, client: Desk, tmp_path: Path) -> None:
    workspace = server.serving.workspace
    chunk, _ = put_in(workspace, tmp_path, seed=6000, in_gallery=False)
    boat = next(pair for pair in workspace.catalog.pairs(chunk=chunk) if pair.text == "a red boat")
    example = Example(boat.image_id, "en", boat.text, "its words say another thing")
    gone = Example(boat.image_id, "en", "no caption of this chunk", "it is not here any more")
    finding = Finding("exchanged", Outcome.HOLD, "Words were exchanged.", {}, (example, gone))
    workspace.catalog.set_findings(chunk, [finding])
    (named,) = client.put_aside(chunk).questioned
    assert (named.text, named.check, named.why) == ("a red boat", "exchanged", example.why)
    with pytest.raises(Refused, match="by themselves"):
        client.decide(chunk, take_out=[named.number], leave_out=[1])
    done = client.decide(chunk, take_out=[named.number], why="a ship")
    assert done.sentence == f"Pair {done.pairs[0].id} taken out of chunk {chunk}."
    assert done.chunk.pairs == 1
    after = client.put_aside(chunk)
    assert (after.questioned, after.counts["left_out"]) == ((), 1)


@pytest.mark.parametrize("where", ["home", "server"])
def test_the_command_line_lists_and_decides(
    server: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setenv("PERENNIAL_SERVER_PASSWORD", "ada's words")
    seed = 4000 if where == "home" else 5000
    # Not for the gallery: the job that follows has nothing to embed.
    chunk, (first, second, _) = put_in(server.serving.workspace, tmp_path, seed=seed, in_gallery=False)
    place = {
        "home": ["--home", str(server.settings.home)],
        "server": ["--server", server.url.replace("//", "//ada@")],
    }[where]

    def run(*arguments: str) -> Any:
        return CliRunner().invoke(cli.app, [*arguments, *place])

    listed = run("held")
    assert (listed.exit_code, str(first.id) in listed.stdout, "decide CHUNK" in listed.stdout) == (
        0,
        True,
        True,
    )
    waiting = json.loads(run("held", "--json").stdout)
    assert {row["pair"]["id"] for row in waiting["rows"] if row["chunk"] == chunk} >= {first.id, second.id}

    silent = run("decide", chunk, "--accept", str(first.id))
    assert (silent.exit_code, "states no language" in silent.stderr) == (2, True)
    said = run("decide", chunk, "--accept", str(first.id), "--leave-out", str(second.id), "--language", "th")
    assert (said.exit_code, f"Pair {first.id} belongs to chunk {chunk} now." in said.stdout) == (0, True), (
        said
    )
    document = json.loads(run("held", chunk, "--json").stdout)
    assert document["counts"] == {"waiting": 1, "accepted": 1, "left_out": 1, "rejected": 1}
    shown = run("held", chunk)
    assert "1 pairs wait, 1 accepted, 1 left out, 1 rejected" in shown.stdout
    assert server.serving.workspace.catalog.chunk(chunk).languages == {"en": 2, "th": 1}
