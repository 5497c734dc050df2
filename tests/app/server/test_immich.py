"""Claims about Immich's smart search: what its server sends, as it sends it, and what it reads of the answer."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from PIL import ExifTags, Image

from app.desk.errors import UsageProblem
from app.home.settings import load_settings
from app.server.security import Passwords, password_line
from tests.app.server.served import Served, make_home, served

MODEL = "ViT-B-32__openai"
ADA = ("ada", "nine patient herons")
VISUAL = {"clip": {"visual": {"modelName": MODEL}}}
FACES = {
    "facial-recognition": {
        "detection": {"modelName": "buffalo_l", "options": {"minScore": 0.7}},
        "recognition": {"modelName": "buffalo_l"},
    }
}


def textual(language: str | None = "en") -> Any:
    return {"clip": {"textual": {"modelName": MODEL, "options": {"language": language}}}}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with accounts, which an Immich of this machine may ask."""
    with _locked(
        tmp_path_factory.mktemp("locked"), immich_from=[ip_network("10.0.0.0/8"), ip_network("127.0.0.1")]
    ) as running:
        yield running


def _locked(folder: Path, **differs: Any) -> Any:
    accounts = folder / "passwords"
    accounts.write_text(password_line(ADA[0], "admin", ADA[1]) + "\n", encoding="utf-8")
    accounts.chmod(0o600)
    return served(make_home(folder, **differs), Passwords.load(accounts))


def picture() -> bytes:
    data = io.BytesIO()
    rough = np.random.default_rng(3).integers(0, 256, (9, 12, 3), dtype=np.uint8)
    Image.fromarray(rough).resize((120, 90)).save(data, "JPEG")
    return data.getvalue()


def ask(client: httpx.Client, entries: Any, **sent: Any) -> httpx.Response:
    """A form as Immich's server sends it: JSON in `entries`, a file without a name as `image`, or `text`."""
    said = entries if isinstance(entries, bytes) else json.dumps(entries)
    files: dict[str, Any] = {"entries": (None, said)}
    if "image" in sent:
        files["image"] = ("blob", sent["image"], "application/octet-stream")
    if "text" in sent:
        files["text"] = (None, sent["text"])
    return client.post("/predict", files=files)


def vector_of(answer: httpx.Response) -> Any:
    """The vector without the zeros that make it as long as one of a model that Immich knows."""
    assert answer.status_code == 200, answer.text
    vector = json.loads(answer.json()["clip"])
    assert len(vector) == 512
    assert not any(vector[192:])
    return vector[:192]


def embedded(client: httpx.Client, text: str, **asked: Any) -> Any:
    known = client.post("/v1/embed", json={"texts": [text], **asked}).json()
    return known["results"][0]["embedding"]


def test_it_is_there(client: httpx.Client) -> None:
    answer = client.get("/ping")
    assert (answer.status_code, answer.text) == (200, "pong")
    assert answer.headers["content-type"].startswith("text/plain")


def test_a_text_gets_its_vector_as_the_text_of_a_list(client: httpx.Client) -> None:
    answer = ask(client, textual(), text="a red boat")
    assert answer.json().keys() == {"clip"}
    assert vector_of(answer) == embedded(client, "a red boat", language="en")


def test_a_picture_gets_its_vector_and_its_size(client: httpx.Client) -> None:
    answer = ask(client, VISUAL, image=picture())
    assert answer.json().keys() == {"clip", "imageHeight", "imageWidth"}
    assert (answer.json()["imageWidth"], answer.json()["imageHeight"]) == (120, 90)
    vector = vector_of(answer)
    assert len(vector) == len(vector_of(ask(client, textual(), text="boat")))
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-5)


def test_a_pictures_size_is_that_of_what_was_decoded(client: httpx.Client) -> None:
    turned, tags = io.BytesIO(), Image.Exif()
    tags[ExifTags.Base.Orientation] = 6
    with Image.open(io.BytesIO(picture())) as drawn:
        drawn.convert("RGB").save(turned, "TIFF", exif=tags)
    answer = ask(client, VISUAL, image=turned.getvalue()).json()
    assert (answer["imageWidth"], answer["imageHeight"]) == (90, 120)


def test_a_gallery_that_immich_keeps_is_searched_as_ours_is(client: httpx.Client) -> None:
    hits = client.post("/v1/search", json={"text": "a red boat", "language": "en", "k": 10}).json()["hits"]
    files = [client.get(f"/v1/images/{hit['id']}/original").content for hit in hits]
    kept = np.array([vector_of(ask(client, VISUAL, image=data)) for data in files])
    query = np.array(vector_of(ask(client, textual(), text="a red boat")))
    assert len(hits) > 5
    assert kept @ query == pytest.approx([hit["score"] for hit in hits], abs=1e-4)


def test_the_language_of_the_interface_counts_where_a_text_may_be_in_it(tmp_path: Path) -> None:
    with served(make_home(tmp_path, immich_release="r2")) as server, server.client() as client:
        said = {text: {name: embedded(client, text, language=name, release="r2") for name in ("en", "de")}
                for text in ("arm", "ein rotes Boot auf dem See")}  # fmt: skip
        for spoken in ("de", "de_CH"):
            assert vector_of(ask(client, textual(spoken), text="arm")) == said["arm"]["de"]
        assert vector_of(ask(client, textual("en"), text="arm")) == said["arm"]["en"]
        sentence = "ein rotes Boot auf dem See"
        for other in ("en", "zh_SIMPLIFIED", None):
            assert vector_of(ask(client, textual(other), text=sentence)) == said[sentence]["de"]


def test_the_release_that_answers_can_be_named(tmp_path: Path) -> None:
    with served(make_home(tmp_path, immich_release="r2")) as server, server.client() as client:
        found = vector_of(ask(client, textual(), text="a red boat"))
        assert found == embedded(client, "a red boat", language="en", release="r2")
        assert found != embedded(client, "a red boat", language="en", release="r1")


@pytest.mark.parametrize(
    ("entries", "sent", "said"),
    [
        (FACES, {"image": picture()}, "facial-recognition was asked for. Switch it off"),
        ({"ocr": {"detection": {"modelName": "PP-OCRv5_mobile"}}}, {"image": picture()}, "ocr was asked for"),
        (VISUAL, {"text": "a boat"}, "Send `image` for clip's visual entry"),
        (VISUAL, {}, "Send `image`"),
        (VISUAL, {"image": b"no picture"}, "cannot be searched with"),
        (textual(), {"text": " "}, "nothing to look for"),
        ("clip", {"text": "a boat"}, "`entries` is no JSON such as"),
        ({"clip": {"textual": 3}}, {"text": "a boat"}, "`entries` is no JSON such as"),
        ({"clip": {"textual": {"options": "y"}}}, {"text": "a boat"}, "`entries` is no JSON such as"),
        (b"[" * 20_000, {"text": "a boat"}, "`entries` is no JSON such as"),
    ],
)
def test_what_cannot_be_answered_is_refused_where_that_service_says_it(
    client: httpx.Client, entries: Any, sent: dict[str, Any], said: str
) -> None:
    answer = ask(client, entries, **sent)
    assert answer.status_code == 400
    assert said in answer.json()["detail"]
    assert answer.json()["detail"] == answer.json()["error"]


def test_an_immich_that_cannot_sign_in_may_ask_for_vectors_and_nothing_else(locked: Served) -> None:
    with locked.client() as immich:
        assert immich.get("/ping").status_code == 200
        assert ask(immich, textual(), text="a red boat").status_code == 200
        assert immich.get("/v1/status").status_code == 401
        assert immich.post("/v1/embed", json={"texts": ["x"]}).status_code == 401
    with locked.client(auth=ADA) as ada:
        assert ada.get("/v1/status").status_code == 200


def test_from_elsewhere_the_same_needs_an_account(tmp_path: Path) -> None:
    with _locked(tmp_path, immich_from=[ip_network("10.0.0.0/8")]) as server:
        with server.client() as stranger:
            assert stranger.get("/ping").status_code == 401
            assert ask(stranger, textual(), text="a red boat").status_code == 401
        with server.client(auth=ADA) as ada:
            assert ask(ada, textual(), text="a red boat").status_code == 200


def test_what_is_no_address_is_refused_when_settings_are_read(tmp_path: Path) -> None:
    with pytest.raises(UsageProblem, match=r"immich_from.*nowhere"):
        load_settings(home=tmp_path, immich_from=["nowhere"])
