"""Uploads that are refused as a whole: each for the stated reason, and nothing of them is stored.

Numbers are those of the project's catalogue of bad inputs; Parquet and model files are not read here.
"""

from __future__ import annotations

import gzip
import io
import resource
import tarfile
import time
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from ingest import storage
from ingest.errors import BadUpload
from ingest.intake import ingest_source
from ingest.limits import Limits
from ingest.readers import zip_archive
from tests.ingest.conftest import Place
from tests.ingest.material import encoded, folder_of, picture, tar_of, zip_of
from tests.ingest.readers.bad_files import (
    SMALL,
    Maker,
    gzip_bomb,
)
from tests.ingest.readers.catalogue import REFUSED


@pytest.mark.parametrize(("name", "make", "code", "words"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_whole_upload_is_refused_and_nothing_is_stored(
    place: Place, tmp_path: Path, name: str, make: Maker, code: str, words: str
) -> None:
    source = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(BadUpload) as caught:
        place.ingest(source, limits=SMALL)
    assert (caught.value.code, words in caught.value.sentence) == (code, True), caught.value
    assert (place.catalog.chunks(), place.catalog.gallery_ids(), list(place.store.keys())) == ([], [], [])
    assert sorted(tmp_path.rglob("*")) == before


def test_a_gzip_bomb_is_refused(place: Place, tmp_path: Path) -> None:
    with pytest.raises(BadUpload) as caught:
        place.ingest(gzip_bomb(tmp_path))
    assert caught.value.code == "archive_bomb"


def test_a_breach_found_late_takes_the_stored_pictures_away(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "BATCH_RECORDS", 100)  # a picture and its thumbnail are two
    members = {f"{n}.png": encoded(Image.effect_noise((64, 64), 90)) for n in range(300)}
    source = tar_of(tmp_path / "a.tar", members)
    stored_before_the_end: list[int] = []

    def breach(done: int, total: int | None) -> None:
        if done == 290:
            stored_before_the_end.append(sum(1 for _ in place.store.keys(b"i")))
            raise BadUpload("archive_bomb", "It expands.")

    with pytest.raises(BadUpload):
        ingest_source(source, catalog=place.catalog, blobs=place.blobs, progress=breach)
    assert stored_before_the_end == [250]
    assert list(place.store.keys()) == []


_SEEDS: dict[str, bytes | str] = {
    "a.png": picture(1),
    "a.txt": "one\ntwo",
    "b.jpg": encoded(Image.effect_noise((40, 40), 90), "JPEG"),
    "t.csv": 'image,caption,language\na.png,x,de\nb.jpg,"y",fr\n',
    "u.jsonl": '{"image": "a.png", "caption": "zz"}\n{"image": "b.jpg", "caption": ["q", "w"]}\n',
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["zip", "tar", "tar.gz", "csv"])
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(damage=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=4)), max_size=6), cut=st.floats(0.1, 1))
def test_a_damaged_upload_gives_a_report_or_a_reason_and_nothing_else(
    place: Place, tmp_path: Path, kind: str, damage: list[tuple[float, bytes]], cut: float
) -> None:
    seed = tmp_path / "seed"
    if not seed.exists():
        makers: dict[str, Callable[[Path, dict[str, bytes | str]], Path]] = {
            "zip": zip_of,
            "tar": tar_of,
            "tar.gz": partial(tar_of, mode="w:gz"),
        }
        folder_of(tmp_path, _SEEDS)
        made = makers[kind](tmp_path / "made", _SEEDS) if kind in makers else tmp_path / "t.csv"
        seed.write_bytes(made.read_bytes())
    data = bytearray(seed.read_bytes())
    for position, content in damage:
        start = int(position * len(data))
        data[start : start + len(content)] = content
    (tmp_path / "damaged").write_bytes(data[: int(len(data) * cut)])
    try:
        report = place.ingest(tmp_path / "damaged")
    except BadUpload:
        return
    assert report.chunk_id


def _header(name: str, kind: bytes, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size = kind, size
    return entry.tobuf(tarfile.GNU_FORMAT)


def _file(name: str, data: bytes) -> bytes:
    return _header(name, tarfile.REGTYPE, len(data)) + data + bytes(-len(data) % 512)


@pytest.mark.parametrize("kind", [b"Z", tarfile.REGTYPE])
def test_a_header_of_a_terabyte_ends_a_tar_at_once(place: Place, tmp_path: Path, kind: bytes) -> None:
    source = tmp_path / "a.tar"
    source.write_bytes(_file("1.png", picture(1)) + _header("2.png", kind, 1 << 40))
    began = time.process_time()
    report = place.ingest(source, limits=Limits(unpacked_bytes=1 << 47))
    assert time.process_time() - began < 5  # tarfile would go on for minutes behind the end
    assert report.new_images == 1
    assert any("ended early" in note for note in report.notes)


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_name_that_would_fill_the_memory_ends_a_tar(place: Place, tmp_path: Path, kind: bytes) -> None:
    size, source = 100 << 20, tmp_path / "a.tgz"
    with gzip.open(source, "wb") as packed:
        packed.write(_file("1.png", picture(1)) + _header("././@LongLink", kind, size))
        noise = Image.effect_noise((512, 512), 90).tobytes()
        for _ in range(size // len(noise)):
            packed.write(noise)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report = place.ingest(source)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50 << 10  # kB
    assert report.new_images == 1


def test_headers_of_headers_without_end_are_the_end_of_a_tar(place: Place, tmp_path: Path) -> None:
    again = _header("././@LongLink", tarfile.GNUTYPE_LONGNAME, 5) + b"name\0" + bytes(507)
    source = tmp_path / "a.tar"
    source.write_bytes(_file("1.png", picture(1)) + 3_000 * again + _file("2.png", picture(2)))
    assert place.ingest(source).new_images == 1


def test_a_zip_whose_comment_looks_like_a_small_directory_is_counted_by_its_own(
    place: Place, tmp_path: Path
) -> None:
    source, held = tmp_path / "a.zip", io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for n in range(2 * SMALL.items + 10):
            archive.writestr(f"{n}.txt", "")
        archive.comment = b"PK\x06\x06" + bytes(28) + (1).to_bytes(8, "little") * 2 + bytes(20)
    source.write_bytes(held.getvalue())
    with pytest.raises(BadUpload) as caught:
        zip_archive._check_directory(source, SMALL)
    assert caught.value.code == "too_many_items"
