"""The drawn photo library, taken in as it lies there: what comes of each of its 600 files is known beforehand."""

from __future__ import annotations

import shutil
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ingest.facts.picture import picture_facts, sidecar_facts
from ingest.facts.record import together
from ingest.images import decode
from ingest.pair import image_id_of
from tests.ingest.conftest import Place, rows_of
from tests.photo_library import LibraryFile, write_library

FILES = 300  # everything odd, and fewer plain pictures than the library has by itself


@dataclass(frozen=True)
class Written:
    """The library on the disk."""

    folder: Path
    files: list[LibraryFile]

    def of(self, fate: str) -> list[LibraryFile]:
        return [file for file in self.files if file.fate == fate]

    def data(self, file: LibraryFile) -> bytes:
        return (self.folder / file.path).read_bytes()


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    folder = tmp_path_factory.mktemp("library")
    yield Written(folder, write_library(folder, files=FILES))
    shutil.rmtree(folder)


def test_it_is_as_varied_as_libraries_are(library: Written) -> None:
    pictures = library.of("picture")
    assert len(library.files) == FILES
    assert {file.told_in for file in pictures} == {
        "",
        "exif",
        "iptc",
        "xmp",
        "sidecar",
        "txt",
        "csv",
        "takeout",
    }
    assert len({file.taken[:4] for file in pictures if file.taken}) == 6
    assert len({file.camera for file in pictures}) >= 6
    assert sum(file.copy_of is not None for file in pictures) == 10
    suffixes = Counter(Path(file.path).suffix.lower() for file in pictures)
    assert set(suffixes) >= {
        ".jpg",
        ".heic",
        ".avif",
        ".webp",
        ".png",
        ".cr2",
        ".nef",
        ".dng",
        ".tif",
        ".gif",
        ".bmp",
    }
    assert {unicodedata.is_normalized("NFC", file.path) for file in pictures} == {True, False}
    assert max(len(Path(file.path).name.encode()) for file in pictures) == 255


def test_taking_it_in_accepts_and_refuses_what_it_should(place: Place, library: Written) -> None:
    report = place.ingest(library.folder)
    pictures = library.of("picture")
    refused = {row.where: row.code for row in rows_of(report, "rejected")}
    assert refused == {file.path: file.code for file in library.of("refused")}
    assert report.held == 0
    expected = {image_id_of(library.data(file)) for file in pictures}
    assert set(place.catalog.images(expected)) == expected
    assert report.new_images == len(expected) == len(pictures) - 10
    hidden = len(library.of("hidden"))
    assert f"{hidden} hidden files or folders were ignored" in report.notes
    told = {pair.image_id: pair.text for pair in place.catalog.pairs()}
    for file in pictures:
        if file.told_in in ("csv", "txt"):
            assert told[image_id_of(library.data(file))] == file.caption


def test_every_picture_is_upright_and_of_its_own_size(library: Written) -> None:
    for file in library.of("picture"):
        decoded = decode(library.data(file))
        size = (600, 480) if decoded.format == "RAW" else (240, 192)
        assert (decoded.width, decoded.height) == size, file.path
        assert decoded.image.size == (240, 192), file.path


def test_what_its_pictures_say_of_themselves_is_read(library: Written) -> None:
    for file in library.of("picture"):
        found = picture_facts(library.data(file))
        if file.told_in == "sidecar":
            beside = (library.folder / file.path).with_suffix(".xmp")
            found = together(sidecar_facts(beside.read_bytes()), found)
        assert (found.taken, found.camera) == (file.taken, file.camera), file.path
        if file.place is None:
            assert found.latitude is None
        else:
            assert (found.latitude, found.longitude) == pytest.approx(file.place, abs=1e-5), file.path
        is_told = file.told_in in ("exif", "iptc", "xmp", "sidecar")
        assert [one.text for one in found.captions] == [file.caption] * is_told, file.path
