"""Claims about vectors over REST: those that a search uses, a status each, and which release they are of."""

from __future__ import annotations

import base64
import io
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.app.server.served import Served


def test_a_vector_that_was_given_finds_what_its_text_finds(client: httpx.Client) -> None:
    text = "zwei rote Boote"
    said = client.post("/v1/embed", json={"texts": [text, "two boats"], "language": "en"}).json()
    assert [len(one["embedding"]) for one in said["results"]] == [said["dim"]] * 2
    assert np.linalg.norm(said["results"][0]["embedding"]) == pytest.approx(1, abs=1e-5)
    by_text = client.post("/v1/search", json={"text": text, "language": "en", "k": 5}).json()
    by_vector = client.post("/v1/search", json={"embedding": said["results"][0]["embedding"], "k": 5}).json()
    assert [hit["id"] for hit in by_vector["hits"]] == [hit["id"] for hit in by_text["hits"]]
    assert said["release"] == by_text["release"]
    scores = [[hit["score"] for hit in found["hits"]] for found in (by_vector, by_text)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)


def test_a_picture_has_the_vector_that_the_index_has_for_it(server: Served, client: httpx.Client) -> None:
    snapshot = server.serving.snapshot()
    image_id = snapshot.generation.ids[0]
    data = base64.b64encode(server.serving.workspace.blobs.original(image_id)).decode()
    (found,) = client.post("/v1/embed", json={"images": [data]}).json()["results"]
    assert found["language"] is None
    with Image.open(io.BytesIO(base64.b64decode(data))) as original:
        assert (found["width"], found["height"]) == original.size
    cosine = float(snapshot.generation.vectors([image_id])[0] @ np.asarray(found["embedding"], np.float32))
    assert cosine == pytest.approx(1, abs=1e-3)


def test_one_that_cannot_be_embedded_keeps_none_of_the_others_from_it(client: httpx.Client) -> None:
    asked = {"texts": ["a boat", "", "x" * 600, "a - b"], "images": ["no picture"], "release": "r2"}
    said = client.post("/v1/embed", json=asked).json()
    assert [one["status"] for one in said["results"]] == [200, 400, 400, 200, 400]
    assert said["release"].startswith("r2")
    assert all(one["error"] for one in said["results"] if one["status"] == 400)
    assert said["results"][0]["language"] == "en"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"texts": ["x"] * 40, "images": ["x"] * 40}, 400),
        ({"texts": ["x"] * 65}, 422),
        ({"text": "x"}, 422),
        ({"texts": ["x"], "release": "r99"}, 404),
    ],
)
def test_what_cannot_be_asked_is_refused(client: httpx.Client, body: dict[str, Any], status: int) -> None:
    answer = client.post("/v1/embed", json=body)
    assert (answer.status_code, bool(answer.json()["error"])) == (status, True)
