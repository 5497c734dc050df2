"""A table in one folder and the pictures that it names in another."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from ingest.errors import BadUpload
from ingest.intake import IntakeOptions
from ingest.pair import image_id_of
from ingest.upload_zip import sendable
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import folder_of, picture, zip_of
from tests.ingest.readers.test_formats import parquet_of

NAMES = ("1.png", "deep/2.png", "deep/er/3.png")


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "photos", {name: picture(n) for n, name in enumerate(NAMES)})


def _table(tmp_path: Path, *names: str, form: str = "csv") -> Path:
    """A table that lies nowhere near the pictures it names, and has a caption of each."""
    file = tmp_path / "tables" / f"captions.{form}"
    file.parent.mkdir(exist_ok=True)
    rows = [{"image": name, "caption": f"number {n}"} for n, name in enumerate(names)]
    if form == "parquet":
        return parquet_of(file, {key: [row[key] for row in rows] for key in ("image", "caption")})
    if form == "jsonl":
        lines = [json.dumps(row) for row in rows]
    else:
        split = "\t" if form == "tsv" else ","
        lines = [f"image{split}caption", *(f"{row['image']}{split}{row['caption']}" for row in rows)]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_a_table_names_pictures_of_another_folder(
    place: Place, tmp_path: Path, photos: Path, form: str
) -> None:
    report = place.ingest(_table(tmp_path, *NAMES, form=form), pictures=photos)
    assert (report.new_pairs, report.rejected) == (3, 0)
    ids = [image_id_of(picture(n)) for n in range(3)]
    assert {pair.image_id: pair.text for pair in place.catalog.pairs()} == {
        image_id: f"number {n}" for n, image_id in enumerate(ids)
    }
    places = {one.place for every in place.catalog.sources.of(ids).values() for one in every}
    assert places == {str(photos / name) for name in NAMES}


def test_no_name_leads_out_of_the_folder_of_the_pictures(place: Place, tmp_path: Path, photos: Path) -> None:
    folder_of(tmp_path, {"secret.png": picture(9), "elsewhere/x.png": picture(9)})
    (photos / "link.png").symlink_to(tmp_path / "secret.png")
    (photos / "out").symlink_to(tmp_path / "elsewhere")
    outside = ("../secret.png", "deep/../../secret.png", f"{tmp_path}/secret.png")
    links = ("link.png", "out/x.png")
    # What lies beside the table is not meant, either.
    folder_of(tmp_path / "tables", {"beside.png": picture(8)})
    table = _table(tmp_path, *NAMES, *outside, *links, "beside.png")
    report = place.ingest(table, pictures=photos)
    assert report.new_pairs == 3
    codes = sorted(row.code for row in rows_of(report, "rejected"))
    assert codes == ["image_missing", *["image_outside"] * 3, *["special_file"] * 2]
    assert place.catalog.images([image_id_of(picture(8)), image_id_of(picture(9))]) == {}


def test_a_folder_that_is_not_there_is_named(place: Place, tmp_path: Path) -> None:
    with pytest.raises(BadUpload, match="There is no folder .*/fotos. Name the one with the pictures"):
        place.ingest(_table(tmp_path, *NAMES), pictures=tmp_path / "fotos")


def test_a_folder_that_lacks_most_of_them_is_refused_and_one_that_lacks_some_costs_lines(
    place: Place, tmp_path: Path, photos: Path
) -> None:
    lacking = [f"{n:02}.png" for n in range(37)]
    with pytest.raises(BadUpload) as refused:
        place.ingest(_table(tmp_path, *NAMES, *lacking), pictures=photos)
    assert f"37 of 40 named pictures are not in {photos}: 00.png, 01.png, 02.png, …." in str(refused.value)
    assert list(place.catalog.pairs()) == []
    report = place.ingest(_table(tmp_path, *NAMES, *lacking[:3]), pictures=photos)
    assert report.new_pairs == 3
    assert [row.code for row in rows_of(report, "rejected")] == ["image_missing"] * 3


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_what_brings_its_own_pictures_needs_no_folder_of_them(
    place: Place, tmp_path: Path, photos: Path, kind: str
) -> None:
    source = photos if kind == "folder" else zip_of(tmp_path / "photos.zip", {"1.png": picture(1)})
    with pytest.raises(BadUpload, match="brings its own pictures"):
        place.ingest(source, pictures=photos)


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_one_file_of_a_table_and_its_pictures_gives_the_same_chunk(
    place: Place, tmp_path: Path, photos: Path, form: str
) -> None:
    table = _table(tmp_path, *NAMES, "gone.png", form=form)
    here = place.ingest(table, pictures=photos)
    with sendable(table, IntakeOptions(pictures=photos)) as file:
        assert file.name == f"{table.name}.zip"
        sent = place.ingest(file, pictures_beside=False)
    assert not file.exists()
    assert sent.chunk_id == here.chunk_id
    assert [row.code for row in rows_of(sent, "rejected")] == ["image_missing"]


def test_a_folder_is_sent_without_what_intake_leaves_out_whatever_its_names_and_dates_are(
    place: Place, tmp_path: Path
) -> None:
    folder = tmp_path / "photos"
    for name in ("old.png", ".env", ".git/config.png", "film.mp4", "Thumbs.db"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(picture(1))
    os.utime(folder / "old.png", (0, 0))
    (folder / os.fsdecode(b"caf\xe9.png")).write_bytes(picture(2))
    with sendable(folder, IntakeOptions()) as file:
        assert sorted(zipfile.ZipFile(file).namelist()) == ["caf?.png", "old.png"]
        assert place.ingest(file).new_images == 2


def test_what_is_not_there_cannot_be_sent(tmp_path: Path, photos: Path) -> None:
    with pytest.raises(BadUpload, match="no file or folder"), sendable(tmp_path / "x.csv", IntakeOptions()):
        pass
    table = _table(tmp_path, "a.png", "b.png")
    with (
        pytest.raises(BadUpload, match="2 of 2 named"),
        sendable(table, IntakeOptions(pictures=photos)),
    ):
        pass


def test_a_table_that_holds_its_pictures_is_sent_as_it_is(tmp_path: Path, photos: Path) -> None:
    table = parquet_of(tmp_path / "p.parquet", {"image": [picture(1), picture(2)], "caption": ["a", "b"]})
    with sendable(table, IntakeOptions(pictures=photos)) as file:
        assert file == table
