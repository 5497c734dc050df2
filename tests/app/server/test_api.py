"""Claims about REST: right answers, and a sentence with the right status for every mistake."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from PIL import Image
from starlette.exceptions import HTTPException

from app.desk.errors import NoSpace, ParentMoved, TooBusy, UpdateRunning, UsageProblem
from app.desk.hits import SearchRequest
from app.desk.troubles import trouble_of
from app.home.workspace import Workspace
from app.server.api import _handle_errors
from app.server.security import ANYONE
from app.server.served import Served as Desk
from app.server.serving import Serving
from index.errors import GenerationDamaged
from ingest.errors import BadUpload, CatalogHeld, StoreFull, UnknownChunk, UnknownLanguage
from ingest.images import thumbnail
from model_updates.errors import NothingToLearn, UnknownStrategy
from tests.app.server.served import PICTURES, Served, full, make_home, refusal, search


def test_a_search_names_its_release_and_describes_each_hit(client: httpx.Client) -> None:
    found = search(client, k=4)
    assert found["release"].startswith("r1-")
    assert found["commit"] == 1
    assert found["language"] == "en"
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3, 4]
    scores = [hit["score"] for hit in found["hits"]]
    assert scores == sorted(scores, reverse=True)
    first = found["hits"][0]
    assert first["domain"] == "scenes"
    assert {caption["language"] for caption in first["captions"]} == {"en"}
    assert client.get(first["thumb_url"]).status_code == 200
    assert found["timing"]["encode"] > 0


def test_openapi_says_of_a_field_what_its_record_says(client: httpx.Client) -> None:
    schemas = client.get("/v1/openapi.json").json()["components"]["schemas"]
    judged = schemas["Judged"]["properties"]["sentence"]
    assert judged["description"] == "whose report it is, or why there is none"
    fields = [field for schema in schemas.values() for field in schema.get("properties", {}).values()]
    assert sum("description" in field for field in fields) >= 361


def test_another_release_can_be_asked_by_its_number(client: httpx.Client) -> None:
    assert search(client, release="r2", language="de")["release"].startswith("r2-")
    assert search(client)["release"].startswith("r1-")


def test_filters_keep_only_what_fits(client: httpx.Client) -> None:
    assert len(search(client, k=100, domains=["scenes"])["hits"]) == PICTURES
    unknown = client.post("/v1/search", json={"text": "boat", "domains": ["scenes", "photo"]})
    assert refusal(unknown) == (400, "bad_query")
    assert "Domains here: scenes." in unknown.json()["error"]
    assert len(search(client, k=100, languages=["de"])["hits"]) == PICTURES
    assert search(client, languages=["ja"])["hits"] == []


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": ""}, 400, "bad_query"),
        ({"text": " \u3164 "}, 400, "bad_query"),
        ({"text": "x" * 501}, 400, "bad_query"),
        ({"text": "boat", "release": "r99"}, 404, "unknown_release"),
        ({"text": "boat", "rerank": True}, 400, "bad_query"),
        ({"text": "boat", "kk": 3}, 422, "invalid_request"),
        ({"text": "boat", "k": 0}, 422, "invalid_request"),
        ({"text": 7}, 422, "invalid_request"),
        ({"text": "boat", "language": "no language"}, 422, "unknown_language"),
        ({"explain": True}, 400, "bad_query"),
    ],
)
def test_a_search_that_cannot_be_answered_says_why(
    client: httpx.Client, body: dict[str, Any], status: int, code: str
) -> None:
    assert refusal(client.post("/v1/search", json=body)) == (status, code)


def test_an_unknown_field_is_named(client: httpx.Client) -> None:
    assert "'kk'" in client.post("/v1/search", json={"text": "boat", "kk": 1}).json()["error"]


@pytest.mark.parametrize(
    "content", [b"{", b"[]", b"\xff\xfe", b"", b'{"text": "cat", "domains": ["\\ud800"]}']
)
def test_a_body_that_is_no_request_is_refused(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/v1/search", content=content, headers={"Content-Type": "application/json"})
    assert refusal(answer) == (422, "invalid_request")


def test_compare_gives_both_answers_and_how_pictures_moved(client: httpx.Client) -> None:
    answer = client.post(
        "/v1/compare", json={"text": "a red boat", "a": "r1", "b": "r2", "language": "en", "k": 5}
    )
    compared = answer.json()
    left, right = ([hit["id"] for hit in compared[side]["hits"]] for side in "ab")
    assert left != right
    assert compared["overlap"] == len(set(left) & set(right)) / 5
    for move in compared["moves"]:
        for ids, rank in ((left, move["rank_a"]), (right, move["rank_b"])):
            assert (rank is None) == (move["id"] not in ids)
            assert rank is None or ids[rank - 1] == move["id"]
    assert compared["slices"]["b"][0]["recalls"]["t2i_r1"] == 61.0
    assert refusal(client.post("/v1/compare", json={"text": "x", "a": "r1", "b": "r9"})) == (
        404,
        "unknown_release",
    )


def test_pictures_are_kept_forever_and_carry_nothing_hidden(client: httpx.Client, server: Served) -> None:
    first = search(client, k=1)["hits"][0]
    for address in (first["thumb_url"], first["url"]):
        answer = client.get(address)
        assert answer.headers["content-type"] == "image/webp"
        assert "immutable" in answer.headers["cache-control"]
        picture = Image.open(io.BytesIO(answer.content))
        assert picture.format == "WEBP"
        assert not picture.getexif()
    original = server.serving.workspace.blobs.original(first["id"])
    assert client.get(first["url"]).content != original
    for unknown in ("0" * 64, "nonsense", "..%2f..%2fetc"):
        assert client.get(f"/v1/images/{unknown}").status_code == 404
        assert client.get(f"/v1/images/{unknown}/thumbnail").status_code == 404


def test_a_thumbnail_comes_in_three_sizes_and_is_sent_once(client: httpx.Client, server: Served) -> None:
    packed = io.BytesIO()
    Image.effect_noise((1000, 800), 60).convert("RGB").save(packed, "JPEG")
    image_id = hashlib.sha256(packed.getvalue()).hexdigest()
    small = thumbnail(Image.open(packed).convert("RGB"))
    server.serving.workspace.blobs.put([(image_id, packed.getvalue(), small)])
    for size, expected in ((None, (256, 205)), (256, (256, 205)), (400, (400, 320)), (640, (640, 512))):
        params = {} if size is None else {"size": size}
        answer = client.get(f"/v1/images/{image_id}/thumbnail", params=params)
        assert Image.open(io.BytesIO(answer.content)).size == expected
        again = client.get(answer.url, headers={"If-None-Match": f'"x", W/{answer.headers["etag"]}'})
        assert (again.status_code, again.content) == (304, b"")
        assert "immutable" in again.headers["cache-control"]
        assert client.get(answer.url, headers={"If-None-Match": "*"}).status_code == 304
        other = client.get(answer.url, headers={"If-None-Match": '"x"'})
        assert other.content == answer.content
    refused = client.get(f"/v1/images/{image_id}/thumbnail", params={"size": 641})
    assert refusal(refused) == (422, "invalid_request")
    assert "256, 400 or 640" in refused.json()["error"]


def test_captions_are_found_by_their_words(client: httpx.Client, server: Served) -> None:
    pair = server.serving.workspace.catalog.pairs(language="en")[0]
    found = client.get("/v1/captions", params={"text": pair.text}).json()["captions"]
    assert {"image_id": pair.image_id, "language": "en", "text": pair.text} in found
    assert all(caption["text"] == pair.text for caption in found)
    assert client.get("/v1/captions", params={"text": "zeppelin"}).json() == {"captions": []}


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("GET", "/v1/search", "POST"),
        ("HEAD", "/v1/evaluate", "POST"),
        ("DELETE", "/v1/releases/r1", "GET, HEAD"),
        ("PUT", "/v1/items/delete", "GET, HEAD, POST"),
        ("PATCH", "/v1", "GET, HEAD"),
        ("POST", "/healthz", "GET, HEAD"),
        ("OPTIONS", "/v1/search", "POST"),
        ("TRACE", "/v1/releases/r1", "GET, HEAD"),
    ],
)
def test_a_path_asked_in_a_way_that_it_does_not_know_names_the_ways(
    client: httpx.Client, method: str, path: str, allowed: str
) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, allowed)
    if method != "HEAD":
        assert answer.json() == {
            "error": f"{path} is asked by {allowed.replace(', ', ' or ')}, not by {method}.",
            "code": "wrong_method",
        }


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("OPTIONS", "/v1/nothing", 404),
        ("TRACE", "/v1/nothing", 404),
        ("GET", "/v1/jobs/j99", 404),
        ("GET", "/v1/jobs/%00", 404),
        ("GET", "/v1/chunks/zz", 404),
        ("GET", "/v1/chunks/zz/report.csv", 404),
    ],
)
def test_what_is_not_there_is_404_with_a_sentence(
    client: httpx.Client, method: str, path: str, status: int
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert set(answer.json()) == {"error", "code"}


def test_version_says_which_program_this_is(client: httpx.Client) -> None:
    assert client.get("/version").json()["name"] == "perennial"


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (UnknownChunk("There is none."), 404, "unknown_chunk"),
        (UpdateRunning("Wait."), 409, "update_running"),
        (ParentMoved("Again."), 409, "parent_moved"),
        (BadUpload("zip_damaged", "Damaged."), 422, "zip_damaged"),
        (UnknownLanguage("Which?"), 422, "unknown_language"),
        (UnknownStrategy("Which?"), 422, "unknown_strategy"),
        (NothingToLearn("Nothing."), 422, "nothing_to_learn"),
        (TooBusy("Later."), 503, "too_busy"),
        (CatalogHeld(), 503, "catalog_held"),
        (NoSpace("Full."), 507, "no_space"),
        (StoreFull("Full."), 507, "store_full"),
        (GenerationDamaged("Damaged."), 500, "generation_damaged"),
        (UsageProblem("No."), 400, "usage_problem"),
    ],
)
def test_each_error_has_its_status_code_and_sentence(error: Exception, status: int, code: str) -> None:
    trouble = trouble_of(error)
    assert (trouble.status, trouble.code, trouble.sentence) == (status, code, str(error))


def test_a_rush_of_queries_is_refused_beyond_what_can_wait(tmp_path: Path) -> None:
    with Workspace.open(make_home(tmp_path)) as workspace:
        serving = Serving(workspace)
        serving.refresh()
        desk, boat = Desk(serving, ANYONE), SearchRequest(text="a red boat")
        with full(serving.searching), pytest.raises(TooBusy, match="few seconds"):
            desk.search(boat)
        assert desk.search(boat).hits


def test_a_disk_that_fills_while_an_upload_is_written_down_is_said_as_such() -> None:
    app = FastAPI()
    _handle_errors(app)
    raised = HTTPException(400, "There was an error parsing the body")
    raised.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    request = Request({"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": []})

    answer: Any = asyncio.run(app.exception_handlers[HTTPException](request, raised))  # type: ignore[arg-type]

    assert (answer.status_code, json.loads(answer.body)["code"]) == (507, "no_space")
