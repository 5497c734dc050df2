"""Claims about REST: right answers, and a sentence with the right status for every mistake."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from app.errors import NoSpace, ParentMoved, UpdateRunning, UsageProblem
from app.server.api_errors import trouble_of
from app.server.api_learning import csv_of
from app.server.serving import Serving, TooBusy
from app.server.uploads import column_names
from app.workspace import Workspace
from index.errors import GenerationDamaged
from ingest.errors import BadUpload, StoreFull, UnknownChunk, UnknownLanguage
from model_updates.errors import NothingToLearn, UnknownStrategy
from model_updates.strategies import STRATEGIES
from tests.app.gate_reports import HOSTILE, findings, gate_report
from tests.app.gate_reports import PICTURES as PICTURES_OF_REPORTS
from tests.app.server.served import PICTURES, Served, make_home, sample_upload, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(make_home(tmp_path_factory.mktemp("home"))) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def _search(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/search", json={"text": "a red boat", **body})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def _refused(answer: httpx.Response, status: int, code: str) -> str:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    sentence = str(answer.json()["error"])
    assert sentence
    assert "Traceback" not in answer.text
    return sentence


def test_a_search_names_its_release_and_describes_each_hit(client: httpx.Client) -> None:
    found = _search(client, k=4)
    assert found["release"].startswith("r1-")
    assert found["commit"] == 1
    assert found["language"] == "en"
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3, 4]
    scores = [hit["score"] for hit in found["hits"]]
    assert scores == sorted(scores, reverse=True)
    first = found["hits"][0]
    assert first["domain"] == "scenes"
    assert {caption["language"] for caption in first["captions"]} == {"en"}
    assert client.get(first["thumb_url"]).status_code == 200
    assert found["timing"]["encode"] > 0


def test_another_release_can_be_asked_by_its_number(client: httpx.Client) -> None:
    assert _search(client, release="r2", language="de")["release"].startswith("r2-")
    assert _search(client)["release"].startswith("r1-")


def test_filters_keep_only_what_fits(client: httpx.Client) -> None:
    assert len(_search(client, k=100, domains=["scenes"])["hits"]) == PICTURES
    assert _search(client, domains=["photo"])["hits"] == []
    assert len(_search(client, k=100, languages=["de"])["hits"]) == PICTURES
    assert _search(client, languages=["ja"])["hits"] == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": ""}, 400, "bad_query"),
        ({"text": " \u3164 "}, 400, "bad_query"),
        ({"text": "x" * 501}, 400, "bad_query"),
        ({"text": "boat", "release": "r99"}, 404, "unknown_release"),
        ({"text": "boat", "rerank": True}, 400, "bad_query"),
        ({"text": "boat", "kk": 3}, 422, "invalid_request"),
        ({"text": "boat", "k": 0}, 422, "invalid_request"),
        ({"text": 7}, 422, "invalid_request"),
        ({"text": "boat", "language": "no language"}, 422, "unknown_language"),
        ({}, 400, "bad_query"),
    ],
)
def test_a_search_that_cannot_be_answered_says_why(
    client: httpx.Client, body: dict[str, Any], status: int, code: str
) -> None:
    _refused(client.post("/v1/search", json=body), status, code)


def test_an_unknown_field_is_named(client: httpx.Client) -> None:
    assert "'kk'" in client.post("/v1/search", json={"text": "boat", "kk": 1}).json()["error"]


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"\xff\xfe", b"", b'{"text": "cat", "domains": ["\\ud800"]}']
)
def test_a_body_that_is_no_request_is_refused(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/v1/search", content=content, headers={"Content-Type": "application/json"})
    _refused(answer, 422, "invalid_request")


def test_strategies_say_what_they_train_and_ask_for(client: httpx.Client) -> None:
    listed = client.get("/v1/strategies").json()
    assert {said["name"] for said in listed["strategies"]} == set(STRATEGIES)
    assert listed["references"][0]["name"] == "zero-shot"
    told = client.get("/v1/strategies/language-tables").json()
    assert told["language_at_query"] is True
    assert told["embeds_again"] == "no picture"
    _refused(client.get("/v1/strategies/magic"), 422, "unknown_strategy")


def test_compare_gives_both_answers_and_how_pictures_moved(client: httpx.Client) -> None:
    answer = client.post(
        "/v1/compare", json={"text": "a red boat", "a": "r1", "b": "r2", "language": "en", "k": 5}
    )
    compared = answer.json()
    left, right = ([hit["id"] for hit in compared[side]["hits"]] for side in "ab")
    assert left != right
    assert compared["overlap"] == len(set(left) & set(right)) / 5
    for move in compared["moves"]:
        for ids, rank in ((left, move["rank_a"]), (right, move["rank_b"])):
            assert (rank is None) == (move["id"] not in ids)
            assert rank is None or ids[rank - 1] == move["id"]
    assert compared["slices"]["b"][0]["recalls"]["t2i_r1"] == 61.0
    _refused(client.post("/v1/compare", json={"text": "x", "a": "r1", "b": "r9"}), 404, "unknown_release")


def test_pictures_are_kept_forever_and_carry_nothing_hidden(client: httpx.Client, server: Served) -> None:
    first = _search(client, k=1)["hits"][0]
    for address in (first["thumb_url"], first["url"]):
        answer = client.get(address)
        assert answer.headers["content-type"] == "image/webp"
        assert "immutable" in answer.headers["cache-control"]
        picture = Image.open(io.BytesIO(answer.content))
        assert picture.format == "WEBP"
        assert not picture.getexif()
    original = server.serving.workspace.blobs.original(first["id"])
    assert client.get(first["url"]).content != original
    for unknown in ("0" * 64, "nonsense", "..%2f..%2fetc"):
        assert client.get(f"/v1/images/{unknown}").status_code == 404
        assert client.get(f"/v1/images/{unknown}/thumbnail").status_code == 404


def test_captions_are_found_by_their_words(client: httpx.Client, server: Served) -> None:
    pair = server.serving.workspace.catalog.pairs(language="en")[0]
    found = client.get("/v1/captions", params={"text": pair.text}).json()["captions"]
    assert {"image_id": pair.image_id, "language": "en", "text": pair.text} in found
    assert all(caption["text"] == pair.text for caption in found)
    assert client.get("/v1/captions", params={"text": "zeppelin"}).json() == {"captions": []}


def test_releases_are_listed_newest_first_with_the_live_one_marked(client: httpx.Client) -> None:
    listed = client.get("/v1/releases").json()["releases"]
    assert [entry["id"][:2] for entry in listed] == ["r3", "r2", "r1"]
    assert [entry["live"] for entry in listed] == [False, False, True]
    assert [entry["verdict"] for entry in listed] == ["review", "promote", None]
    detail = client.get("/v1/releases/r2").json()
    assert detail["manifest"]["gate"]["verdict"] == "promote"
    assert detail["judged"]["gate"]["verdict"] == "promote"
    assert client.get("/v1/releases/r1").json()["judged"]["gate"] is None
    _refused(client.get("/v1/releases/r77"), 404, "unknown_release")


def test_the_lineage_and_the_difference_of_two_releases_can_be_asked(client: httpx.Client) -> None:
    nodes = client.get("/v1/lineage").json()["releases"]
    assert [node["release"][:2] for node in nodes] == ["r3", "r2", "r1"]
    assert [node["is_live"] for node in nodes] == [False, False, True]
    assert nodes[-1]["periods"][0]["by"] == "tests"
    found = client.get("/v1/releases/r1/difference/r2").json()
    assert found["languages"] == {"added": ["de"], "gone": []}
    _refused(client.get("/v1/releases/r1/difference/r77"), 404, "unknown_release")


def test_a_rejected_update_keeps_its_whole_report(tmp_path: Path) -> None:
    report = gate_report("reject")
    with served(make_home(tmp_path)) as running, running.client() as client:
        catalog = running.serving.workspace.catalog
        job = catalog.add_job("update", {"chunk": "0a1b2c3d4e5f"})
        catalog.update_job(job.id, state="rejected", result={"gate": report.to_json(), "release": None})
        found = client.get(f"/v1/jobs/{job.id}/gate").json()
        assert (found["job"], found["chunk"], found["release"]) == (job.id, "0a1b2c3d4e5f", None)
        assert (found["gate"]["verdict"], found["gate"]["decided"]) == ("reject", report.first_reason)
        assert found["gate"]["reasons"] == list(report.reasons)
        assert found["gate"]["next_steps"] == list(report.next_steps)
        assert len(found["gate"]["rows"]) == len(report.rows)
        lost = found["gate"]["lost"][1]
        assert (lost["text"], lost["live_rank"], lost["candidate_rank"]) == (HOSTILE, 1, 34)
        assert lost["thumb_url"] == f"/v1/images/{PICTURES_OF_REPORTS[1]}/thumbnail"
        assert lost["first_thumb_url"] == f"/v1/images/{PICTURES_OF_REPORTS[2]}/thumbnail"
        waiting = catalog.add_job("ingest", {})
        assert client.get(f"/v1/jobs/{waiting.id}/gate").json()["gate"] is None
        _refused(client.get("/v1/jobs/j99/gate"), 404, "unknown_job")


def test_a_chunk_tells_its_standing_and_what_its_checks_found(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        catalog = running.serving.workspace.catalog
        chunk = catalog.chunks()[0].id
        assert client.get(f"/v1/chunks/{chunk}").json()["findings"] == []
        catalog.add_findings(chunk, findings())
        catalog.set_standing(chunk, "held", by="checks", why="row shift")
        found = client.get(f"/v1/chunks/{chunk}").json()
        told = [found[name] for name in ("standing", "standing_by", "standing_why", "measures")]
        assert told == ["held", "checks", "row shift", False]
        assert [finding["outcome"] for finding in found["findings"]] == ["hold", "unknown", "accept"]
        example = found["findings"][0]["examples"][0]
        assert (example["text"], example["language"]) == (HOSTILE, "de")
        assert example["thumb_url"] == f"/v1/images/{example['image_id']}/thumbnail"
        assert found["report"]["chunk_id"] == chunk


@pytest.mark.parametrize(
    ("name", "content", "fields", "status"),
    [
        ("empty.zip", b"", {}, 422),
        ("model.pt", b"\x80\x02}q\x00.", {}, 422),
        ("../../evil.zip", b"nothing", {}, 422),
        ("a.csv", b"image,caption\nx.png,y\n", {"language": "klingon-none"}, 422),
        ("a.csv", b"image,caption\n", {"map": "nonsense"}, 400),
        ("a.csv", b"image,caption\n/etc/passwd,secrets\n", {"language": "en"}, 422),
        ("a.csv", b"image,caption\n", {"strategy": "teir"}, 400),
        ("good.zip", b"GOOD", {"strategy": "magic", "update": "true"}, 422),
    ],
)
def test_an_upload_that_cannot_be_used_changes_nothing(
    client: httpx.Client,
    server: Served,
    tmp_path: Path,
    name: str,
    content: bytes,
    fields: dict[str, str],
    status: int,
) -> None:
    before = client.get("/v1/chunks").json()
    if content == b"GOOD":
        content = sample_upload(tmp_path / name, first=200, count=2).read_bytes()
    answer = client.post("/v1/chunks", files={"file": (name, content)}, data=fields)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]
    assert client.get("/v1/chunks").json() == before
    assert list(server.settings.home.joinpath("inbox").iterdir()) == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"chunk": "feedbeef"}, 404, "unknown_chunk"),
        ({"chunk": "CHUNK", "strategy": "magic"}, 422, "unknown_strategy"),
        ({"chunk": "CHUNK", "strategy": "finetune", "options": {"speed": 9}}, 422, "bad_strategy_option"),
        ({"chunk": "CHUNK", "options": {"epochs": 1}}, 400, "usage_problem"),
        ({"chunk": "CHUNK", "seed": -1}, 422, "invalid_request"),
        ({}, 422, "invalid_request"),
    ],
)
def test_an_update_that_cannot_run_is_refused_at_once(
    client: httpx.Client, body: dict[str, Any], status: int, code: str
) -> None:
    chunk = client.get("/v1/chunks").json()["chunks"][-1]["id"]
    asked = {key: (chunk if value == "CHUNK" else value) for key, value in body.items()}
    _refused(client.post("/v1/updates", json=asked), status, code)
    assert client.get("/v1/jobs").json() == {"jobs": []}


def test_a_strategy_that_does_not_fit_the_chunk_is_refused_before_a_job_is_queued(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        assert client.post("/v1/releases/r2/promote", json={}).status_code == 200  # it knows German
        chunk = client.get("/v1/chunks").json()["chunks"][-1]["id"]
        refused = client.post("/v1/updates", json={"chunk": chunk, "strategy": "language-tables"})
        _refused(refused, 422, "strategy_misfit")
        assert "the languages of this chunk (de and en) are known already" in refused.json()["error"]
        assert "known already" in str(running.serving.misfit(chunk, "language-tables"))
        assert running.serving.misfit(chunk, "c-clip") is None
        assert [job for job in client.get("/v1/jobs").json()["jobs"] if job["kind"] == "update"] == []


def test_a_release_is_rejected_with_a_note_and_what_is_live_is_pinned(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        _refused(client.post("/v1/releases/r2/reject", json={"why": ""}), 422, "invalid_request")
        assert (
            client.post("/v1/releases/r2/reject", json={"why": "mixes boats up"}).json()["said"] == "rejected"
        )
        refused = client.post("/v1/releases/r2/promote", json={})
        _refused(refused, 400, "usage_problem")
        assert "mixes boats up" in refused.json()["error"]
        assert client.post("/v1/releases/r2/keep", json={}).status_code == 200
        assert client.post("/v1/pin", json={"why": "exhibition"}).json()["release"][:3] == "r1-"
        _refused(client.post("/v1/releases/r2/promote", json={"force": True}), 400, "usage_problem")
        said = client.get("/v1/release-words").json()
        assert said["pinned"]["why"] == "exhibition"
        assert [word["said"] for word in said["words"]] == ["pinned", "kept", "rejected"]
        assert client.post("/v1/unpin", json={}).status_code == 200
        assert client.post("/v1/releases/r2/promote", json={}).status_code == 200


def test_an_update_is_forecast_and_nothing_starts(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        chunk = running.serving.workspace.catalog.chunks()[0].id
        found = client.post(
            "/v1/updates/forecast", json={"chunk": chunk, "strategy": "language-tables"}
        ).json()
        assert found["strategy"] == "language-tables"
        assert found["recommended"] == "evergreen"
        assert found["misfit"] is None
        assert found["total_seconds"] == pytest.approx(sum(found["seconds"].values()), abs=0.1)
        assert client.get("/v1/jobs").json()["jobs"] == []
        _refused(client.post("/v1/updates/forecast", json={"chunk": "nope"}), 404, "unknown_chunk")


def test_with_nothing_to_go_back_to_the_request_is_wrong_and_not_the_server(client: httpx.Client) -> None:
    _refused(client.post("/v1/rollback", json={}), 400, "usage_problem")


def test_going_live_and_back_is_answered_by_the_new_release_at_once(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        promoted = client.post("/v1/releases/r2/promote", json={"why": "better"}).json()
        assert promoted["reason"] == "promote"
        assert _search(client)["release"] == promoted["release"]
        _refused(client.post("/v1/releases/r2/promote", json={}), 400, "usage_problem")
        _refused(client.post("/v1/releases/r9/promote", json={}), 404, "unknown_release")
        # What the gate left to a person needs that person to say so.
        _refused(client.post("/v1/releases/r3/promote", json={}), 400, "usage_problem")
        assert client.post("/v1/releases/r3/promote", json={"force": True}).status_code == 200
        back = client.post("/v1/rollback", json={"release": "r1", "why": "worse"}).json()
        assert (back["reason"], back["release"][:2]) == ("rollback", "r1")
        assert _search(client)["release"] == back["release"]
        _refused(client.post("/v1/rollback", json={"release": "r1"}), 400, "usage_problem")


def test_a_commit_of_another_process_is_served_within_a_moment(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with served(settings) as running, running.client() as client:
        releases = running.serving.workspace.releases
        second = releases.release("r2").id
        releases.commit(second, parent=1, reason="promote", why="elsewhere", by="another")
        deadline = time.monotonic() + 20
        while client.get("/readyz").json()["release"] != second:
            assert time.monotonic() < deadline, "the server never noticed the commit"
            time.sleep(0.05)
        assert _search(client)["release"] == second


def test_a_home_without_a_release_is_alive_but_not_ready(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    for commit in (settings.home / "commits").iterdir():
        commit.unlink()
    with served(settings) as running, running.client() as client:
        assert client.get("/healthz").json() == {"status": "alive"}
        assert "init" in _refused(client.get("/readyz"), 503, "no_release")
        _refused(client.post("/v1/search", json={"text": "boat"}), 503, "no_release")
        assert client.get("/").status_code == 200
        releases = running.serving.workspace.releases
        releases.commit(releases.release("r1").id, parent=None, reason="init", why="later", by="tests")
        deadline = time.monotonic() + 20
        while client.get("/readyz").status_code != 200:
            assert time.monotonic() < deadline, "the server never became ready"
            time.sleep(0.05)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("DELETE", "/v1/releases/r1", 404),
        ("GET", "/v1/search", 404),
        ("GET", "/v1/jobs/j99", 404),
        ("GET", "/v1/jobs/%00", 404),
        ("GET", "/v1/chunks/zz", 404),
        ("GET", "/v1/chunks/zz/report.csv", 404),
    ],
)
def test_what_is_not_there_is_404_with_a_sentence(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "code"}


def test_version_says_which_program_this_is(client: httpx.Client) -> None:
    assert client.get("/version").json()["name"] == "perennial"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UnknownChunk("There is none."), 404, "unknown_chunk"),
        (UpdateRunning("Wait."), 409, "update_running"),
        (ParentMoved("Again."), 409, "parent_moved"),
        (BadUpload("zip_damaged", "Damaged."), 422, "zip_damaged"),
        (UnknownLanguage("Which?"), 422, "unknown_language"),
        (UnknownStrategy("Which?"), 422, "unknown_strategy"),
        (NothingToLearn("Nothing."), 422, "nothing_to_learn"),
        (TooBusy("Later."), 503, "too_busy"),
        (NoSpace("Full."), 507, "no_space"),
        (StoreFull("Full."), 507, "store_full"),
        (GenerationDamaged("Damaged."), 500, "generation_damaged"),
        (UsageProblem("No."), 400, "usage_problem"),
    ],
)
def test_each_error_has_its_status_code_and_sentence(error: Exception, status: int, code: str) -> None:
    trouble = trouble_of(error)
    assert (trouble.status, trouble.code, trouble.sentence) == (status, code, str(error))


def test_cells_of_a_report_are_no_formulas() -> None:
    row = {"where": "=cmd|x", "outcome": "rejected", "code": "+1", "sentence": 'a "b"'}
    assert csv_of({"rows": [row]}).splitlines()[1] == '\'=cmd|x,rejected,\'+1,"a ""b"""'


def test_columns_are_mapped_theirs_to_ours() -> None:
    assert column_names(["text=caption", " file = image "]) == {"text": "caption", "file": "image"}


def test_a_rush_of_queries_is_refused_beyond_what_can_wait(tmp_path: Path) -> None:
    with Workspace.open(make_home(tmp_path)) as workspace:
        serving = Serving(workspace)
        serving.refresh()
        while serving._queue.acquire(blocking=False):
            pass
        with pytest.raises(TooBusy, match="few seconds"):
            serving.search("a red boat")
        serving._queue.release()
        assert serving.search("a red boat").hits
