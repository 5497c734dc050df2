"""Claims about comparing over REST: many queries with a status each, those that changed most, and votes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.app.server.served import Served, add_held_out, make_home, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("home")
    with served(make_home(folder)) as running:
        add_held_out(running.serving.workspace, folder)
        yield running


def test_each_of_many_queries_has_a_status_of_its_own(client: httpx.Client) -> None:
    asked = {"queries": ["a red boat", "x" * 3000, "zwei rote Boote"], "a": "r1", "b": "r2", "k": 5}
    found = client.post("/v1/comparisons", json=asked).json()
    assert [one["status"] for one in found["results"]] == [200, 400, 200]
    assert "at most 500" in found["results"][1]["error"]
    overlaps = [one["change"]["overlap"] for one in found["results"] if one["change"]]
    assert found["overlap"] == pytest.approx(sum(overlaps) / 2)
    assert (found["a"][:3], found["b"][:3], found["queries"]) == ("r1-", "r2-", 3)
    single = client.post("/v1/compare", json={"text": "a red boat", "a": "r1", "b": "r2", "k": 5}).json()
    assert found["results"][0]["change"]["overlap"] == single["overlap"]


def test_two_releases_are_asked_in_the_grammar_of_a_search(client: httpx.Client) -> None:
    text = "2:a red boat - a house"
    compared = client.post("/v1/compare", json={"text": text, "a": "r1", "b": "r2", "k": 5}).json()
    for side, release in (("a", "r1"), ("b", "r2")):
        alone = client.post("/v1/search", json={"text": text, "release": release, "k": 5}).json()
        assert [hit["id"] for hit in compared[side]["hits"]] == [hit["id"] for hit in alone["hits"]]
        assert compared[side]["query"] == alone["query"] == "2:a red boat - a house"
    (first, *_) = compared["a"]["hits"]
    alike = client.post(
        "/v1/compare", json={"text": f"#{first['id'][:16]}", "a": "r1", "b": "r2", "k": 5}
    ).json()
    assert first["id"] not in {hit["id"] for hit in alike["a"]["hits"]}
    wrong = client.post("/v1/compare", json={"text": "a red boat +", "a": "r1", "b": "r2"})
    assert (wrong.status_code, "at character 12" in wrong.json()["error"]) == (400, True)


def test_canaries_are_compared_as_they_are_whatever_signs_are_in_them(
    server: Served, client: httpx.Client
) -> None:
    catalog = server.serving.workspace.catalog
    image = client.post("/v1/search", json={"text": "boat", "k": 1}).json()["hits"][0]["id"]
    canary = "two red boats - a house +"  # as a query it would be wrong
    catalog.set_pin(canary, "en", image)
    try:
        changed = client.get("/v1/comparisons/changed", params={"a": "r1", "b": "r2", "most": "64"}).json()[
            "results"
        ]
    finally:
        catalog.remove_pin(canary, "en")
    (own,) = [one for one in changed if "+" in one["query"]]
    assert (own["query"], own["status"]) == (f'"{canary}"', 200)


def test_those_that_changed_most_come_first_and_a_release_differs_from_itself_in_nothing(
    client: httpx.Client,
) -> None:
    changed = client.get("/v1/comparisons/changed", params={"a": "r1", "b": "r2", "k": 3}).json()
    overlaps = [one["change"]["overlap"] for one in changed["results"]]
    assert overlaps == sorted(overlaps)
    assert changed["queries"] >= len(overlaps) > 0
    alike = client.get("/v1/comparisons/changed", params={"a": "r2", "b": "r2"}).json()
    assert (alike["results"], alike["overlap"]) == ([], 1.0)


def test_votes_between_two_releases_are_counted_whichever_is_named_first(client: httpx.Client) -> None:
    nobody = client.get("/v1/votes", params={"a": "r2", "b": "r3"}).json()
    assert (nobody["for_a"], nobody["for_b"], nobody["share_b"]) == (0, 0, None)
    for query, choice in (("one", "a"), ("two", "b"), ("three", "b")):
        body = {"query": query, "a": "r2", "b": "r1", "choice": choice}
        assert client.post("/v1/feedback", json=body).status_code == 201
    counted = client.get("/v1/votes", params={"a": "r2", "b": "r1"}).json()
    assert (counted["a"][:2], counted["b"][:2]) == ("r1", "r2")
    assert (counted["for_a"], counted["for_b"]) == (2, 1)
    assert counted["low"] < counted["share_b"] < counted["high"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"queries": [], "a": "r1", "b": "r2"}, 422),
        ({"queries": ["boat"] * 65, "a": "r1", "b": "r2"}, 422),
        ({"queries": ["boat"], "a": "r1", "b": "r99"}, 404),
        ({"queries": ["boat"], "a": "r1"}, 422),
        ({"queries": ["boat"], "a": "r1", "b": "r2", "k": 10**9}, 422),
        ({"queries": ["boat"], "a": "r1", "b": "r2", "langauge": "en"}, 422),
    ],
)
def test_what_cannot_be_compared_is_refused(client: httpx.Client, body: dict[str, Any], status: int) -> None:
    answer = client.post("/v1/comparisons", json=body)
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]


def test_unknown_releases_and_equal_sides_are_refused(client: httpx.Client) -> None:
    for path, asked, status in (
        ("/v1/comparisons/changed", {"a": "r1", "b": "r99"}, 404),
        ("/v1/votes", {"a": "r1", "b": "r99"}, 404),
        ("/v1/votes", {"a": "r1", "b": "r1"}, 400),
        ("/v1/votes", {"a": "r1"}, 422),
    ):
        assert client.get(path, params=asked).status_code == status, path
