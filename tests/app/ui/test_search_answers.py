"""Claims about the route that the Search tab asks for its pictures."""

from __future__ import annotations

import base64
import csv
import html
import io
import re
import zipfile
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.ui.search_answers import AT_ONCE
from tests.app.server.served import Served, make_home, served
from tests.app.server.test_roles import PROXY
from tests.app.ui.album import PICTURES, make_album

ALL = PICTURES + 10
NAMES = re.compile(r"picture \d+\.jpg")


@pytest.fixture
def client(album: Served) -> Iterator[httpx.Client]:
    with album.client() as client:
        yield client


def _page(client: httpx.Client, address: str = "", language: str = "en", **wanted: Any) -> str:
    answer = client.post(
        "/pictures", json={"address": address, **wanted}, headers={"Accept-Language": language}
    )
    assert answer.status_code == httpx.codes.OK, answer.text
    return html.unescape(answer.text)


def _ids(page: str) -> list[str]:
    return re.findall(r'data-id="(\w+)"', page)


def _data(page: str, name: str) -> str:
    found = re.search(f'data-{name}="([^"]*)"', page)
    assert found is not None
    return found[1]


def test_without_an_address_come_the_newest_pictures_page_by_page(
    album: Served, client: httpx.Client
) -> None:
    page = _page(client)
    assert f"{ALL} pictures" in page
    seen = _ids(page)
    assert len(seen) == AT_ONCE
    while cursor := _data(page, "next"):
        page = _page(client, _data(page, "address"), cursor=cursor)
        assert 'class="said"' not in page
        seen += _ids(page)
    assert seen == album.serving.workspace.catalog.gallery_ids()[::-1]


def test_the_pages_of_a_search_together_are_the_whole(client: httpx.Client) -> None:
    # What no menu has is left out of the first page, and so of the others.
    page = _page(client, "?text=clouds&chunks=gone&dedup=1")
    assert "left out: gone" in page
    seen = _ids(page)
    while cursor := _data(page, "next"):
        page = _page(client, _data(page, "address"), cursor=cursor)
        seen += _ids(page)
    whole = client.post("/v1/search", json={"text": "clouds", "k": ALL, "dedup": True}).json()["hits"]
    assert seen == [hit["id"] for hit in whole]


def test_other_spellings_of_filters_narrow_the_search_as_over_rest(
    album: Served, client: httpx.Client
) -> None:
    (*_, chunk) = album.serving.workspace.catalog.chunks()
    asked: list[dict[str, list[str]]] = [{"chunks": [chunk.name]}, {"chunks": [chunk.id[:8].upper()]}]
    asked += [{"languages": ["EN"]}, {"languages": ["deu"]}, {"languages": ["en-GB"]}]
    for filters in asked:
        ((name, (value,)),) = filters.items()
        page = _page(client, f"?text=clouds&{name}={value}")
        over_rest = client.post("/v1/search", json={"text": "clouds", "k": ALL, **filters}).json()
        assert int(_data(page, "all")) == over_rest["searched"] < ALL, filters
        assert "left out" not in page


def test_a_search_does_not_keep_the_order_of_what_was_browsed(client: httpx.Client) -> None:
    assert _ids(_page(client, "?text=clouds&sort=taken")) == _ids(_page(client, "?text=clouds"))
    assert len(_ids(_page(client, "?sort=taken&mode=hybrid&rerank=1&translation=boat"))) == AT_ONCE


def test_a_dropped_picture_finds_itself_and_captions(album: Served, client: httpx.Client) -> None:
    (wanted, *_) = album.serving.workspace.catalog.gallery_ids()
    sent = base64.b64encode(album.serving.workspace.blobs.original(wanted)).decode()
    page = _page(client, pictures=[f"data:image/png;base64,{sent}"])
    assert _ids(page)[0] == wanted
    assert "Captions that fit" in page
    assert "data-query" not in page  # it is not kept, so a thumb would say nothing
    alike = _page(client, f"?items={wanted}")
    assert wanted not in _ids(alike)
    both = _page(client, "?text=a+red+boat", pictures=[sent])
    assert _ids(both) != _ids(page)


def test_what_is_refused_is_said_in_the_language_of_the_browser(client: httpx.Client) -> None:
    for language, says in (("en", "The weight 999 at character 1"), ("de", "Alle Bilder zeigen")):
        answer = client.post(
            "/pictures", json={"address": "?text=999:boat"}, headers={"Accept-Language": language}
        )
        assert answer.status_code == httpx.codes.BAD_REQUEST
        assert says in html.unescape(answer.text)
        assert 'class="answer"' in answer.text


def test_where_nothing_fits_the_filters_can_be_cleared(client: httpx.Client) -> None:
    page = _page(client, "?text=boat&until=2020-01-01")
    assert _ids(page) == []
    assert 'href="?text=boat">Clear the filters' in page


def test_what_is_shown_is_taken_away_as_a_file(client: httpx.Client) -> None:
    shown = _ids(_page(client, "?text=clouds"))
    wanted = {"address": "?text=clouds", "shown": 7}
    table = client.post("/pictures", json={**wanted, "file": "csv"})
    assert table.headers["content-disposition"] == 'attachment; filename="results.csv"'
    rows = csv.DictReader(io.StringIO(table.content.decode("utf-8-sig")))
    assert [row["id"] for row in rows] == shown[:7]
    packed = zipfile.ZipFile(io.BytesIO(client.post("/pictures", json={**wanted, "file": "zip"}).content))
    assert [name[5:17] for name in packed.namelist()[1:]] == [one[:12] for one in shown[:7]]
    gone = client.post("/pictures", json={**wanted, "file": "csv", "release": "r99"})
    assert (gone.status_code, "r99" in gone.text) == (404, True)  # another release's pictures are no answer
    browsed = client.post("/pictures", json={"file": "csv", "shown": 3})
    assert len(browsed.text.splitlines()) >= 4


def test_paths_name_pictures_only_for_those_who_may_know_them(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    settings = make_album(tmp_path_factory.mktemp("places")).model_copy(update=PROXY)
    with served(settings, with_pages=True) as running:
        with running.client(headers={"X-Forwarded-User": "sam"}) as client:
            assert not NAMES.findall(_page(client))
        with running.client(headers={"X-Forwarded-User": "ada@example.org"}) as client:
            assert len(NAMES.findall(_page(client))) > 5
        with running.client() as client:
            assert client.post("/pictures", json={}).status_code == httpx.codes.UNAUTHORIZED


def test_strangers_fields_are_refused(client: httpx.Client) -> None:
    assert client.post("/pictures", json={"nonsense": 1}).status_code == httpx.codes.UNPROCESSABLE_ENTITY
    assert client.get("/pictures").status_code != httpx.codes.OK


def test_an_empty_home_says_so(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = make_home(tmp_path_factory.mktemp("empty"))
    with served(settings, with_pages=True) as running, running.client() as client:
        chunk = running.serving.workspace.catalog.chunks()[0].id
        assert client.post(f"/v1/chunks/{chunk}/withdraw", json={"why": "tests"}).is_success
        page = _page(client)
        assert "No pictures yet" in page
        assert 'data-drop="here"' in page


def test_a_long_query_in_other_letters_is_asked_whole_on_every_page(client: httpx.Client) -> None:
    page = _page(client, f"?text={'船' * 450}&dedup=1")
    assert _data(page, "query") == "船" * 450
    later = _page(client, _data(page, "address"), cursor=_data(page, "next"))
    assert _data(later, "query") == "船" * 450
    refused = client.post("/pictures", json={"address": f"?text={'船' * 2000}"})
    assert "too long for an address" in refused.text
