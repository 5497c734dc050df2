"""Claims about feedback: what is kept, counted, made a canary, and refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.client import Client
from app.feedback import votes, wilson
from ingest.feedback import FeedbackRecord
from tests.app.server.served import Served, make_home, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(make_home(tmp_path_factory.mktemp("home"))) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client


def _first(client: httpx.Client) -> str:
    return str(client.post("/v1/search", json={"text": "a red boat", "k": 1}).json()["hits"][0]["id"])


def test_a_thumb_is_kept_with_who_gave_it_and_the_newest_counts(server: Served, client: httpx.Client) -> None:
    with Client(server.url) as typed:
        answer = typed.search("a red house", k=2)
        first = typed.thumb(answer, answer.hits[0], "down")
        second = typed.thumb(answer, answer.hits[0], "up")
    assert (second["id"], second["verdict"], second["by"]) == (first["id"], "up", "local")
    kept = client.get("/v1/feedback").json()["feedback"]
    assert [(one["query"], one["verdict"]) for one in kept if one["id"] == first["id"]] == [
        ("a red house", "up")
    ]


def test_a_thumb_up_becomes_a_canary_and_a_thumb_down_does_not(server: Served, client: httpx.Client) -> None:
    image = _first(client)
    up, down = (
        client.post(
            "/v1/feedback",
            json={"query": query, "language": "en", "release": "r1", "image": image, "verdict": verdict},
        ).json()
        for query, verdict in (("red boats", "up"), ("blue boats", "down"))
    )
    assert client.post(f"/v1/feedback/{up['id']}/pin").json()["image_id"] == image
    assert ("red boats", "en", image) in {
        (one.query, one.language, one.image_id) for one in server.serving.workspace.catalog.pins()
    }
    assert client.post(f"/v1/feedback/{down['id']}/pin").status_code == 400
    assert client.post("/v1/feedback/999999/pin").status_code == 404


def test_votes_are_counted_by_pair_whichever_side_each_was_shown_on(client: httpx.Client) -> None:
    for n, (a, b, choice) in enumerate(
        [
            ("r1", "r2", "b"),
            ("r2", "r1", "a"),
            ("r1", "r2", "a"),
            ("r1", "r2", "tie"),
            ("r2", "r1", "both_bad"),
        ]
    ):
        asked = {"query": f"boat {n}", "a": a, "b": b, "choice": choice}
        assert client.post("/v1/feedback", json=asked).status_code == 201
    (pair,) = client.get("/v1/feedback").json()["votes"]
    assert (pair["a"][:2], pair["b"][:2]) == ("r1", "r2")
    assert (pair["for_a"], pair["for_b"], pair["ties"], pair["both_bad"]) == (1, 2, 1, 1)
    assert pair["share_b"] == pytest.approx(200 / 3)
    assert pair["low"] < pair["share_b"] < pair["high"]


def test_an_interval_covers_as_often_as_it_says() -> None:
    # Tabled by Newcombe, Statistics in Medicine 17 (1998), method 3: 81 of 263 and 0 of 20.
    assert wilson(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert wilson(0, 20) == pytest.approx((0.0, 0.1611), abs=1e-4)


def test_ties_alone_prefer_nobody() -> None:
    tie = FeedbackRecord(1, "2026", "ada", "boat", "auto", "r1", "r2", "", "tie")
    assert [(one.ties, one.share_b, one.low) for one in votes([tie])] == [(1, None, None)]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"query": "boat"}, 422),
        ({"query": "boat", "release": "r1", "image": "0" * 64}, 422),
        ({"query": "boat", "release": "r1", "image": "0" * 64, "verdict": "up"}, 404),
        ({"query": "boat", "release": "r9", "image": "0" * 64, "verdict": "up"}, 404),
        ({"query": "boat", "a": "r1", "b": "r1", "choice": "a"}, 400),
        ({"query": "boat", "a": "r1", "b": "r9", "choice": "a"}, 404),
        ({"query": "boat", "a": "r1", "b": "r2", "choice": "c"}, 422),
        ({"query": "boat", "a": "r1", "b": "r2", "choice": "a", "verdict": "up"}, 422),
        ({"query": "boat", "a": "r1", "b": "r2", "choice": "a", "note": "x"}, 422),
        ({"query": "", "a": "r1", "b": "r2", "choice": "a"}, 422),
    ],
)
def test_what_is_no_feedback_is_refused(client: httpx.Client, body: dict[str, Any], status: int) -> None:
    answer = client.post("/v1/feedback", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]
