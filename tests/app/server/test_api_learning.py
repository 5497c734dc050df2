"""Claims about chunks, updates and strategies over REST."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest

from app.desk.chunks import column_names
from app.local.chunks import csv_of
from model_updates.strategies import STRATEGIES
from tests.app.gate_reports import HOSTILE, findings, gate_report
from tests.app.gate_reports import PICTURES as PICTURES_OF_REPORTS
from tests.app.server.served import Served, make_home, refusal, sample_upload, served


def test_strategies_say_what_they_train_and_ask_for(client: httpx.Client) -> None:
    listed = client.get("/v1/strategies").json()
    assert {said["name"] for said in listed["strategies"]} == set(STRATEGIES)
    assert listed["references"][0]["name"] == "zero-shot"
    told = client.get("/v1/strategies/language-tables").json()
    assert told["language_at_query"] is True
    assert told["embeds_again"] == "no picture"
    assert refusal(client.get("/v1/strategies/magic")) == (422, "unknown_strategy")


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
        assert refusal(client.get("/v1/jobs/j99/gate")) == (404, "unknown_job")


def test_a_chunk_tells_its_standing_and_what_its_checks_found(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        catalog = running.serving.workspace.catalog
        chunk = catalog.chunks()[0].id
        assert client.get(f"/v1/chunks/{chunk}").json()["findings"] == []
        catalog.set_findings(chunk, findings())
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


@pytest.mark.parametrize("route", ["chunks", "packages"])
def test_of_two_files_in_one_request_neither_is_dropped_unsaid(
    client: httpx.Client, server: Served, route: str
) -> None:
    jobs = client.get("/v1/jobs").json()
    files = [("file", ("a.zip", b"PK")), ("file", ("b.zip", b"PK"))]
    answer = client.post(f"/v1/{route}", files=files)
    assert (answer.status_code, answer.json()["code"]) == (400, "usage_problem")
    assert "2 were sent" in answer.json()["error"]
    assert client.get("/v1/jobs").json() == jobs
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
    assert refusal(client.post("/v1/updates", json=asked)) == (status, code)
    assert client.get("/v1/jobs").json() == {"jobs": []}


def test_a_strategy_that_does_not_fit_the_chunk_is_refused_before_a_job_is_queued(tmp_path: Path) -> None:
    with served(make_home(tmp_path)) as running, running.client() as client:
        assert client.post("/v1/releases/r2/promote", json={}).status_code == 200  # it knows German
        chunk = client.get("/v1/chunks").json()["chunks"][-1]["id"]
        refused = client.post("/v1/updates", json={"chunk": chunk, "strategy": "language-tables"})
        assert refusal(refused) == (422, "strategy_misfit")
        assert "The languages of this chunk (de and en) are known already" in refused.json()["error"]
        for strategy, misfit in (("language-tables", "known already"), ("c-clip", "None")):
            asked = client.post("/v1/updates/forecast", json={"chunk": chunk, "strategy": strategy})
            assert misfit in str(asked.json()["misfit"])
        assert [job for job in client.get("/v1/jobs").json()["jobs"] if job["kind"] == "update"] == []


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
        assert refusal(client.post("/v1/updates/forecast", json={"chunk": "nope"})) == (404, "unknown_chunk")


def test_cells_of_a_report_are_no_formulas() -> None:
    row = {"where": "=cmd|x", "outcome": "rejected", "code": "+1", "sentence": 'a "b"'}
    assert csv_of({"rows": [row]}).decode().splitlines()[1] == '\'=cmd|x,rejected,\'+1,"a ""b"""'


def test_columns_are_mapped_theirs_to_ours() -> None:
    assert column_names(["text=caption", " file = image "]) == {"text": "caption", "file": "image"}
