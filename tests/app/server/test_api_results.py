"""Claims about an answer as a file: it holds what the search found, runs nothing in a spreadsheet, hides nothing."""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import lmdb
import pytest
from PIL import Image

from app.desk.errors import BadQuery
from app.home.workspace import Workspace
from app.query import results
from ingest.intake import IntakeOptions, ingest_source
from tests.app.server.served import Served, full, make_home, served
from tests.app.server.test_roles import PROXY


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(make_home(tmp_path_factory.mktemp("home")).model_copy(update=PROXY)) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    """Somebody who may search and nothing else."""
    with server.client(headers={"X-Forwarded-User": "sam"}) as client:
        yield client


ASKED: dict[str, Any] = {"text": "a red boat", "k": 3, "offset": 2}


def _rows(table: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.decode("utf-8-sig"))))


def test_a_table_has_the_hits_of_the_search_with_ranks_and_captions(client: httpx.Client) -> None:
    hits = client.post("/v1/search", json=ASKED).json()["hits"]
    answer = client.post("/v1/search.csv", json=ASKED)
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="results.csv"'
    rows = _rows(answer.content)
    assert [(row["rank"], row["id"]) for row in rows] == [(str(hit["rank"]), hit["id"]) for hit in hits]
    assert [row["rank"] for row in rows] == ["3", "4", "5"]
    assert {line[:4] for row in rows for line in row["captions"].splitlines()} == {"de: ", "en: "}
    assert float(rows[0]["score"]) == pytest.approx(hits[0]["score"], abs=1e-6)


def test_a_zip_has_the_pictures_as_they_are_shown_and_the_table(client: httpx.Client) -> None:
    hits = client.post("/v1/search", json=ASKED).json()["hits"]
    archive = zipfile.ZipFile(io.BytesIO(client.post("/v1/search.zip", json=ASKED).content))
    names = [f"{hit['rank']:04}-{hit['id'][:12]}.webp" for hit in hits]
    assert archive.namelist() == ["results.csv", *names]
    assert [row["id"] for row in _rows(archive.read("results.csv"))] == [hit["id"] for hit in hits]
    for hit, name in zip(hits, names, strict=True):
        assert archive.read(name) == client.get(f"/v1/images/{hit['id']}").content


def test_what_cannot_be_searched_is_no_file(client: httpx.Client) -> None:
    for path in ("/v1/search.csv", "/v1/search.zip"):
        assert client.post(path, json={"text": " "}).status_code == 400
        assert "langauge" in client.post(path, json={"text": "a", "langauge": "de"}).text
        assert client.post(path, json={"text": "a", "offset": 5001}).status_code == 422
    both = client.post("/v1/search", json={"text": "a", "k": 2}).json()["next"]
    assert "Leave one" in client.post("/v1/search", json={"text": "a", "cursor": both, "offset": 2}).text


def test_no_cell_of_an_upload_is_run_by_a_spreadsheet(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    folder = tmp_path / "upload"
    folder.mkdir()
    Image.effect_noise((64, 64), 90).save(folder / "a.png")
    folder.joinpath("captions.csv").write_text(
        'image,caption,domain\na.png,"=HYPERLINK(""http://evil"")",photo\n', encoding="utf-8"
    )
    with Workspace.open(settings) as workspace:
        ingest_source(
            folder,
            catalog=workspace.catalog,
            blobs=workspace.blobs,
            options=IntakeOptions(language="en"),
        )
        new = workspace.catalog.gallery_ids()[-1:]
        table = results.table(workspace, [(new[0], -0.5)], places=True)
    cells = next(iter(csv.reader(io.StringIO(table.decode("utf-8-sig").splitlines()[1]))))
    assert "HYPERLINK" in table.decode()
    # The score is a number of ours and may begin with a minus; nothing else does.
    assert [cell for n, cell in enumerate(cells) if n != 1 and cell[:1] in "=+-@\t\r" and cell] == []


def test_a_damaged_picture_leaves_the_others_and_a_text_that_says_so(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    with Workspace.open(settings) as workspace:
        ids = workspace.catalog.gallery_ids()[:2]
    with lmdb.open(str(settings.home / "blobs.lmdb"), max_dbs=16, map_size=1 << 30) as raw:
        data = raw.open_db(b"data", create=False)
        with raw.begin(write=True) as transaction:
            key = b"i" + bytes.fromhex(ids[0])
            value = bytearray(transaction.get(key, db=data) or b"")
            value[-1] ^= 1
            transaction.put(key, bytes(value), db=data)
    with Workspace.open(settings) as workspace:
        archive = zipfile.ZipFile(
            io.BytesIO(results.archive(workspace, [(ids[0], 0.9), (ids[1], 0.8)], places=True))
        )
    assert archive.namelist() == ["results.csv", f"0001-{ids[0][:12]}.txt", f"0002-{ids[1][:12]}.webp"]
    assert "checksum" in archive.read(archive.namelist()[1]).decode()


def test_a_zip_refuses_more_pictures_than_it_holds(server: Served) -> None:
    with pytest.raises(BadQuery, match="up to 100 pictures, and these are 101"):
        results.archive(server.serving.workspace, [("0" * 64, 0.0)] * 101, places=True)


def test_a_rush_of_zips_is_refused_and_searches_go_on(server: Served, client: httpx.Client) -> None:
    with full(server.serving.packing):
        refused = client.post("/v1/search.zip", json=ASKED)
        assert (refused.status_code, refused.json()["code"]) == (503, "too_busy")
        assert client.post("/v1/search", json=ASKED).status_code == 200
    assert client.post("/v1/search.zip", json=ASKED).status_code == 200


# Where pictures lie, and their files: of who may know

ADMIN = {"X-Forwarded-User": "ada@example.org"}


def _first(client: httpx.Client) -> dict[str, Any]:
    hit: dict[str, Any] = client.post("/v1/search", json={"text": "a red boat", "k": 1}).json()["hits"][0]
    return hit


def test_who_may_only_search_is_told_no_place_and_gets_no_file(client: httpx.Client) -> None:
    hit = _first(client)
    item = client.get(f"/v1/items/{hit['id']}").json()
    refused = client.get(f"/v1/images/{hit['id']}/original")
    assert (hit["sources"], item["sources"]) == ([], [])
    assert (item["latitude"], item["longitude"]) == (None, None)
    assert _rows(client.post("/v1/search.csv", json=ASKED).content)[0]["seen at"] == ""
    assert (refused.status_code, "places_for" in refused.json()["error"]) == (403, True)


def test_an_admin_is_told_each_place_in_hits_items_and_tables(server: Served) -> None:
    with server.client(headers=ADMIN) as admin:
        hit = _first(admin)
        item = admin.get(f"/v1/items/{hit['id']}").json()
        row = _rows(admin.post("/v1/search.csv", json={"text": "a red boat", "k": 1}).content)[0]
    (seen,) = hit["sources"]
    assert seen["kind"] == "member"
    assert seen["path"] == f"{seen['place']}!{seen['name']}" == row["seen at"]
    assert item["sources"] == hit["sources"]


def test_a_setting_tells_searchers_too(server: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = server.serving.settings
    monkeypatch.setattr(server.serving, "settings", settings.model_copy(update={"places_for": "searcher"}))
    with server.client(headers={"X-Forwarded-User": "sam"}) as sam:
        hit = _first(sam)
        assert hit["sources"]
        assert sam.get(f"/v1/images/{hit['id']}/original").status_code == 200


@pytest.mark.parametrize(
    ("asked", "status", "part", "said"),
    [
        ("", 200, slice(None), None),
        ("bytes=0-9", 206, slice(0, 10), "bytes 0-9/{all}"),
        ("BYTES=0-9", 206, slice(0, 10), "bytes 0-9/{all}"),
        ("bytes=10-", 206, slice(10, None), "bytes 10-{last}/{all}"),
        ("bytes=-7", 206, slice(-7, None), None),
        ("bytes=5-99999999", 206, slice(5, None), "bytes 5-{last}/{all}"),
        ("bytes=99999999-", 416, None, "bytes */{all}"),
        ("bytes=-0", 416, None, "bytes */{all}"),
        ("bytes=9-5", 200, slice(None), None),
        ("bytes=-", 200, slice(None), None),
        ("bytes=0-1,3-4", 200, slice(None), None),
        ("apples=0-1", 200, slice(None), None),
        (f"bytes={'9' * 5000}-", 200, slice(None), None),
    ],
)
def test_an_original_comes_whole_or_in_the_part_that_is_asked_for(
    server: Served, asked: str, status: int, part: slice | None, said: str | None
) -> None:
    with server.client(headers=ADMIN) as admin:
        hit = _first(admin)
        data = server.serving.workspace.blobs.original(hit["id"])
        answer = admin.get(f"/v1/images/{hit['id']}/original", headers={"Range": asked} if asked else {})
    assert answer.status_code == status
    assert answer.content == (b"" if part is None else data[part])
    if said is not None:
        assert answer.headers["content-range"] == said.format(all=len(data), last=len(data) - 1)
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-disposition"].startswith("inline; filename*=UTF-8''")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_head_is_answered_like_get_without_the_body(server: Served) -> None:
    with server.client(headers=ADMIN) as admin:
        image = f"/v1/images/{_first(admin)['id']}"
        for path in (f"{image}/original", f"{image}/thumbnail", "/readyz", "/version", "/v1/nothing", "/"):
            asked, head = admin.get(path), admin.head(path)
            assert (head.status_code, head.content) == (asked.status_code, b""), path
            for name in ("content-type", "content-length", "etag"):
                assert head.headers.get(name) == asked.headers.get(name), (path, name)
        assert admin.head(f"{image}/original", headers={"Range": "bytes=0-9"}).status_code == 200
        assert 'method="HEAD"' in admin.get("/metrics").text


def test_who_may_only_search_filters_by_nothing_that_tells_of_places(
    client: httpx.Client, server: Served
) -> None:
    for path in ("/v1/search", "/v1/facets", "/v1/search.csv"):
        refused = client.post(path, json={"text": "a", "where": "folder = x OR taken = 2024"})
        assert (refused.status_code, "filter by folder" in refused.json()["error"]) == (403, True)
        assert client.post(path, json={"text": "a", "where": "width > 10"}).status_code == 200
        mistaken = client.post(path, json={"text": "a", "where": "width >"})
        assert (mistaken.status_code, "ends too early" in mistaken.json()["error"]) == (422, True)
    assert client.post("/v1/facets", json={}).json()["folders"] == []


def test_facets_are_those_of_what_the_filters_leave(client: httpx.Client) -> None:
    every = client.post("/v1/facets", json={}).json()
    none = client.post("/v1/facets", json={"where": "width > 100000"}).json()
    assert [one["value"] for one in every["domains"]] == ["scenes"]
    assert none["domains"] == []
