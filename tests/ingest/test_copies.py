from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from PIL import Image

from ingest.copies import CopyFinder
from ingest.pair import Split, image_id_of
from ingest.report import IntakeReport
from ingest.samples.scenes import all_scenes, draw
from ingest.sketch import sketch_of
from tests.ingest.conftest import Place, rows_of
from tests.ingest.material import encoded, folder_of, picture

SCENES = list(all_scenes())[::97]


def drawn(number: int) -> bytes:
    return encoded(draw(SCENES[number], "flat", size=128, seed=number))


def copy_of(data: bytes, quality: int = 60) -> bytes:
    return encoded(Image.open(io.BytesIO(data)).convert("RGB"), "JPEG", quality=quality)


def upload(place: Place, folder: Path, pictures: Mapping[str, bytes], *rows: str) -> IntakeReport:
    """Takes in pictures with a table of `image,split,group`; captions are the names."""
    lines = [f"{row},about {row.split(',')[0]}" for row in rows]
    table = "\n".join(["image,split,group,caption", *lines])
    return place.ingest(folder_of(folder, {**pictures, "t.csv": table}))


def split_of(place: Place, data: bytes) -> Split:
    record = place.catalog.image(image_id_of(data))
    assert record is not None
    return record.split


def groups_of(place: Place, *pictures: bytes) -> set[str]:
    return set(place.catalog.groups([image_id_of(data) for data in pictures]).values())


def test_copies_in_one_upload_are_one_group_in_one_split(place: Place, tmp_path: Path) -> None:
    pictures = {f"{n}.png": drawn(n) for n in range(6)}
    copies = {f"{n}-{quality}.jpg": copy_of(drawn(n), quality) for n in range(3) for quality in (40, 90)}
    report = upload(
        place, tmp_path / "a", {**pictures, **copies}, *(f"{name},," for name in {**pictures, **copies})
    )
    assert report.copies == {"in_upload": 6, "of_known": 0, "of_held_out": 0}
    assert any("6 of others in the upload" in note for note in report.notes)
    for n in range(3):
        same = [drawn(n), copies[f"{n}-40.jpg"], copies[f"{n}-90.jpg"]]
        assert len(groups_of(place, *same)) == 1
        assert len({split_of(place, data) for data in same}) == 1
    assert len(groups_of(place, *pictures.values())) == 6


def test_a_training_copy_of_a_held_out_picture_is_not_trained_on(place: Place, tmp_path: Path) -> None:
    upload(place, tmp_path / "a", {"a.png": drawn(0), "b.png": drawn(1)}, "a.png,test,", "b.png,train,")
    copies = {"a.jpg": copy_of(drawn(0)), "b.jpg": copy_of(drawn(1)), "c.png": drawn(2)}
    report = upload(place, tmp_path / "b", copies, "a.jpg,train,", "b.jpg,train,", "c.png,train,")
    assert [split_of(place, data) for data in copies.values()] == [Split.TEST, Split.TRAIN, Split.TRAIN]
    codes = {row.where: row.code for row in rows_of(report, "accepted")}
    assert codes == {
        "t.csv line 2": "copy_of_held_out",
        "t.csv line 3": "copy_of_known",
        "t.csv line 4": "ok",
    }
    assert report.copies == {"in_upload": 0, "of_known": 2, "of_held_out": 1}
    assert groups_of(place, drawn(0), copies["a.jpg"]) == {image_id_of(drawn(0))}
    (row,) = [row for row in report.rows if row.code == "copy_of_held_out"]
    assert f"copy of the picture {image_id_of(drawn(0))[:12]}, which is in test" in row.sentence


def test_a_held_out_copy_of_a_trained_picture_is_held(place: Place, tmp_path: Path) -> None:
    upload(place, tmp_path / "a", {"a.png": drawn(0)}, "a.png,train,")
    copies = {"a.jpg": copy_of(drawn(0)), "c.png": drawn(2)}
    report = upload(place, tmp_path / "b", copies, "a.jpg,test,", "c.png,test,")
    (row,) = rows_of(report, "held")
    assert row.code == "split_conflict"
    assert "says test, but it is a copy of the picture" in row.sentence
    assert place.catalog.image(image_id_of(copies["a.jpg"])) is None


def test_in_one_upload_too_what_is_held_out_is_held_out_of_its_copies(place: Place, tmp_path: Path) -> None:
    pictures = {"a.png": drawn(0), "a.jpg": copy_of(drawn(0))}
    report = upload(place, tmp_path / "a", pictures, "a.png,train,", "a.jpg,test,")
    assert {split_of(place, data) for data in pictures.values()} == {Split.TEST}
    assert {row.where: row.code for row in report.rows} == {
        "t.csv line 2": "copy_of_held_out",
        "t.csv line 3": "ok",
    }
    assert report.held_out == {"en/general": 1}


def test_a_copy_joins_the_stated_group_of_its_original(place: Place, tmp_path: Path) -> None:
    upload(place, tmp_path / "a", {"a.png": drawn(0), "b.png": drawn(1)}, "a.png,test,shoe", "b.png,,shoe")
    upload(place, tmp_path / "b", {"a.jpg": copy_of(drawn(0))}, "a.jpg,,")
    assert groups_of(place, drawn(0), drawn(1), copy_of(drawn(0))) == {"group:shoe"}


def test_a_test_part_of_copies_is_counted_as_the_few_things_it_shows(place: Place, tmp_path: Path) -> None:
    pictures = {
        f"{n}-{quality}.jpg": copy_of(drawn(n), quality) for n in range(3) for quality in range(50, 90, 4)
    }
    report = upload(place, tmp_path / "a", pictures, *(f"{name},test," for name in pictures))
    assert report.per_slice["en/general"]["test"] == 30
    assert report.held_out == {"en/general": 3}
    assert any("3 distinct in en/general" in note for note in report.notes)


def test_however_many_copies_there_are_they_are_one_group(place: Place, tmp_path: Path) -> None:
    # Copies of one kind are nearest to one another, and there are more of them than are looked at.
    pictures = {
        f"{n}-{quality}.jpg": copy_of(drawn(n), quality) for n in range(2) for quality in range(70, 90)
    }
    cropped = Image.open(io.BytesIO(drawn(0))).convert("RGB").crop((2, 2, 126, 126))
    pictures |= {
        f"cropped-{quality}.jpg": encoded(cropped, "JPEG", quality=quality) for quality in range(70, 90)
    }
    report = upload(place, tmp_path / "a", pictures, *(f"{name},," for name in pictures))
    assert len(groups_of(place, *pictures.values())) == 2
    assert report.copies == {"in_upload": 58, "of_known": 0, "of_held_out": 0}, "in whichever part they come"


def test_a_withdrawn_original_binds_no_copy(place: Place, tmp_path: Path) -> None:
    first = upload(place, tmp_path / "a", {"a.png": drawn(0)}, "a.png,test,")
    place.catalog.set_standing(first.chunk_id, "withdrawn", by="ann", why="x")
    report = upload(place, tmp_path / "b", {"a.jpg": copy_of(drawn(0))}, "a.jpg,train,")
    assert report.copies["of_known"] == 0
    assert split_of(place, copy_of(drawn(0))) is Split.TRAIN


def test_pictures_of_an_earlier_release_are_sketched_when_the_next_upload_comes(
    place: Place, tmp_path: Path
) -> None:
    upload(place, tmp_path / "a", {"a.png": drawn(0)}, "a.png,test,")
    with place.catalog._engine.begin() as connection:
        connection.exec_driver_sql("UPDATE images SET sketch = NULL")
    assert place.catalog.unsketched() == [image_id_of(drawn(0))]
    upload(place, tmp_path / "b", {"a.jpg": copy_of(drawn(0))}, "a.jpg,train,")
    assert place.catalog.unsketched() == []
    assert split_of(place, copy_of(drawn(0))) is Split.TEST


def test_icons_that_differ_in_a_few_pixels_are_not_taken_for_copies(place: Place, tmp_path: Path) -> None:
    pictures = {f"{n}.png": picture(n) for n in range(40)}
    report = upload(place, tmp_path / "a", pictures, *(f"{name},," for name in pictures))
    assert report.copies["in_upload"] == 0


def test_a_picture_without_a_thumbnail_is_compared_with_none(place: Place) -> None:
    copies = {
        data: sketch_of(Image.open(io.BytesIO(data)).convert("RGB")) for data in (drawn(0), copy_of(drawn(0)))
    }
    found = CopyFinder(place.catalog, place.blobs).find(
        {image_id_of(data): sketch for data, sketch in copies.items()}
    )
    assert len(found.same) == 0


def test_a_withdrawn_picture_that_comes_again_is_compared_too(place: Place, tmp_path: Path) -> None:
    first = upload(place, tmp_path / "a", {"a.png": drawn(0)}, "a.png,train,")
    place.catalog.set_standing(first.chunk_id, "withdrawn", by="ann", why="x")
    pictures = {"a.png": drawn(0), "a.jpg": copy_of(drawn(0))}
    report = upload(place, tmp_path / "b", pictures, "a.png,train,", "a.jpg,test,")
    assert report.copies["in_upload"] == 1
    assert {split_of(place, data) for data in pictures.values()} == {Split.TEST}
