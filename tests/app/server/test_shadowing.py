"""Claims about a server with a candidate in the shadow: it is asked, and nobody who searches feels it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.desk.hits import SearchAnswer, SearchRequest
from app.desk.operation import adapter
from app.desk.opinions import ShadowReport
from app.feedback import shadow
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import going_live
from app.server.security import ANYONE
from app.server.served import Served as Desk
from app.server.serving import Serving
from app.words.shadow import shadow_sentences
from tests.app.server.served import Served, make_home

QUERIES = ("two red boats", "a house at night", "a tree beside a lake", "เรือสีแดงสองลำ")


def _until(holds: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


@contextmanager
def _running(settings: Settings) -> Iterator[Serving]:
    with Workspace.open(settings) as workspace:
        serving = Serving(workspace)
        serving.start()
        try:
            yield serving
        finally:
            serving.stop()


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    with _running(make_home(tmp_path)) as running:
        yield running


def _shadowed(serving: Serving, release: str = "r2") -> None:
    """Puts a release into the shadow, asked every query, and waits until it is loaded."""
    shadow.start(serving.workspace, release, share=1.0, by="tests")
    _until(lambda: serving.shadowing.release.startswith(release), "the candidate was never loaded")


def _ask(serving: Serving, text: str, **more: Any) -> SearchAnswer:
    return Desk(serving, ANYONE).search(SearchRequest(text=text, **more))


def _told(serving: Serving, release: str = "r2") -> ShadowReport:
    return serving.shadowing.report(release)


def _answered(serving: Serving, release: str = "r2") -> int:
    total = _told(serving, release).total
    return total.queries if total else 0


def test_a_candidate_answers_live_queries_and_its_report_says_how_far_they_lie_apart(
    serving: Serving,
) -> None:
    _shadowed(serving)
    for query in QUERIES:
        assert _ask(serving, query, k=3).release.startswith("r1-"), "people are answered by what is live"
    _until(lambda: _answered(serving) == len(QUERIES), "the queries were never asked")
    told = _told(serving)
    assert told.against.startswith("r1-")
    assert {line.language: line.queries for line in told.languages} == {"en": 3, "th": 1}
    # The home has ten pictures, so both show the same ten, in another order: the encoders differ.
    assert told.total is not None
    assert told.total.overlap == 100
    assert told.total.moved > 0
    assert not told.is_enough


def test_only_first_pages_of_what_is_live_are_asked(serving: Serving) -> None:
    _shadowed(serving)
    answer = _ask(serving, "a red boat", k=3)
    for further in ({"cursor": answer.next}, {"offset": 3}):
        _ask(serving, "a red boat", k=3, **further)
    _ask(serving, "a red boat", release="r3")
    _ask(serving, "a blue house")
    _until(lambda: _answered(serving) == 2, "the two first pages were never asked")
    time.sleep(0.5)
    assert _answered(serving) == 2


def test_no_search_waits_for_the_shadow_and_what_finds_no_room_is_dropped_and_counted(
    serving: Serving,
) -> None:
    _shadowed(serving)
    # As long as somebody waits for an answer the candidate is asked nothing.
    with serving.shadowing.held_back():
        for number in range(40):
            assert _ask(serving, f"{number} red boats", k=3).hits
        told = _told(serving)
        assert told.total is None
        assert told.dropped >= 40 - 32 - 1
    _until(lambda: _answered(serving) > 0, "nothing was asked afterwards")
    _until(lambda: _answered(serving) + _told(serving).dropped == 40, "a query was lost")


def test_a_candidate_that_breaks_harms_no_search(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    _shadowed(serving)
    candidate = serving.shadowing._candidate
    assert candidate is not None
    # Its encoder is broken for good, as that of a damaged file would be; the live one is another object.
    monkeypatch.setattr(candidate.snapshot.encoder, "encode_readings", None)
    for query in QUERIES:
        assert _ask(serving, query).hits

    def refused() -> int:
        total = _told(serving).total
        return total.refused if total else 0

    _until(lambda: refused() == len(QUERIES), "refusals were not counted")
    assert "could answer none" in " ".join(shadow_sentences(_told(serving)))


def test_a_release_that_cannot_be_loaded_leaves_the_shadow_with_a_reason(serving: Serving) -> None:
    record = serving.workspace.releases.release("r2")
    for path in (serving.workspace.home.versions / record.version).glob("*.safetensors"):
        path.write_bytes(b"damaged")
    shadow.start(serving.workspace, "r2", share=1.0, by="tests")
    _until(lambda: not _told(serving).is_active, "it stays in the shadow")
    assert _told(serving).why.startswith("it could not be loaded")
    assert _ask(serving, "a red boat").hits


def test_it_survives_a_restart_and_the_memory_is_let_go_when_it_ends(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with _running(settings) as serving:
        _shadowed(serving)
        _ask(serving, "two red boats")
        _until(lambda: _answered(serving) == 1, "the query was never asked")
    with _running(settings) as serving:
        assert _answered(serving) == 1
        _until(lambda: bool(serving.shadowing.release), "the candidate was not loaded again")
        version = serving.workspace.releases.release("r2").version
        assert version in serving.workspace._searchers
        _ask(serving, "a house")
        _until(lambda: _answered(serving) == 2, "the query was never asked")
        shadow.stop(serving.workspace, "r2", by="tests", why="seen enough")
        _until(lambda: not serving.shadowing.release, "it never left the shadow")
        _until(lambda: version not in serving.workspace._searchers, "its memory is held")


def test_a_candidate_that_goes_live_leaves_the_shadow(serving: Serving) -> None:
    _shadowed(serving)
    going_live.promote(serving.workspace, "r2", why="good", by="tests", force=True)
    _until(lambda: not serving.shadowing.release, "it never left the shadow")
    assert _told(serving).why == "it went live"
    serving.refresh()
    assert _ask(serving, "a red boat").release.startswith("r2-")


def test_nothing_of_what_was_asked_is_kept(serving: Serving) -> None:
    _shadowed(serving)
    _ask(serving, "a most unusual zeppelin")
    _until(lambda: _answered(serving) == 1, "the query was never asked")
    connection = sqlite3.connect(serving.workspace.catalog.place)
    dump = "\n".join(connection.iterdump())
    connection.close()
    assert "zeppelin" not in dump


def test_over_rest_it_begins_and_ends_and_metrics_say_what_it_shows(
    server: Served, client: httpx.Client
) -> None:
    begun = client.post("/v1/releases/r2/shadow", json={"share": 1})
    assert (begun.status_code, begun.json()["is_active"], begun.json()["by"]) == (200, True, "local")
    _until(lambda: bool(server.serving.shadowing.release), "the candidate was never loaded")
    assert client.post("/v1/search", json={"text": "a red boat"}).json()["release"].startswith("r1-")

    def told() -> dict[str, Any]:
        return dict(client.get("/v1/releases/r2/shadow").json())

    _until(lambda: bool(told()["total"]), "the query was never asked")
    assert told()["total"]["queries"] == 1
    text = client.get("/metrics").text
    assert 'perennial_shadow_queries_total{outcome="answered"} 1.0' in text
    assert 'perennial_shadow_overlap_percent{language="en"' in text
    ended = client.post("/v1/releases/r2/shadow/stop", json={"why": "seen enough"}).json()
    assert (ended["is_active"], ended["why"], ended["stopped_by"]) == (False, "seen enough", "local")
    assert adapter(ShadowReport).validate_python(ended).total is not None
    assert client.get("/v1/releases/r2").json()["shadow"]["why"] == "seen enough"
    assert client.get("/v1/releases/r3").json()["shadow"] is None


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/releases/r1/shadow", {}, 400),
        ("/v1/releases/r9/shadow", {}, 404),
        ("/v1/releases/r2/shadow", {"share": 0}, 422),
        ("/v1/releases/r2/shadow", {"share": 2}, 422),
        ("/v1/releases/r2/shadow", {"shares": 1}, 422),
        ("/v1/releases/r3/shadow/stop", {}, 400),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(
    client: httpx.Client, path: str, body: dict[str, Any], status: int
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]
