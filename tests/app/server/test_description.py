"""Claims about what REST says of itself, and about fields that there are not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.server.security import Passwords, password_line
from tests.app.server.served import Served, make_home, served

CONTRIBUTOR = ("cora", "nine patient herons")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One with the pages, which bring a description of their own."""
    with served(make_home(tmp_path_factory.mktemp("home")), with_pages=True) as running:
        yield running


def test_the_usual_address_describes_rest_and_not_the_pages(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document == client.get("/v1/openapi.json").json()
    assert document["info"]["title"] == "Perennial"
    assert "/v1/search" in document["paths"]
    assert not [path for path in document["paths"] if "gradio" in path]


@pytest.mark.parametrize("path", ["/v1", "/v1/"])
def test_the_beginning_of_rest_lists_what_there_is(client: httpx.Client, path: str) -> None:
    operations = client.get(path).json()["operations"]
    listed = {(one["method"], one["path"]): one for one in operations}
    described = client.get("/openapi.json").json()["paths"]
    in_v1 = {
        (method.upper(), path)
        for path, methods in described.items()
        for method in methods
        if path.startswith("/v1/")
    }
    assert set(listed) == in_v1
    search = listed["POST", "/v1/search"]
    assert search["summary"].startswith("Finds pictures by texts")
    assert search["roles"] == ["searcher", "contributor", "admin"]
    assert listed["GET", "/v1/log"]["roles"] == ["admin"]


def test_whoever_is_listed_for_an_operation_may_ask_it_and_nobody_else(
    tmp_path_factory: pytest.TempPathFactory, tmp_path: Path
) -> None:
    path = tmp_path / "passwords"
    path.write_text(password_line(CONTRIBUTOR[0], "contributor", CONTRIBUTOR[1]) + "\n", encoding="utf-8")
    path.chmod(0o600)
    settings = make_home(tmp_path_factory.mktemp("behind"))
    with served(settings, Passwords.load(path)) as running, running.client(auth=CONTRIBUTOR) as client:
        for one in client.get("/v1").json()["operations"]:
            address = re.sub(r"\{\w+\}", "0", one["path"])
            answer = client.request(one["method"], address, json={} if one["method"] == "POST" else None)
            assert (answer.status_code != 403) == ("contributor" in one["roles"]), (one, answer.text)


@pytest.mark.parametrize(
    ("body", "meant"),
    [
        ({"query": "a boat"}, "There is no field 'query'. Did you mean 'text'?"),
        ({"text": "a boat", "langauge": "de"}, "There is no field 'langauge'. Did you mean 'language'?"),
        ({"text": "a boat", "limit": 3}, "There is no field 'limit'. Did you mean 'k'?"),
        ({"parts": [{"vector": [1.0]}]}, "parts.0: There is no field 'vector'. Did you mean 'embedding'?"),
        ({"text": "a boat", "next": "x"}, "There is no field 'next'. Did you mean 'cursor'?"),
        ({"text": "a boat", "zzz": 1}, "There is no field 'zzz'; there are caption, "),
    ],
)
def test_a_field_that_there_is_not_is_named_with_the_one_that_was_meant(
    client: httpx.Client, body: dict[str, object], meant: str
) -> None:
    answer = client.post("/v1/search", json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert answer.json()["error"].startswith(meant)


def test_a_route_without_fields_says_so(client: httpx.Client) -> None:
    assert client.get("/v1/jobs?query=1").json()["error"] == (
        "There is no field 'query'; nothing can be named here."
    )


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        (b'{"text": "a \xe9"}', 400, "The body is no JSON in UTF-8 ('utf-8' codec can't decode byte 0xe9"),
        (
            b'{"text": "a boat", "k": ' + b"9" * 5000 + b"}",
            400,
            "The body is no JSON in UTF-8 (Exceeds the limit",
        ),
        (
            b'["a boat"]',
            422,
            "The body is no JSON object; send one, with the header `Content-Type: application/json`",
        ),
    ],
)
def test_what_is_wrong_with_a_body_is_said(client: httpx.Client, body: bytes, status: int, said: str) -> None:
    answer = client.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"].startswith(said)
