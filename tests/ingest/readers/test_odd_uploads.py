"""Uploads that are odd but harmless, and those cut short: what is good of them is taken in.

Numbers are those of the project's catalogue of bad inputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image

from ingest.pair import image_id_of
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import encoded, folder_of, picture, tar_of, zip_of, zip_of_pairs
from tests.ingest.readers.bad_files import GOOD, Maker, record, table
from tests.ingest.readers.catalogue import ACCEPTED


@pytest.mark.parametrize(("name", "make", "pairs", "note"), ACCEPTED, ids=[row[0] for row in ACCEPTED])
def test_odd_but_harmless_uploads_are_accepted(
    place: Place, tmp_path: Path, name: str, make: Maker, pairs: int, note: str
) -> None:
    report = place.ingest(make(tmp_path))
    assert report.new_pairs == pairs
    assert report.rejected == 0
    assert note in " ".join(report.notes)


def test_members_of_one_name_are_each_judged(place: Place, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        source = zip_of_pairs(
            tmp_path / "a.zip", [("x.png", picture(1)), ("x.png", picture(2)), ("x.txt", "one")]
        )
    report = place.ingest(source)
    assert (report.new_images, report.new_pairs) == (2, 2)
    assert "twice" in report.notes[0]


def test_a_tar_cut_inside_a_picture_keeps_what_came_before(place: Place, tmp_path: Path) -> None:
    big = encoded(Image.effect_noise((64, 64), 90))
    source = tar_of(tmp_path / "a.tar", {**GOOD, "late.png": big, "after.png": picture(2)})
    data = source.read_bytes()
    source.write_bytes(data[: data.find(big) + 700])
    report = place.ingest(source)
    assert report.new_pairs == 1
    assert "ended early" in report.notes[0]
    assert [(row.where, row.code) for row in rows_of(report, "rejected")] == [("late.png", "member_damaged")]


def test_a_gzip_cut_short_keeps_what_came_before(place: Place, tmp_path: Path) -> None:
    source = tar_of(
        tmp_path / "a.tar.gz", {**GOOD, "late.png": encoded(Image.effect_noise((200, 200), 90))}, "w:gz"
    )
    data = source.read_bytes()
    source.write_bytes(data[: len(data) // 2])
    report = place.ingest(source)
    assert report.new_pairs == 1
    assert "ended early" in report.notes[0]


def test_composed_and_decomposed_captions_are_one(place: Place, tmp_path: Path) -> None:
    report = place.ingest(table(record(caption="caf\u00e9"), record(caption="cafe\u0301"))(tmp_path))
    assert report.new_pairs == 1
    assert [row.code for row in report.rows] == ["duplicate", "ok"]


def test_two_files_whose_names_differ_in_form_alone_are_two(place: Place, tmp_path: Path) -> None:
    names = ("cafe\u0301.png", "caf\u00e9.png")
    table = "\n".join((record(names[0], "a decomposed name"), record(names[1], "a composed name")))
    source = zip_of(tmp_path / "a.zip", {names[0]: picture(1), names[1]: picture(2), "t.jsonl": table})
    report = place.ingest(source)
    assert (report.new_pairs, report.new_images) == (2, 2)


def test_a_decomposed_file_name_is_found(place: Place, tmp_path: Path) -> None:
    source = zip_of(
        tmp_path / "a.zip", {"cafe\u0301.png": picture(1), "t.jsonl": record("caf\u00e9.png", "x")}
    )
    assert place.ingest(source).new_pairs == 1


def _upload(form: str, place: Path, members: Mapping[str, bytes | str]) -> Path:
    make = {"zip": zip_of, "tar": tar_of, "folder": folder_of}[form]
    return make(place / (f"upload.{form}" if form != "folder" else "upload"), members)


def _captions(*names: str) -> str:
    return "\n".join(["image,caption", *(f"{name},number {n}" for n, name in enumerate(names))])


@pytest.mark.parametrize("form", ["zip", "tar", "folder"])
@pytest.mark.parametrize(
    ("table", "here", "missing"),
    [
        ("t.csv", ("test/3.png", "test/4.png"), ("train/3.png", "train/2.png")),  # each split counts from one
        ("t.csv", ("dogs/001.png",), ("cats/001.png",)),  # each class does
        ("train/metadata.csv", ("1.png",), ("2.png",)),  # HF's ImageFolder has a table in each split's folder
        ("t.csv", (), ("train/2.png",)),
        ("t.csv", (), ("train/2.png", "test/7.png")),
    ],
)
def test_no_line_gets_the_picture_of_another_folder(
    place: Place, tmp_path: Path, form: str, table: str, here: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    folder = table.removesuffix(table.rsplit("/", 1)[-1])
    members: dict[str, bytes | str] = {f"{folder}{name}": picture(n) for n, name in enumerate(here)}
    members |= {"test/2.png": picture(9), "test/metadata.csv": "image,caption\n2.png,its own"}
    report = place.ingest(_upload(form, tmp_path, {**members, table: _captions(*here, *missing)}))
    assert {pair.image_id: pair.text for pair in place.catalog.pairs()} == {
        image_id_of(picture(9)): "its own",
        **{image_id_of(picture(n)): f"number {n}" for n in range(len(here))},
    }
    assert len(list(place.catalog.pairs())) == 1 + len(here)
    assert [row.code for row in rows_of(report, "rejected")] == ["image_missing"] * len(missing)


@pytest.mark.parametrize("form", ["zip", "tar", "folder"])
@pytest.mark.parametrize(
    ("table", "named", "folder"),
    [
        ("t.csv", ("images/1.png", "images/2.png"), "data/images"),
        ("t.csv", ("train/1.png", "test/1.png"), "data"),
        ("t.csv", ("images/1.png", "images/2.png"), ""),
        ("t.csv", ("data/images/1.png", "data/images/a/2.png"), "images"),
        ("t.csv", ("1.png", "2.png"), "data/images"),
        ("captions/t.csv", ("1.png", "2.png"), "images"),
    ],
)
def test_pictures_below_one_folder_more_or_less_than_their_table_says_are_found(
    place: Place, tmp_path: Path, form: str, table: str, named: tuple[str, str], folder: str
) -> None:
    inner = [name.split("images/", 1)[-1] for name in named]
    places = [f"{folder}/{name}" if folder else name for name in inner]
    members: dict[str, bytes | str] = {name: picture(n) for n, name in enumerate(places, start=1)}
    gone = named[0].replace("1.png", "gone.png")
    report = place.ingest(_upload(form, tmp_path, {**members, table: _captions(*named, gone)}))
    assert {pair.image_id: pair.text for pair in place.catalog.pairs()} == {
        image_id_of(picture(n)): f"number {n - 1}" for n in (1, 2)
    }
    assert [row.code for row in rows_of(report, "rejected")] == ["image_missing"]


@pytest.mark.parametrize("form", ["zip", "tar", "folder"])
def test_pictures_in_no_folder_are_found_where_all_are_called_differently(
    place: Place, tmp_path: Path, form: str
) -> None:
    files = {"1.png": picture(1), "2.png": picture(2)}
    told = _captions("train/1.png", "test/2.png")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert place.ingest(_upload(form, tmp_path / "a", {**files, "t.csv": told})).new_pairs == 2
    alike = _captions("train/1.png", "test/1.png")
    report = place.ingest(_upload(form, tmp_path / "b", {**files, "t.csv": alike}))
    assert [row.code for row in rows_of(report, "rejected")] == ["image_missing"] * 2
