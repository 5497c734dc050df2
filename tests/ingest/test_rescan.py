"""A folder that is read again: nothing twice, nothing lost, and what is gone is said."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from ingest import intake, named_pictures
from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.pair import image_id_of
from ingest.readers import folder as folder_reader
from ingest.readers.table_file import read_file
from tests.ingest.conftest import Place
from tests.ingest.material import folder_of, picture


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the pictures whose bytes were read."""
    names: list[str] = []

    def noted(folder: Path, name: str, limits: Limits) -> object:
        names.append(name)
        return read_file(folder, name, limits)

    monkeypatch.setattr(folder_reader, "read_file", noted)
    return names


def _photos(tmp_path: Path, count: int = 4) -> Path:
    return folder_of(tmp_path / "photos", {f"{n:05}.png": picture(n) for n in range(count)})


def _captioned(folder: Path, count: int) -> Path:
    table = "image,caption\n" + "".join(f"{n:05}.png,boat number {n}\n" for n in range(count))
    return folder_of(folder, {f"{n:05}.png": picture(n) for n in range(count)} | {"captions.csv": table})


def test_files_that_are_as_they_were_are_not_opened(place: Place, tmp_path: Path, opened: list[str]) -> None:
    folder = _photos(tmp_path)
    first = place.ingest(folder)
    opened.clear()
    (folder / "new.png").write_bytes(picture(99))

    second = place.ingest(folder)

    assert opened == ["new.png"]
    assert (second.new_images, second.unchanged, second.gone) == (1, 4, 0)
    assert second.chunk_id != first.chunk_id
    assert place.catalog.chunk(second.chunk_id).images == 1


def test_a_folder_without_anything_new_names_the_chunk_it_was(
    place: Place, tmp_path: Path, opened: list[str]
) -> None:
    folder = _photos(tmp_path)
    first = place.ingest(folder)
    opened.clear()
    again = place.ingest(folder)
    assert opened == []
    assert (again.chunk_id, again.new_images, again.unchanged) == (first.chunk_id, 0, 4)
    assert len(place.catalog.chunks()) == 1


def test_a_touched_file_is_read_and_known_by_its_bytes(
    place: Place, tmp_path: Path, opened: list[str]
) -> None:
    folder = _photos(tmp_path)
    place.ingest(folder)
    opened.clear()
    os.utime(folder / "00001.png", ns=(1, 1))

    assert place.ingest(folder).new_images == 0
    assert opened == ["00001.png"]
    opened.clear()
    place.ingest(folder)
    assert opened == []


def test_what_moved_is_followed_and_stays_findable(place: Place, tmp_path: Path) -> None:
    folder = _photos(tmp_path)
    place.ingest(folder)
    found = set(place.catalog.gallery_ids())
    (folder / "2024").mkdir()
    shutil.move(folder / "00001.png", folder / "2024" / "beach.png")

    report = place.ingest(folder)

    assert (report.new_images, report.moved, report.gone) == (0, 1, 0)
    assert set(place.catalog.gallery_ids()) == found


def test_what_was_deleted_leaves_the_answers_and_comes_back(place: Place, tmp_path: Path) -> None:
    folder = _photos(tmp_path)
    place.ingest(folder)
    everything = set(place.catalog.gallery_ids())
    kept = (folder / "00002.png").read_bytes()
    (folder / "00002.png").unlink()

    report = place.ingest(folder)

    assert (report.gone, report.unchanged) == (1, 3)
    assert any("files are gone: 1" in note for note in report.notes)
    assert len(place.catalog.gallery_ids()) == 3
    (folder / "back.png").write_bytes(kept)
    assert place.ingest(folder).new_images == 0
    assert set(place.catalog.gallery_ids()) == everything


def test_one_of_two_copies_may_go(place: Place, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "photos", {"a.png": picture(1), "b.png": picture(1), "c.png": picture(2)})
    place.ingest(folder)
    (folder / "a.png").unlink()
    report = place.ingest(folder)
    assert (report.gone, len(place.catalog.gallery_ids())) == (0, 2)


def test_other_folders_are_left_alone(place: Place, tmp_path: Path) -> None:
    one, other = _photos(tmp_path / "a"), folder_of(tmp_path / "b", {"x.png": picture(50)})
    place.ingest(one)
    place.ingest(other)
    shutil.rmtree(other)
    assert place.ingest(one).gone == 0
    assert len(place.catalog.gallery_ids()) == 5


def test_a_disk_that_is_not_mounted_loses_nothing(place: Place, tmp_path: Path) -> None:
    folder = _photos(tmp_path)
    place.ingest(folder)
    shutil.rmtree(folder)
    folder.mkdir()
    with pytest.raises(BadUpload, match="Is its disk mounted"):
        place.ingest(folder)
    assert len(place.catalog.gallery_ids()) == 4


def test_a_folder_that_cannot_be_looked_into_loses_nothing(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = _photos(tmp_path)
    inner = folder_of(folder / "inner", {"x.png": picture(50)})
    place.ingest(folder)
    look = os.scandir

    def closed(path: Any) -> Any:  # root, which may run this, is let in everywhere
        if Path(path) == inner:
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", closed)
    report = place.ingest(folder)
    assert (report.gone, report.rejected) == (0, 1)
    assert report.rows[0].sentence == "It cannot be read (Permission denied)."


def test_a_new_caption_of_a_known_file_is_taken_in(place: Place, tmp_path: Path, opened: list[str]) -> None:
    folder = _photos(tmp_path)
    (folder / "00001.txt").write_text("a red boat")
    place.ingest(folder)
    opened.clear()
    place.ingest(folder)
    assert opened == []
    (folder / "00001.txt").write_text("a red boat\na boat at night")

    report = place.ingest(folder)

    assert (report.new_pairs, opened) == (1, ["00001.png"])


def test_the_same_captions_in_another_language_are_taken_in(place: Place, tmp_path: Path) -> None:
    folder = _photos(tmp_path)
    (folder / "00001.txt").write_text("Ballon")
    place.ingest(folder, language="de")
    assert place.ingest(folder, language="fr").new_pairs == 1


def test_what_was_withdrawn_is_taken_in_again(place: Place, tmp_path: Path) -> None:
    folder = _photos(tmp_path)
    report = place.ingest(folder)
    place.catalog.set_standing(report.chunk_id, "withdrawn", by="ada", why="wrong folder")
    assert place.ingest(folder).new_images == 4


def test_a_large_folder_is_one_chunk_however_many_parts_it_takes(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_pictures, "PORTION", 3)
    folder = _photos(tmp_path, 9)
    (folder / "captions.csv").write_text(
        "image,caption\n" + "".join(f"{n:05}.png,boat number {n}\n" for n in range(9))
    )
    (folder / "zzz.png").write_bytes(b"\x89PNG nothing")
    seen: list[tuple[int, int | None]] = []
    report = intake.ingest_source(
        folder,
        catalog=place.catalog,
        blobs=place.blobs,
        options=intake.IntakeOptions(language="en"),
        progress=lambda done, total: seen.append((done, total)),
    )
    (chunk,) = place.catalog.chunks()
    assert (report.new_images, report.new_pairs, report.rejected) == (9, 9, 1)
    assert (chunk.images, chunk.pairs, chunk.new_images, chunk.new_pairs) == (9, 9, 9, 9)
    assert chunk.report["new_images"] == 9
    assert chunk.report["rejected"] == 1
    assert seen == [(done, 10) for done in range(1, 11)]


def test_what_is_new_in_a_later_part_of_a_known_folder_is_a_chunk_of_its_own(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_pictures, "FIRST_PORTION", 2)
    monkeypatch.setattr(named_pictures, "PORTION", 3)
    old = place.ingest(_captioned(tmp_path / "old", 9))
    place.catalog.set_standing(old.chunk_id, "accepted", by="ann", why="I looked")

    again = place.ingest(_captioned(tmp_path / "copy", 9))
    assert (again.chunk_id, again.new_pairs, len(place.catalog.chunks())) == (old.chunk_id, 0, 1)

    more = place.ingest(_captioned(tmp_path / "more", 13))
    first, second = place.catalog.chunks()
    assert (first.id, first.standing, first.pairs) == (old.chunk_id, "accepted", 9)
    assert (second.id, second.standing, second.new_pairs, second.name) == (more.chunk_id, "new", 4, "more")
    assert (more.new_pairs, more.known_pairs, second.report["new_pairs"]) == (4, 9, 4)
    assert place.catalog.unjudged(more.chunk_id) == [more.chunk_id]

    again = place.ingest(_captioned(tmp_path / "again", 13))
    assert (again.new_pairs, len(place.catalog.chunks())) == (0, 2)


def test_what_a_person_took_out_of_a_folder_makes_no_chunk_when_it_comes_again(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_pictures, "FIRST_PORTION", 2)
    old = place.ingest(_captioned(tmp_path / "old", 6)).chunk_id
    wrong, gone = image_id_of(picture(5)), image_id_of(picture(4))
    numbers = place.catalog.pair_numbers(old, [wrong]).values()
    place.catalog.take_out(old, numbers, by="ann", why="wrong")
    place.catalog.withheld.take_out([gone], by="ann", why="private")

    again = place.ingest(_captioned(tmp_path / "copy", 6))

    assert (again.chunk_id, again.new_pairs, len(place.catalog.chunks())) == (old, 0, 1)


def test_whoever_stops_it_goes_on_where_it_stopped(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: list[str]
) -> None:
    monkeypatch.setattr(named_pictures, "PORTION", 3)
    folder = _photos(tmp_path, 10)

    def stop(done: int, _total: int | None) -> None:
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        intake.ingest_source(folder, catalog=place.catalog, blobs=place.blobs, progress=stop)
    assert len(place.catalog.gallery_ids()) == 6
    opened.clear()

    report = place.ingest(folder)

    assert (report.new_images, report.unchanged) == (4, 6)
    assert len(opened) == 4
    assert len(place.catalog.gallery_ids()) == 10


def test_thousands_of_unchanged_files_take_a_moment(place: Place, tmp_path: Path) -> None:
    folder = _photos(tmp_path, 40)
    data = {n: (folder / f"{n:05}.png").read_bytes() for n in range(40)}
    for n in range(40, 2_000):
        (folder / f"{n:05}.png").write_bytes(data[n % 40])  # copies: each file is a source of its own
    place.ingest(folder)
    started = time.process_time()
    report = place.ingest(folder)
    seconds = time.process_time() - started
    assert report.unchanged == 40
    assert len(place.catalog.sources.below(folder)) == 2_000
    assert seconds < 0.6  # 3 s of 10,000


def test_what_is_gone_is_kept_until_it_is_forgotten(place: Place, tmp_path: Path) -> None:
    folder = _photos(tmp_path)
    (folder / "00002.txt").write_text("a red boat")
    place.ingest(folder)
    data = (folder / "00002.png").read_bytes()
    (image,) = place.catalog.images([image_id_of(data)])
    place.catalog.set_pin("boat", "en", image)
    (folder / "00002.png").unlink()
    assert place.ingest(folder).gone == 1
    assert place.blobs.contains([image]) == [True]

    report = place.ingest(folder, forget=True)

    assert (report.gone, report.forgotten) == (0, 1)
    assert place.blobs.contains([image]) == [False]
    assert (place.catalog.captions_of(image), place.catalog.pins()) == ([], [])
    assert place.catalog.sources.of([image]) == {}
    assert place.catalog.withheld.all() == []
    (folder / "again.png").write_bytes(data)
    assert place.ingest(folder).new_images == 1
    assert image in place.catalog.gallery_ids()


def test_a_folder_that_was_emptied_can_be_forgotten(place: Place, tmp_path: Path) -> None:
    folder = _photos(tmp_path)
    place.ingest(folder)
    shutil.rmtree(folder)
    folder.mkdir()
    report = place.ingest(folder, forget=True)
    assert (report.forgotten, place.catalog.gallery_ids()) == (4, [])


def test_the_first_pictures_of_a_large_folder_are_told_before_the_rest(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_pictures, "PORTION", 4)
    monkeypatch.setattr(named_pictures, "FIRST_PORTION", 2)
    told: list[tuple[int, int]] = []
    intake.ingest_source(
        _photos(tmp_path, 11),
        catalog=place.catalog,
        blobs=place.blobs,
        on_part=lambda count: told.append((count, len(place.catalog.gallery_ids()))),
    )
    assert told == [(2, 2), (6, 6), (10, 10)]
