"""Claims about a job's stream of events, and about many searches in one request."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.app.server.served import Served


def _events(stream: httpx.Response) -> Iterator[tuple[str, dict[str, Any]]]:
    name = ""
    for line in stream.iter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


def test_a_job_tells_what_it_does_until_it_has_ended(server: Served, client: httpx.Client) -> None:
    catalog = server.serving.workspace.catalog
    job = catalog.add_job("gallery")
    moved = threading.Event()

    def work() -> None:
        moved.wait(20)
        catalog.update_job(job.id, state="succeeded", result={"images_embedded": 3})

    worker = threading.Thread(target=work)
    worker.start()
    with client.stream("GET", f"/v1/jobs/{job.id}/events") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        told = _events(stream)
        assert next(told)[1]["state"] == "queued"
        catalog.update_job(job.id, state="running", progress={"name": "embed", "fraction": 0.5})
        name, said = next(told)
        assert (name, said["state"], said["progress"]["fraction"]) == ("job", "running", 0.5)
        moved.set()
        name, said = next(told)
        assert (name, said["state"], said["result"]) == ("end", "succeeded", {"images_embedded": 3})
        assert list(told) == []
    worker.join(timeout=20)


def test_a_job_that_ended_long_ago_is_told_once(server: Served, client: httpx.Client) -> None:
    catalog = server.serving.workspace.catalog
    job = catalog.add_job("gallery")
    catalog.update_job(job.id, state="cancelled")
    with client.stream("GET", f"/v1/jobs/{job.id}/events") as stream:
        assert [(name, said["id"]) for name, said in _events(stream)] == [("end", job.id)]


def test_an_interrupted_job_has_ended_once_nobody_begins_it_again(
    server: Served, client: httpx.Client
) -> None:
    catalog, followed = server.serving.workspace.catalog, server.serving.work.followed
    job = catalog.add_job("gallery")
    catalog.update_job(job.id, state="interrupted")
    followed.add(job.id)
    with client.stream("GET", f"/v1/jobs/{job.id}/events") as stream:
        told = _events(stream)
        assert [(name, said["state"]) for name, said in [next(told)]] == [("job", "interrupted")]
        followed.discard(job.id)
        assert [(name, said["state"]) for name, said in told] == [("end", "interrupted")]


def test_a_job_that_does_not_exist_is_a_404_and_no_stream(client: httpx.Client) -> None:
    answer = client.get("/v1/jobs/j999/events")
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_job")


def test_each_of_many_searches_has_its_own_status(client: httpx.Client) -> None:
    asked = [
        {"text": "a red boat", "k": 2},
        {"text": " "},
        {"text": "boat", "langauge": "de"},
        {"text": "boat", "release": "r99"},
        {"text": "a house", "k": 1},
    ]
    results = client.post("/v1/searches", json={"searches": asked}).json()["results"]
    assert [one["status"] for one in results] == [200, 400, 422, 404, 200]
    assert [len(one["answer"]["hits"]) for one in results if one["answer"]] == [2, 1]
    assert "'langauge'" in results[2]["error"]
    assert results[3]["code"] == "unknown_release"
    alone = client.post("/v1/search", json=asked[0]).json()
    assert results[0]["answer"]["hits"] == alone["hits"]


@pytest.mark.parametrize("asked", [[], [{"text": "boat"}] * 65, [7], "boat"])
def test_what_is_no_list_of_searches_is_refused_as_a_whole(client: httpx.Client, asked: Any) -> None:
    assert client.post("/v1/searches", json={"searches": asked}).status_code == 422
