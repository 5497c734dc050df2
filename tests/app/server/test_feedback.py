"""Claims about feedback: what is kept, counted, made a canary, and refused."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from app.client import connect
from app.desk.hits import SearchRequest
from app.desk.opinions import Opinion
from app.feedback.votes import votes, wilson
from ingest.feedback import FeedbackRecord
from tests.app.server.served import Served


def _first(client: httpx.Client) -> str:
    return str(client.post("/v1/search", json={"text": "a red boat", "k": 1}).json()["hits"][0]["id"])


def test_a_thumb_is_kept_with_who_gave_it_and_the_newest_counts(server: Served, client: httpx.Client) -> None:
    with connect(server.url) as desk:
        answer = desk.search(SearchRequest(text="a red house", k=2))
        said = {"query": answer.query, "release": answer.release, "image": answer.hits[0].id}
        first, second = (
            desk.give_feedback(Opinion.model_validate(said | {"verdict": verdict}))
            for verdict in ("down", "up")
        )
        assert (second.id, second.verdict, second.by) == (first.id, "up", "local")
        kept = client.get("/v1/feedback").json()["feedback"]
        assert [(one["query"], one["verdict"]) for one in kept if one["id"] == first.id] == [
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
    refused = client.post(f"/v1/feedback/{down['id']}/pin")
    assert (refused.status_code, "Name the picture" in refused.json()["error"]) == (400, True)
    assert client.post("/v1/feedback/999999/pin").status_code == 404


def test_a_query_of_several_parts_becomes_no_canary(client: httpx.Client) -> None:
    body = {"query": "2:red boat - house", "language": "en", "release": "r1", "verdict": "up"}
    up = client.post("/v1/feedback", json=body | {"image": _first(client)}).json()
    refused = client.post(f"/v1/feedback/{up['id']}/pin")
    assert (refused.status_code, "no single text" in refused.json()["error"]) == (400, True)


def test_a_vote_or_a_thumb_down_becomes_a_canary_once_a_person_names_the_picture(
    server: Served, client: httpx.Client
) -> None:
    image = _first(client)
    vote = client.post(
        "/v1/feedback",
        json={"query": "two red houses", "language": "en", "a": "r2", "b": "r3", "choice": "both_bad"},
    ).json()
    refused = client.post(f"/v1/feedback/{vote['id']}/pin")
    assert refused.status_code == 400
    assert "Name the picture" in refused.json()["error"]
    assert client.post(f"/v1/feedback/{vote['id']}/pin", json={"image": "0" * 64}).status_code == 404
    pinned = client.post(f"/v1/feedback/{vote['id']}/pin", json={"image": image}).json()
    assert pinned == {"query": "two red houses", "language": "en", "image_id": image}


def test_a_canary_in_no_stated_language_is_in_the_one_that_is_read(client: httpx.Client) -> None:
    image = _first(client)
    up = client.post(
        "/v1/feedback",
        json={"query": "the house at night", "release": "r1", "image": image, "verdict": "up"},
    ).json()
    assert up["language"] == "auto"
    assert client.post(f"/v1/feedback/{up['id']}/pin").json()["language"] == "en"
    asked = {"language": "de"}
    assert client.post(f"/v1/feedback/{up['id']}/pin", json=asked).json()["language"] == "de"


def test_what_people_found_right_is_taken_in_as_a_chunk_that_is_held(
    server: Served, client: httpx.Client
) -> None:
    image = _first(client)
    for query in ("a hut that I like", "a hut that is wrong"):
        body = {"query": query, "language": "en", "release": "r1", "image": image, "verdict": "up"}
        assert client.post("/v1/feedback", json=body).status_code == 201
    proposal = client.get("/v1/feedback/proposal").json()
    wanted = [pair["id"] for pair in proposal["pairs"] if pair["text"] == "a hut that I like"]
    assert client.post("/v1/feedback/proposal", json={"pairs": []}).status_code == 400
    assert client.post("/v1/feedback/proposal", json={"pairs": ["no such pair"]}).status_code == 400
    taken = client.post("/v1/feedback/proposal", json={"pairs": wanted})
    assert taken.status_code == 202
    job = server.ended(taken.json()["job"]["id"])
    assert job.state == "succeeded", job.error
    chunk = server.serving.workspace.catalog.chunks()[-1]
    assert (chunk.standing, chunk.new_pairs, chunk.new_images) == ("held", 1, 0)
    assert "1 query that people judged" in chunk.standing_why
    left = client.get("/v1/feedback/proposal").json()
    assert "a hut that I like" not in {pair["text"] for pair in left["pairs"]}
    assert left["known"] == proposal["known"] + 1


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
    pair, *_ = client.get("/v1/feedback").json()["votes"]
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


def test_a_canary_is_taken_away_once_it_is_named_well_enough(server: Served, client: httpx.Client) -> None:
    catalog = server.serving.workspace.catalog
    image = _first(client)
    for language in ("en", "de"):
        catalog.set_pin("a canary", language, image)
    listed = client.get("/v1/canaries").json()["canaries"]
    assert {"query": "a canary", "language": "de", "image_id": image} in listed
    unclear = client.post("/v1/canaries/remove", json={"query": "a canary"})
    assert (unclear.status_code, "canary in de, en. Name the language" in unclear.json()["error"]) == (
        400,
        True,
    )
    gone = client.post("/v1/canaries/remove", json={"query": "a canary", "language": "DE"})
    assert (gone.status_code, gone.json()["language"]) == (200, "de")
    wrong = client.post("/v1/canaries/remove", json={"query": "a canary", "language": "de"})
    assert (wrong.status_code, "it is one in en" in wrong.json()["error"]) == (404, True)
    assert client.post("/v1/canaries/remove", json={"query": "a canary"}).json()["language"] == "en"
    assert client.post("/v1/canaries/remove", json={"query": "a canary"}).status_code == 404
    assert "a canary" not in {one.query for one in catalog.pins()}
