"""Claims about decoding apart: what takes too much is refused with a reason, and this process goes on.

Row 3 of what fell once (SECURITY.md).
"""

from __future__ import annotations

import io
import json
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import psutil
import pytest
from PIL import Image

from app.desk.troubles import trouble_of
from ingest import decoding, decoding_child
from ingest.decoding import decode_apart
from ingest.errors import BadImage, DecoderBusy
from ingest.facts.picture import picture_facts
from ingest.facts.record import PictureFacts
from ingest.images import DecodedImage, decode
from tests.ingest.metadata import exif_bytes, xmp_packet
from tests.ingest.readers.bad_files import four_thousand_passes, sixty_thousand_pages


@pytest.fixture(autouse=True, scope="module")
def _end() -> Iterator[None]:
    yield
    decoding._DECODER.end()


def _noise(side: int) -> Image.Image:
    return Image.fromarray(np.random.default_rng(side).integers(0, 255, (side, side, 3), np.uint8))


def _file(image: Image.Image, kind: str, **how: object) -> bytes:
    target = io.BytesIO()
    image.save(target, kind, **how)
    return target.getvalue()


def _png(width: int, height: int) -> bytes:
    """A picture of some hundred kilobytes, one corner of it white."""

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packer, line = zlib.compressobj(9), b"\0" + b"\x80\x10\x20" * width
    packed = packer.compress(b"\0" + b"\xff\xff\xff" + line[4:])
    packed += b"".join(packer.compress(line) for _ in range(height - 1)) + packer.flush()
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", packed) + part(b"IEND", b"")


def _children() -> set[int]:
    return {
        one.pid for one in psutil.Process().children() if "ingest.decoding_child" in " ".join(one.cmdline())
    }


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF", "HEIF"])
def test_a_picture_comes_out_as_it_does_here(kind: str) -> None:
    data = _file(_noise(64), kind)
    apart, here = decode_apart(data), decode(data)
    assert apart.image.tobytes() == here.image.tobytes()
    assert (apart.width, apart.height, apart.format, apart.notes) == (64, 64, here.format, here.notes)


@pytest.mark.parametrize("kind", ["JPEG", "WEBP"])
def test_what_a_file_says_comes_along_where_it_is_asked_for(kind: str) -> None:
    told = xmp_packet(
        description={"en": "Two {red} boats \U0001f6f6 " * 70, "de": "Zwei"}, keywords=["boat", "sea"]
    )
    data = _file(
        _noise(64), kind, xmp=told, exif=exif_bytes(taken="2019:07:04 12:33:21", place=(48.1, -11.5))
    )
    found = decode_apart(data, with_facts=True).facts
    assert found == picture_facts(data)
    assert found is not None
    assert found.longitude == -11.5
    assert decode_apart(data).facts is None


def test_exif_that_takes_gigabytes_takes_none_here() -> None:
    entries, size = 3000, 1_000_000
    at = 8 + 2 + 12 * entries + 4
    exif = b"II*\0\x08\0\0\0" + struct.pack("<H", entries)
    exif += b"".join(struct.pack("<HHII", 1000 + n, 7, size, at) for n in range(entries)) + bytes(4 + size)
    before = psutil.Process().memory_info().rss
    found = decode_apart(_file(_noise(64), "PNG", exif=exif), with_facts=True)
    assert found.facts == PictureFacts()
    assert psutil.Process().memory_info().rss - before < 60e6


def test_plain_small_pictures_start_no_process() -> None:
    decoding._DECODER.end()
    before = _children()
    decode_apart(_file(_noise(64), "JPEG"))
    with pytest.raises(BadImage):
        decode_apart(b"")
    assert _children() == before


def test_a_picture_of_39_megapixels_leaves_nothing_behind_here() -> None:
    data, before = _png(6240, 6250), psutil.Process().memory_info().rss
    assert len(data) < 300_000
    found = decode_apart(data, largest=512)
    assert (found.width, found.height, max(found.image.size)) == (6240, 6250, 521)
    assert psutil.Process().memory_info().rss - before < 60e6  # 117 MB decoded


def test_what_takes_too_much_memory_is_refused_with_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    decoding._DECODER.end()
    monkeypatch.setattr(decoding, "MEMORY_BYTES", 600 << 20)
    with pytest.raises(BadImage, match="more memory than it may have") as refused:
        decode_apart(_png(14_000, 14_000))
    monkeypatch.undo()
    assert refused.value.code == "image_too_heavy"
    assert decode_apart(_file(_noise(64), "TIFF")).width == 64


def test_a_program_that_maps_much_itself_has_pictures_decoded_all_the_same(tmp_path: Path) -> None:
    program, picture = tmp_path / "program.py", tmp_path / "picture.tiff"
    picture.write_bytes(_file(_noise(64), "TIFF"))
    program.write_text(
        "import mmap\nfrom pathlib import Path\nfrom ingest.decoding import decode_apart\n"
        f"mapped = mmap.mmap(-1, {decoding_child.MEMORY_BYTES})\n"
        "if __name__ == '__main__':\n"
        f"    print(decode_apart(Path({str(picture)!r}).read_bytes()).width)\n",
        encoding="utf-8",
    )
    said = subprocess.run([sys.executable, program], capture_output=True, text=True, timeout=120, check=False)
    assert said.stdout.split() == ["64"], said.stderr


def test_what_takes_too_long_is_ended_and_the_next_picture_is_decoded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoding._DECODER.end()
    monkeypatch.setattr(decoding, "_CLOCK_SECONDS", 0.01)
    with pytest.raises(BadImage, match="longer than 20 seconds") as refused:
        decode_apart(_png(6240, 6250))
    assert refused.value.code == "image_too_slow"
    monkeypatch.undo()
    assert decode_apart(_file(_noise(64), "TIFF")).width == 64


def test_a_tiff_of_any_kind_is_decoded_apart() -> None:
    decoding._DECODER.end()
    with pytest.raises(BadImage):
        decode_apart(b"II+\0\x08\0\0\0" + struct.pack("<Q", 16) + bytes(64))
    assert _children()


def test_a_process_that_was_ended_between_two_pictures_costs_none() -> None:
    decode_apart(_file(_noise(64), "TIFF"))
    for one in map(psutil.Process, _children()):
        one.kill()
        while one.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}:
            time.sleep(0.01)
    assert decode_apart(_file(_noise(64), "TIFF")).width == 64


def test_a_process_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    decode_apart(_file(_noise(64), "TIFF"))
    monkeypatch.setattr(decoding, "_ENDING_SECONDS", 0.1)
    (one,) = map(psutil.Process, _children())
    one.suspend()
    decoding._DECODER.end()
    assert not one.is_running()


def test_a_picture_waits_for_others_as_long_as_it_may() -> None:
    with decoding._DECODER._turn:
        with pytest.raises(DecoderBusy, match="Try again in a few seconds") as refused:
            decode_apart(_file(_noise(64), "TIFF"), patience=0.05)
        assert trouble_of(refused.value).status == 503
    assert decode_apart(_file(_noise(64), "TIFF"), patience=0.05).width == 64


def test_the_process_writes_nothing_and_knows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERENNIAL_SECRET", "x")
    decoding._DECODER.end()
    decode_apart(_file(_noise(64), "TIFF"))
    (one,) = map(psutil.Process, _children())
    assert "PERENNIAL_SECRET" not in one.environ()
    for limit in (psutil.RLIMIT_FSIZE, psutil.RLIMIT_CORE):
        assert one.rlimit(limit) == (0, 0)
    assert 0 < one.rlimit(psutil.RLIMIT_CPU)[1] <= decoding_child.PICTURES * 21


def test_the_process_has_no_network_where_the_system_lets_it_leave() -> None:
    tried = [shutil.which("unshare") or "false", "--user", "--net", "true"]
    if subprocess.run(tried, capture_output=True, check=False).returncode:
        pytest.skip("this system lets nobody leave the network")
    decode_apart(_file(_noise(64), "TIFF"))
    (one,) = _children()
    assert Path(f"/proc/{one}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()


def _said(said: object, pixels: bytes = b"") -> io.BytesIO:
    words = said if isinstance(said, bytes) else json.dumps(said).encode()
    return io.BytesIO(struct.pack("<qq", len(words), len(pixels)) + words + pixels)


_SOUND: dict[str, object] = {"size": [2, 1], "width": 2, "height": 1, "format": "TIFF", "notes": ["a"]}
_FACTS = asdict(PictureFacts())
_NESTED: object = "x" * 100
for _ in range(30):
    _NESTED = {"$template": "{a}{a}", "values": {"a": _NESTED}}


def test_a_sound_answer_is_a_picture() -> None:
    found = decoding_child.answer(_said(_SOUND, bytes(6)))
    assert isinstance(found, DecodedImage)
    assert (found.image.size, found.notes) == ((2, 1), ("a",))


@pytest.mark.parametrize(
    "said",
    [
        _SOUND | {"size": [20_000, 20_000]},
        _SOUND | {"size": [-2, -1]},
        _SOUND | {"size": [2.0, 1]},
        _SOUND | {"width": float("inf")},
        _SOUND | {"width": 10**400},
        _SOUND | {"height": True},
        _SOUND | {"format": "x" * 9000},
        _SOUND | {"notes": ["x" * 9000]},
        _SOUND | {"notes": ["x"] * 1000},
        _SOUND | {"notes": 3},
        _SOUND | {"facts": 3},
        _SOUND | {"facts": {"captions": []}},
        _SOUND | {"facts": _FACTS | {"latitude": 10**400, "longitude": 1}},
        b"[" * 10_000,
        b'{"refused":' * 1_000 + b"3" + b"}" * 1_000,
        {"refused": {}, "code": "x"},
        {"refused": "x" * 9000, "code": "x"},
        {"refused": "x", "code": 3},
        {"refused": "x"},
        {"refused": _NESTED, "code": "x"},
        [3],
        b"\xff",
    ],
)
def test_an_answer_that_is_not_sound_is_none_and_builds_nothing(said: object) -> None:
    tracemalloc.start()
    try:
        assert decoding_child.answer(_said(said, bytes(6))) is None
        assert tracemalloc.get_traced_memory()[1] < 2e6
    finally:
        tracemalloc.stop()


def test_a_decoder_that_ends_its_process_costs_one_picture() -> None:
    decode_apart(_file(_noise(64), "TIFF"))
    worker = _children()

    def end() -> None:
        for one in worker:
            os.kill(one, 9)

    data = _png(12_000, 12_000)
    threading.Timer(0.3, end).start()
    with pytest.raises(BadImage, match="ends the program that decodes it"):
        decode_apart(data)
    assert decode_apart(_file(_noise(64), "TIFF")).width == 64


def test_a_jpeg_of_four_thousand_passes_is_refused_before_it_is_decoded() -> None:
    began = time.process_time()
    with pytest.raises(BadImage, match="passes; at most 100") as refused:
        decode_apart(four_thousand_passes())
    assert refused.value.code == "image_too_slow"
    assert time.process_time() - began < 2


def test_a_tiff_of_sixty_thousand_pages_is_its_first_page() -> None:
    began = time.process_time()
    found = decode_apart(sixty_thousand_pages())
    assert found.width == 32
    assert any("only the first is used" in note for note in found.notes)
    assert time.process_time() - began < 2


def test_the_process_ends_when_it_has_been_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "_IDLE_SECONDS", 0.1)
    decode_apart(_file(_noise(64), "TIFF"))
    deadline = time.monotonic() + 20
    while decoding._DECODER._child is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert decoding._DECODER._child is None
