"""Claims about /metrics: what is counted, that callers make no series, and that the dashboard asks for what exists."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families

from ingest.spans import STEPS
from tests.app.server.served import PICTURES, Served

DASHBOARD = Path(__file__).parents[3] / "monitoring" / "grafana-dashboard.json"


def _samples(client: httpx.Client) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def _sum(client: httpx.Client, name: str, **labels: str) -> float:
    wanted = labels.items()
    return sum(
        value for (found, having), value in _samples(client).items() if found == name and wanted <= having
    )


def test_answered_queries_count_by_language_and_release(client: httpx.Client) -> None:
    before = _sum(client, "perennial_searches_total", language="en")
    release = client.post("/v1/search", json={"text": "a red boat"}).json()["release"]
    assert _sum(client, "perennial_searches_total", language="en", release=release) >= 1
    assert _sum(client, "perennial_searches_total", language="en") == before + 1
    assert _sum(client, "perennial_search_seconds_count", part="total") >= 1
    assert _sum(client, "perennial_search_seconds_bucket", part="total", le="+Inf") >= 1
    client.post("/v1/search", json={"text": "ein rotes Boot", "release": "r2", "language": "de"})
    assert _sum(client, "perennial_searches_total", language="de") == 1


def test_each_step_of_a_query_over_rest_is_timed(client: httpx.Client) -> None:
    def count(step: str) -> float:
        return _sum(client, "perennial_step_seconds_count", step=step)

    before = {step: count(step) for step in STEPS}
    total = _sum(client, "perennial_step_seconds_sum")
    started = time.perf_counter()
    client.post("/v1/search", json={"text": "a boat that nobody asked for before"})
    seconds = time.perf_counter() - started
    client.get("/v1/jobs")  # answers, and asks no query
    assert {step: count(step) - before[step] for step in STEPS} == dict.fromkeys(STEPS, 1)
    assert 0 < _sum(client, "perennial_step_seconds_sum") - total < seconds


def test_refused_queries_count_by_reason(client: httpx.Client) -> None:
    before = _sum(client, "perennial_searches_refused_total", reason="BadQuery")
    assert client.post("/v1/search", json={"text": " "}).status_code == 400
    assert _sum(client, "perennial_searches_refused_total", reason="BadQuery") == before + 1
    assert _sum(client, "perennial_searches_under_way") == 0


def test_what_callers_choose_makes_no_series(client: httpx.Client) -> None:
    client.post("/v1/search", json={"text": "a red boat", "language": "sw"})
    client.get("/v1/jobs/j123456")
    client.get("/v1/no-such-route-7")
    client.get("/somewhere-else-7")
    text = client.get("/metrics").text
    assert "j123456" not in text
    assert "else-7" not in text
    assert "route-7" not in text
    assert '"sw"' not in text
    assert _sum(client, "perennial_searches_total", language="other") == 1
    assert _sum(client, "perennial_http_seconds_count", route="/v1/jobs/{job}", status="404") == 1


def test_the_home_is_read_at_each_scrape(client: httpx.Client, server: Served) -> None:
    assert _sum(client, "perennial_gallery_pictures") == PICTURES
    assert _sum(client, "perennial_recall_percent", language="en", metric="t2i_r10", view="own") == 50
    assert _sum(client, "perennial_jobs", kind="gallery", state="queued") == 0
    job = server.serving.workspace.catalog.add_job("gallery")
    assert _sum(client, "perennial_jobs", kind="gallery", state="queued") == 1
    server.serving.workspace.catalog.update_job(job.id, state="cancelled")
    assert _sum(client, "perennial_jobs", kind="gallery", state="queued") == 0


def test_a_swap_counts_and_the_live_release_changes(client: httpx.Client) -> None:
    before = _sum(client, "perennial_swaps_total")
    promoted = client.post("/v1/releases/r2/promote", json={"why": "tests"}).json()
    assert _sum(client, "perennial_swaps_total") == before + 1
    assert _sum(client, "perennial_live", release=promoted["release"]) == promoted["commit"]
    assert _sum(client, "perennial_recall_percent", language="de", metric="t2i_r10") == 70
    client.post("/v1/rollback", json={"release": "r1"})


def test_the_dashboard_asks_only_for_what_is_there(client: httpx.Client) -> None:
    client.post("/v1/search", json={"text": "a red boat"})
    client.post("/v1/search", json={"text": ""})
    # A family may have no sample, as that of what is degraded where nothing is.
    families = text_string_to_metric_families(client.get("/metrics").text)
    there = {name for name, _ in _samples(client)} | {family.name for family in families}
    panels = json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]
    assert len(panels) > 10
    for panel in panels:
        for target in panel["targets"]:
            asked = set(re.findall(r"\b(?:perennial|process)_\w+", target["expr"]))
            assert asked, panel["title"]
            assert asked <= there, panel["title"]
