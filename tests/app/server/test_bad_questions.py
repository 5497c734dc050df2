"""What people and programs get wrong is answered over REST with a sentence and a status, and nothing is lost by it."""

from __future__ import annotations

import base64
import io
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import httpx
import numpy as np
import pytest
from PIL import Image

from tests.app.server.served import Served, make_home, served


def _base64(picture: Image.Image, kind: str) -> str:
    packed = io.BytesIO()
    picture.save(packed, kind)
    return base64.b64encode(packed.getvalue()).decode()


def _too_many_pixels() -> str:
    return _base64(Image.new("1", (15_000, 15_000)), "PNG")


def _no_numbers() -> str:
    return _base64(Image.fromarray(np.full((64, 64), np.nan, dtype=np.float32), "F"), "TIFF")


@pytest.mark.parametrize(
    ("body", "status", "says"),
    [
        ({"text": ""}, 400, "nothing to look for"),
        ({"text": "   \t\n"}, 400, "nothing to look for"),
        ({"text": "boat " * 200}, 400, "at most 500 are read. Shorten it."),
        ({"image": _no_numbers()}, 400, "cannot be searched with"),
        ({"image": _too_many_pixels()}, 400, "225 megapixels; the limit is 200"),
        ({"text": "boat", "k": 10**9}, 422, "k:"),
        ({"text": "boat", "offset": 10**9}, 422, "offset:"),
        ({"text": "boat", "domains": ["no such domain"]}, 400, "Domains here: scenes."),
        ({"text": "boat", "chunks": ["no such chunk"]}, 404, "no such chunk"),
        ({"text": "boat", "languages": ["no such language"]}, 422, "no such language"),
        ({"text": "boat", "since": "2026-02-30"}, 422, "since"),
        ({"text": "boat", "mode": "magic"}, 422, "mode"),
    ],
)
def test_a_bad_question_is_refused_with_a_sentence(
    client: httpx.Client, body: dict[str, object], status: int, says: str
) -> None:
    answer = client.post("/v1/search", json=body)
    assert (answer.status_code, set(answer.json())) == (status, {"error", "code"}), answer.text
    assert says in answer.json()["error"]
    assert client.post("/v1/search", json={"text": "a red boat", "k": 1}).status_code == 200


def test_an_embedding_without_a_length_is_refused(server: Served, client: httpx.Client) -> None:
    live = server.serving.live()
    assert live is not None
    for number in (0.0, 1e300):
        answer = client.post("/v1/search", json={"embedding": [number] * live.encoder.dim})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_query")
        assert "not finite, or is all zeros" in answer.json()["error"]


def test_500_characters_are_read_and_501_are_not(client: httpx.Client) -> None:
    statuses = [client.post("/v1/search", json={"text": "x" * n}).status_code for n in (500, 501)]
    assert statuses == [200, 400]


def test_a_page_after_a_swap_comes_from_the_release_that_answered_the_first_or_says_that_it_is_gone(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with served(make_home(tmp_path_factory.mktemp("swap"))) as running, running.client() as client:
        first = client.post("/v1/search", json={"text": "a red boat", "k": 4}).json()
        assert client.post("/v1/releases/r2/promote", json={}).status_code == 200
        second = client.post(
            "/v1/search", json={"text": "a red boat", "k": 4, "cursor": first["next"]}
        ).json()
        assert second["release"] == first["release"]
        assert not {hit["id"] for hit in first["hits"]} & {hit["id"] for hit in second["hits"]}
        forged = base64.urlsafe_b64encode(
            base64.urlsafe_b64decode(first["next"] + "==").replace(first["release"].encode(), b"r0-0000")
        )
        gone = client.post("/v1/search", json={"text": "a red boat", "k": 4, "cursor": forged.decode()})
        assert gone.status_code == 400
        assert "Search again from the first page" in gone.json()["error"]


def test_of_two_admins_who_promote_at_once_one_is_told_that_the_other_did(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with served(make_home(tmp_path_factory.mktemp("two"))) as running:
        barrier = Barrier(4)

        def promote(number: int) -> httpx.Response:
            with running.client() as client:
                barrier.wait()
                return client.post("/v1/releases/r2/promote", json={"why": f"admin {number}"})

        with ThreadPoolExecutor(4) as admins:
            answers = list(admins.map(promote, range(4)))
        refused = [answer for answer in answers if answer.status_code != 200]
        assert len(refused) == 3
        for answer in refused:
            assert answer.status_code in (400, 409), answer.text
            assert "live" in answer.json()["error"]
        (done,) = [number for number, answer in enumerate(answers) if answer.status_code == 200]
        history = running.serving.workspace.releases.history()
        assert [commit.why for commit in history] == ["tests", f"admin {done}"]


def test_a_thumbnail_that_vanished_is_missing_and_its_picture_is_still_found(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with served(make_home(tmp_path_factory.mktemp("vanished"))) as running, running.client() as client:
        hit = client.post("/v1/search", json={"text": "a red boat", "k": 1}).json()["hits"][0]
        running.serving.workspace.blobs.delete([hit["id"]])
        lost = client.get(hit["thumb_url"])
        assert (lost.status_code, set(lost.json())) == (404, {"error", "code"})
        assert hit["id"][:12] in lost.json()["error"]
        again = client.post("/v1/search", json={"text": "a red boat", "k": 1}).json()["hits"][0]
        assert again["id"] == hit["id"]
        kept = client.post("/v1/search.zip", json={"text": "a red boat", "k": 3})
        assert kept.status_code == 200, kept.text
        with zipfile.ZipFile(io.BytesIO(kept.content)) as archive:
            assert [Path(name).suffix for name in archive.namelist()] == [".csv", ".txt", ".webp", ".webp"]
            assert hit["id"][:12] in archive.read(archive.namelist()[1]).decode()
