"""Claims about what a search may be asked over REST."""

from __future__ import annotations

import base64
import io
from typing import Any

import httpx
import pytest

from tests.app.server.served import PICTURES, Served


@pytest.fixture
def picture(server: Served) -> tuple[str, str]:
    """The id of a picture of the gallery, and its file in base64."""
    workspace = server.serving.workspace
    image_id = workspace.catalog.gallery_ids()[2]
    packed = io.BytesIO()
    workspace.load_image(image_id).save(packed, "PNG")
    return image_id, base64.b64encode(packed.getvalue()).decode()


def _search(client: httpx.Client, **body: Any) -> dict[str, Any]:
    answer = client.post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_picture_is_a_query(client: httpx.Client, picture: tuple[str, str]) -> None:
    image_id, file = picture

    found = _search(client, image=file, k=3)
    named = _search(client, text="2:./a.png - a red boat", images={"a.png": file}, k=3, explain=True)
    addressed = _search(client, image=f"data:image/png;base64,{file}", k=1)

    assert found["hits"][0]["id"] == addressed["hits"][0]["id"] == image_id
    assert found["language"] == ""
    assert [(part["kind"], part["value"], part["weight"]) for part in named["parts"]] == [
        ("image", "./a.png", 2.0),
        ("text", "a red boat", -1.0),
    ]
    assert len(named["hits"][0]["parts"]) == 2


def test_parts_say_the_same_as_the_grammar(client: httpx.Client, picture: tuple[str, str]) -> None:
    image_id, file = picture
    other = _search(client, text="a boat", k=1)["hits"][0]["id"]

    parts = [
        {"text": "a red boat", "weight": 2},
        {"image": file},
        {"item": other, "weight": -0.5},
    ]
    by_parts = _search(client, parts=parts)
    by_text = _search(client, text=f"2:a red boat + ./x.png - 0.5:#{other[:20]}", images={"x.png": file})

    assert [hit["id"] for hit in by_parts["hits"]] == [hit["id"] for hit in by_text["hits"]]
    assert other not in {hit["id"] for hit in by_parts["hits"]}


def test_a_picture_is_answered_with_captions(client: httpx.Client, picture: tuple[str, str]) -> None:
    found = _search(client, image=picture[1], k=1, captions=4, caption_languages=["en"])

    assert len(found["captions"]) == 4
    assert {caption["language"] for caption in found["captions"]} == {"en"}
    assert all(caption["images"] for caption in found["captions"])
    refused = client.post("/v1/search", json={"text": "a boat", "captions": 1, "caption_languages": ["ja"]})
    assert (refused.status_code, refused.json()["code"]) == (400, "bad_query")


def test_more_like_some_pictures(client: httpx.Client) -> None:
    items = [hit["id"] for hit in _search(client, text="a boat", k=2)["hits"]]

    found = _search(client, items=items, k=100)

    assert len(found["hits"]) == PICTURES - 2
    assert found["index_size"] == PICTURES
    assert found["searched"] == PICTURES - 2


def test_pages_go_on_in_the_release_that_began(client: httpx.Client, server: Served) -> None:
    whole = [hit["id"] for hit in _search(client, text="a red boat", k=100)["hits"]]
    first = _search(client, text="a red boat", k=4)
    try:
        client.post("/v1/releases/r2/promote", json={"why": "test"}).raise_for_status()
        second = _search(client, text="a red boat", k=4, cursor=first["next"])
        third = _search(client, text="a red boat", k=4, cursor=second["next"])
    finally:
        client.post("/v1/rollback", json={"release": "r1", "why": "test"}).raise_for_status()

    assert second["release"] == third["release"] == first["release"]
    pages = [first, second, third]
    assert [hit["id"] for page in pages for hit in page["hits"]] == whole
    assert [hit["rank"] for page in pages for hit in page["hits"]] == list(range(1, PICTURES + 1))
    assert third["next"] == ""


def test_filters_and_modes(client: httpx.Client) -> None:
    assert _search(client, text="a boat", since="2020-01-01", until="2020-01-02")["hits"] == []
    assert _search(client, text="a boat", since="2020-01-01", k=100)["searched"] == PICTURES
    some = _search(client, text="a boat", caption="a", k=100)
    assert 0 < some["searched"] <= PICTURES
    word = _search(client, text="a boat", k=1)["hits"][0]["captions"][0]["text"].split()[-1].strip(".")
    found = _search(client, text=word, mode="captions", k=100)
    assert found["hits"]
    assert {tuple(hit["by"]) for hit in found["hits"]} == {("captions",)}


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"rerank": True, "mode": "captions"}, 400, "rerank, mode cannot be used"),
        ({"text": "red +"}, 400, "character 5"),
        ({"text": "./etc/passwd.png"}, 400, "none was sent under this name"),
        ({"text": "/etc/passwd"}, 400, "none was sent under this name"),
        ({"image_url": "http://169.254.169.254/x"}, 400, "Nothing is fetched"),
        ({"image": "no base64!"}, 400, "not a picture in base64"),
        ({"image": base64.b64encode(b"<svg>").decode()}, 400, "looks like SVG"),
        ({"image": ""}, 400, "empty"),
        ({"images": {"a": "b"}}, 400, "`text` names"),
        ({"items": ["ffffffffff"]}, 400, "No picture of release r"),
        ({"items": ["x"]}, 422, "items"),
        ({"embedding": [0.5, 1]}, 400, "2 numbers"),
        ({"parts": [{"weight": 2}]}, 422, "exactly one"),
        ({"parts": [{"text": "a", "item": "abcdef"}]}, 422, "exactly one"),
        ({"parts": [{"text": "a", "weight": 0}]}, 422, "leave it out"),
        ({"parts": [{"text": "a", "weight": 1e9}]}, 422, "weight"),
        ({"text": "boat", "parts": [{"text": "a"}] * 16}, 400, "17 parts"),
        ({"text": "boat", "since": "yesterday"}, 422, "since"),
        ({"text": "boat", "since": "2021-01-02", "until": "2021-01-01"}, 400, "Exchange"),
        ({"text": "boat", "chunks": ["nosuch"]}, 404, "no chunk"),
        ({"text": "boat", "mode": "magic"}, 422, "mode"),
        ({"text": "boat", "cursor": "abc"}, 400, "no page cursor"),
        ({"text": "boat", "cursor": "WyJyOTktYWEiLCAiMDAiLCAzLCAiIl0"}, 400, "which is gone"),
        ({"text": "boat", "languages": ["no language"]}, 422, "language"),
    ],
)
def test_what_cannot_be_answered_says_why(
    client: httpx.Client, body: dict[str, Any], status: int, says: str
) -> None:
    answer = client.post("/v1/search", json=body)

    assert answer.status_code == status, answer.text
    assert says in answer.json()["error"]


def test_numbers_that_are_none_are_refused(client: httpx.Client) -> None:
    for body in (
        '{"embedding": [NaN, 1]}',
        '{"parts": [{"text": "a", "weight": NaN}]}',
        '{"embedding": [1e999]}',
    ):
        answer = client.post("/v1/search", content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422), answer.text
