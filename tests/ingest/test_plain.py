"""Claims about plain pictures: what cameras and programs write is plain, and what is heavy by its structure is not."""

from __future__ import annotations

import io
import struct
import time
import zlib
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from PIL import Image

from ingest.limits import DEFAULT_LIMITS
from ingest.plain import is_plain

Made = Callable[[], bytes]
"""Makes a file when its test runs: each process of a test run goes through all parameters."""


def _drawn(kind: str, side: int = 64, **how: object) -> bytes:
    target = io.BytesIO()
    pixels = np.random.default_rng(side).integers(0, 255, (side, side, 3), np.uint8)
    Image.fromarray(pixels).save(target, kind, **how)
    return target.getvalue()


def _chunk(name: bytes, data: bytes = b"") -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _exif(entries: int, size: int) -> bytes:
    """A TIFF head whose entries all show the same bytes."""
    at = 8 + 2 + 12 * entries + 4
    told = b"".join(struct.pack("<HHII", 1000 + n, 7, size, at) for n in range(entries))
    return struct.pack("<2sHIH", b"II", 42, 8, entries) + told + bytes(4) + b"\1" * size


def _in_png(parts: bytes) -> bytes:
    drawn = _drawn("PNG")
    return drawn[:33] + parts + drawn[33:]


def _in_jpeg(parts: bytes) -> bytes:
    drawn = _drawn("JPEG")
    return drawn[:2] + parts + drawn[2:]


@pytest.mark.parametrize(
    "made",
    [
        lambda: _drawn("JPEG", 900),
        lambda: _drawn("JPEG", progressive=True, exif=_exif(3, 20_000), icc_profile=b"\0" * 3000),
        lambda: _drawn("PNG", 900, exif=_exif(3, 20_000), icc_profile=b"\0" * 3000),
        lambda: _drawn("WEBP", 900),
        lambda: _drawn("WEBP", 900, lossless=True),
    ],
    ids=["JPEG", "JPEG with EXIF", "PNG", "WEBP", "lossless WEBP"],
)
def test_what_cameras_write_is_plain(made: Made) -> None:
    assert is_plain(made(), DEFAULT_LIMITS)


@pytest.mark.parametrize(
    "made",
    [
        lambda: b"II+\0",
        lambda: b"MM\0+",
        lambda: b"II\0*",
        lambda: b"MM*\0",
        *(partial(_drawn, kind) for kind in ("TIFF", "GIF", "BMP", "HEIF")),
    ],
    ids=["II+", "MM+", "II 0*", "MM*0", "TIFF", "GIF", "BMP", "HEIF"],
)
def test_other_formats_are_not_whatever_they_begin_with(made: Made) -> None:
    assert not is_plain(made(), DEFAULT_LIMITS)


@pytest.mark.parametrize(
    "made",
    [
        lambda: _in_png(_chunk(b"prVt") * 500_000),
        lambda: _in_png(_chunk(b"IDAT") * 500_000),
        lambda: _in_png(_chunk(b"eXIf", _exif(3000, 1_000_000))),
        lambda: _in_jpeg(b"\xff\xe5\0\2" * 1_000_000),
        lambda: _in_jpeg(b"\xff\xe5\0\3\0" * 1_000_000),
        lambda: _in_jpeg(b"\xff" * 4_000_000),
        lambda: _in_jpeg(b"\xff\xd8" * 2_000_000),
        lambda: _in_jpeg(b"".join(b"\xff\xe1\xff\xf0Exif\0\0" + bytes(0xFFE8) for _ in range(20))),
        lambda: _drawn("PNG", 4100),
        lambda: _drawn("PNG")[:-30],
        lambda: _drawn("JPEG")[:300],
        lambda: _drawn("WEBP", 2100),
        lambda: _drawn("WEBP", exif=_exif(3, 1000)),
        lambda: _drawn("WEBP") + b"more",
    ],
    ids=["chunks", "pixel chunks", "EXIF", "segments", "small ones", "fill", "starts", "long EXIF", "16.8 MP"]
    + ["cut PNG", "cut JPEG", "4.4 MP", "WEBP with EXIF", "longer WEBP"],
)  # fmt: skip
def test_what_is_heavy_or_damaged_is_not_and_that_is_seen_at_once(made: Made) -> None:
    data = made()
    began = time.process_time()
    assert not is_plain(data, DEFAULT_LIMITS)
    assert time.process_time() - began < 0.1
