"""Claims about `gradio_client` against a running server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from gradio_client import Client
from gradio_client.exceptions import AppError

from tests.app.server.served import PICTURES, Served


@pytest.fixture(scope="module")
def client(server: Served) -> Iterator[Client]:
    os.environ["HF_HUB_OFFLINE"] = "1"
    client = Client(server.url, verbose=False, analytics_enabled=False)
    yield client
    client.close()


def test_search_answers_with_pictures_that_can_be_fetched(client: Client, server: Served) -> None:
    found = client.predict(text="a red boat", k=3, api_name="/search")
    assert found["release"].startswith("r1-")
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
    assert found["hits"][0]["captions"][0]["text"]
    for name in ("thumb_url", "url"):
        answer = httpx.get(found["hits"][0][name])
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/webp")


def test_search_takes_a_language_domains_and_a_release(client: Client) -> None:
    found = client.predict(
        text="ein rotes Boot", language="de", domains=["scenes"], release="r2", api_name="/search"
    )
    assert found["release"].startswith("r2-")
    assert len(found["hits"]) == PICTURES


def test_compare_names_both_releases_and_how_pictures_moved(client: Client) -> None:
    compared = client.predict(text="a red boat", a="r1", b="r2", k=5, api_name="/compare")
    assert [compared[side]["release"][:3] for side in "ab"] == ["r1-", "r2-"]
    assert len(compared["a"]["hits"]) == 5
    assert 0 <= compared["overlap"] <= 1


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("/search", {"text": " "}, "nothing to look for"),
        ("/search", {"text": "boat", "release": "r99"}, "r99"),
        ("/search", {"text": "boat", "domains": ["photo"]}, "Domains here: scenes"),
        ("/search", {"text": "boat", "k": 0}, "k: "),
        ("/search", {"text": "boat", "domains": "photo"}, "domains: "),
        ("/compare", {"text": "boat", "a": "r1", "b": "r99"}, "r99"),
    ],
)
def test_what_cannot_be_answered_is_a_sentence(
    client: Client, name: str, asked: dict[str, Any], said: str
) -> None:
    with pytest.raises(AppError, match=said):
        client.predict(**asked, api_name=name)


def test_a_program_is_told_names_and_types_of_all_arguments(client: Client) -> None:
    told = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(told) == {"/search", "/compare"}
    for endpoint, expected in (
        ("/search", ["text", "language", "domains", "k", "release"]),
        ("/compare", ["text", "a", "b", "language", "k"]),
    ):
        parameters = told[endpoint]["parameters"]
        assert [one["parameter_name"] for one in parameters] == expected
        assert not [one for one in parameters if "Literal" in str(one["python_type"])]
