"""Claims about clip-retrieval's routes: its own client finds the same pictures as REST does."""

from __future__ import annotations

import base64
import importlib.util
import io
import json
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from PIL import Image

from tests.app.server.served import PICTURES, Served

# `make` puts the package there: it asks for numpy below 2, so it cannot be installed beside us.
THEIR_CLIENT = Path(sys.prefix) / "clip-retrieval" / "clip_retrieval" / "clip_client.py"


def _sent(**asked: Any) -> bytes:
    """What ClipClient 2.45 sends: every field, and no word that it is JSON."""
    fields = {
        "text": None,
        "image": None,
        "image_url": None,
        "embedding_input": None,
        "deduplicate": True,
        "use_safety_model": True,
        "use_violence_detector": True,
        "indice_name": "perennial",
        "use_mclip": False,
        "aesthetic_score": 9,
        "aesthetic_weight": 0.5,
        "modality": "image",
        "num_images": 40,
        "num_result_ids": 40,
    }
    return json.dumps(fields | asked).encode()


def _asked(client: httpx.Client, **asked: Any) -> list[dict[str, Any]]:
    answer = client.post("/knn-service", content=_sent(**asked))
    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert isinstance(found, list)
    return found


def test_a_text_finds_what_rest_finds(client: httpx.Client) -> None:
    hits = client.post("/v1/search", json={"text": "a red boat", "k": 40}).json()["hits"]
    found = _asked(client, text="a red boat", deduplicate=False)
    assert [one["sha256"] for one in found] == [hit["id"] for hit in hits]
    assert [one["similarity"] for one in found] == pytest.approx([hit["score"] for hit in hits])
    assert found[0]["caption"] == hits[0]["captions"][0]["text"]
    picture = httpx.get(found[0]["url"])
    assert picture.headers["content-type"] == "image/webp"


def test_a_picture_and_an_embedding_find_themselves_first(client: httpx.Client, server: Served) -> None:
    first = _asked(client, text="a red boat")[0]
    data = server.serving.workspace.blobs.original(first["sha256"])
    packed = base64.b64encode(data).decode()
    assert _asked(client, image=packed)[0]["id"] == first["id"]
    snapshot = server.serving.snapshot()
    with Image.open(io.BytesIO(data)) as picture:
        vector = snapshot.encoder.encode_images([picture.convert("RGB")])[0]
    nearest = _asked(client, embedding_input=[float(value) for value in vector])[0]
    assert (nearest["id"], round(nearest["similarity"], 2)) == (first["id"], 1.0)


def test_text_is_taken_as_it_is_since_there_is_no_grammar(client: httpx.Client) -> None:
    assert len(_asked(client, text="2:red + ./boat.jpg - fruit")) == PICTURES


def test_only_the_first_are_described_and_the_rest_can_be_asked_for(client: httpx.Client) -> None:
    found = _asked(client, text="a red boat", num_images=2, num_result_ids=5)
    assert ["caption" in one for one in found] == [True, True, False, False, False]
    rest = [one["id"] for one in found[2:]]
    told = client.post("/metadata", json={"ids": [*rest, 7], "indice_name": "perennial"}).json()
    assert [one["id"] for one in told] == rest
    assert all(one["metadata"]["url"].startswith("http") for one in told)
    assert all(number < 2**53 for number in rest)


def test_an_index_is_the_live_release_or_any_by_name(client: httpx.Client) -> None:
    named = client.get("/indices-list").json()
    assert named[0] == "perennial"
    assert len(named) == 4
    assert _asked(client, text="boat", indice_name=named[1])
    refused = client.post("/knn-service", content=_sent(text="boat", indice_name="laion5B"))
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown_release")


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"[]",
        b'"x"',
        _sent(),
        _sent(image_url="http://169.254.169.254/x.jpg"),
        _sent(image="no base64!"),
        _sent(text="boat", modality="text"),
        _sent(text="boat", num_images=-1),
        _sent(embedding_input=[1.0, 2.0]),
        _sent(embedding_input=["x"]),
        b'{"embedding_input": [NaN]}',
        b'{"text": "\\ud800"}',
        b"[" * 20_000,
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(client: httpx.Client, content: bytes) -> None:
    answer = client.post("/knn-service", content=content)
    assert 400 <= answer.status_code < 500, answer.text
    assert answer.json()["error"]


@pytest.mark.skipif(not THEIR_CLIENT.exists(), reason=f"{THEIR_CLIENT} is missing; `make test` installs it")
def test_clip_retrievals_own_client_works(server: Served, client: httpx.Client, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("clip_client", THEIR_CLIENT)
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(package)
    theirs = package.ClipClient(url=f"{server.url}/knn-service", indice_name="perennial", num_images=3)
    found = theirs.query(text="a red boat")
    ours = _asked(client, text="a red boat", num_images=3, num_result_ids=3)
    assert [one["id"] for one in found] == [one["id"] for one in ours]
    file = tmp_path / "picture.webp"
    file.write_bytes(httpx.get(found[0]["url"]).content)
    assert theirs.query(image=str(file))[0]["id"] == found[0]["id"]
