"""Where pictures were seen: each place is kept, follows its file, and is marked when it is gone."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ingest.sources import PictureSource
from tests.ingest.conftest import Place
from tests.ingest.material import picture

SOME = 1_700_000_000_000_000_000


def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    (folder / "sub").mkdir(parents=True)
    for name, seed in (("a.png", 1), ("sub/b.png", 2), ("sub/copy of a.png", 1)):
        file = folder / name
        file.write_bytes(picture(seed))
        os.utime(file, ns=(SOME, SOME))
    return folder


def _all(place: Place) -> list[PictureSource]:
    found = place.catalog.sources.of(place.catalog.gallery_ids())
    return sorted((one for every in found.values() for one in every), key=lambda one: (one.place, one.name))


def test_a_picture_has_every_file_it_was_seen_in(place: Place, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    place.ingest(folder)

    a, b, copy = _all(place)

    assert [one.place for one in (a, b, copy)] == [
        str(folder / name) for name in ("a.png", "sub/b.png", "sub/copy of a.png")
    ]
    assert a.image_id == copy.image_id != b.image_id
    assert (a.kind, a.name, a.size, a.modified) == ("file", "", len(picture(1)), SOME)
    assert a.modified_at == "2023-11-14T22:13:20+00:00"


def test_a_member_of_an_archive_is_named_in_it(place: Place, tmp_path: Path) -> None:
    archive = tmp_path / "holiday.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("beach/a.png", picture(1))
    place.ingest(archive)

    (one,) = _all(place)

    assert (one.kind, one.place, one.name, one.path) == (
        "member",
        str(archive),
        "beach/a.png",
        f"{archive}!beach/a.png",
    )


def test_a_page_shows_the_places_of_its_pictures_as_the_catalog_keeps_them(
    place: Place, tmp_path: Path
) -> None:
    folder = _folder(tmp_path)
    place.ingest(folder)
    (folder / "a.png").unlink()
    place.ingest(folder)
    ids = place.catalog.gallery_ids()

    shown = place.catalog.shown(ids)

    assert {image_id: one.sources for image_id, one in shown.items()} == place.catalog.sources.of(ids)
    assert any(one.gone for every in shown.values() for one in every.sources)
    assert all(one.sources == () for one in place.catalog.shown(ids, places=False).values())


def test_an_archive_in_a_folder_is_the_place_of_its_members(place: Place, tmp_path: Path) -> None:
    import tarfile

    folder = tmp_path / "shards"
    folder.mkdir()
    (tmp_path / "a.png").write_bytes(picture(1))
    with tarfile.open(folder / "00.tar", "w") as file:
        file.add(tmp_path / "a.png", "x/a.png")
    place.ingest(folder)

    (one,) = _all(place)

    assert (one.kind, one.place, one.name) == ("member", str(folder / "00.tar"), "x/a.png")


def test_a_row_of_a_table_that_holds_pictures(place: Place, tmp_path: Path) -> None:
    table = pa.table({"image": [{"bytes": picture(1)}], "caption": ["a red boat"], "sku": ["b-17"]})
    pq.write_table(table, tmp_path / "boats.parquet")
    place.ingest(tmp_path / "boats.parquet")

    (one,) = _all(place)

    assert (one.kind, one.place, one.name) == ("row", str(tmp_path / "boats.parquet"), "0/image")
    assert one.fields == {"sku": "b-17"}


def test_of_an_upload_the_name_is_kept_and_no_path(place: Place, tmp_path: Path) -> None:
    archive = tmp_path / "3f9a.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("beach/a.png", picture(1))
    place.ingest(archive, pictures_beside=False, name="holiday.zip")

    (one,) = _all(place)

    assert (one.kind, one.place, one.name, one.size) == ("upload", "holiday.zip", "beach/a.png", 0)


def test_a_table_gives_its_own_id_and_fields(place: Place, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    lines = "file_name,text,sku,brand,price\na.png,a red boat,b-17,Acme,12.5\nsub/b.png,a blue boat,b-18,,\n"
    (folder / "boats.csv").write_text(lines)
    place.ingest(folder, mapping={"sku": "key"})

    a, b, _ = _all(place)

    assert (a.key, dict(a.fields)) == ("b-17", {"brand": "Acme", "price": "12.5"})
    assert (b.key, dict(b.fields)) == ("b-18", {})


def test_a_number_that_is_too_large_says_nothing_and_no_filter_fails_of_it(
    place: Place, tmp_path: Path
) -> None:
    folder = _folder(tmp_path)
    lines = '{"image": "a.png", "n": 1e999, "m": -1e999}\n{"image": "sub/b.png", "n": 3}\n'
    (folder / "boats.jsonl").write_text(lines)
    place.ingest(folder)

    a, b, _ = _all(place)

    assert (dict(a.fields), dict(b.fields)) == ({}, {"n": 3})
    assert place.catalog.ids_where(where="meta.n > 2") == {b.image_id}


def test_a_file_beside_a_picture_gives_fields_without_a_caption(place: Place, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "a.json").write_text(json.dumps({"id": 17, "rating": 5, "tags": ["x"]}))
    place.ingest(folder)

    a, *_ = _all(place)

    assert (a.key, dict(a.fields)) == ("17", {"rating": 5})


def test_a_table_without_captions_brings_pictures_and_fields(place: Place, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    (folder / "boats.csv").write_text("file_name,brand\na.png,Acme\n")

    report = place.ingest(folder)

    assert (report.new_images, report.rejected) == (2, 0)
    assert dict(_all(place)[0].fields) == {"brand": "Acme"}


def test_a_moved_file_is_recorded_anew(place: Place, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    place.ingest(folder)
    shutil.move(folder / "sub/b.png", folder / "c.png")
    place.ingest(folder)

    assert [Path(one.place).name for one in _all(place)] == ["a.png", "c.png", "b.png", "copy of a.png"]


def test_a_file_with_other_bytes_is_no_longer_a_place_of_the_old_picture(
    place: Place, tmp_path: Path
) -> None:
    folder = _folder(tmp_path)
    place.ingest(folder)
    old = next(one.image_id for one in _all(place) if one.place.endswith("b.png"))
    (folder / "sub/b.png").write_bytes(picture(3))
    place.ingest(folder)

    assert place.catalog.sources.of([old]) == {}
    assert old not in place.catalog.gallery_ids()


def test_a_picture_leaves_the_gallery_with_its_last_place_and_comes_back(
    place: Place, tmp_path: Path
) -> None:
    folder = _folder(tmp_path)
    place.ingest(folder)
    a, b, copy = _all(place)

    assert place.catalog.sources.set_gone([a]) == []
    assert set(place.catalog.gallery_ids()) == {a.image_id, b.image_id}
    assert place.catalog.sources.set_gone([copy]) == [a.image_id]
    assert place.catalog.gallery_ids() == [b.image_id]
    assert all(one.gone for one in place.catalog.sources.of([a.image_id])[a.image_id])

    place.ingest(folder)

    assert set(place.catalog.gallery_ids()) == {a.image_id, b.image_id}
    assert not any(one.gone for one in _all(place))


def test_a_name_that_is_no_text_does_no_harm(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff.png")).write_bytes(picture(1))
    place.ingest(folder)

    (one,) = _all(place)

    assert one.place == str(folder / "?.png")


def test_a_picture_taken_out_by_a_person_gets_no_place(place: Place, tmp_path: Path) -> None:
    folder = _folder(tmp_path)
    place.ingest(folder)
    out = _all(place)[1].image_id
    place.catalog.withheld.take_out([out], by="ada", why="she asked")
    (folder / "sub/b.png").rename(folder / "elsewhere.png")
    place.ingest(folder)

    assert [Path(one.place).name for one in place.catalog.sources.of([out])[out]] == ["b.png"]
