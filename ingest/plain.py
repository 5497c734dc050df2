"""Which picture files are plain: few pixels, few and small parts beside them, in a format whose decoder is bounded.

Their parts are gone through here before a decoder sees them. Pillow's loops over parts take minutes where there are
millions, and EXIF whose entries all show the same bytes takes memory by the square of its length.
"""

from collections.abc import Iterator

from ingest.errors import BadImage
from ingest.images import open_picture
from ingest.limits import Limits

_MOST_PIXELS = {
    "JPEG": 16_000_000,
    "PNG": 16_000_000,
    "WEBP": 4_000_000,
}  # the last decodes to four times as much
_MOST_BESIDE = 64 * 1024  # bytes that are no pixels; cameras write some ten thousand
_MOST_PARTS = 4096  # a program that writes 8 kB at a time writes 16 megapixels in fewer
_JPEG, _PNG = b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n"
# Those that have a length, and that Pillow skips by it, too; the pixels begin behind the last.
_SEGMENTS, _SCAN = frozenset((*range(0xC0, 0xC3), 0xC4, 0xDB, 0xDD, *range(0xE0, 0xF0), 0xFE)), 0xDA


def is_plain(data: bytes, limits: Limits) -> bool:
    """Returns whether a file may be decoded where nothing limits its decoder."""
    if data.startswith(_JPEG):
        name, parts = "JPEG", _jpeg_parts(data)
    elif data.startswith(_PNG):
        name, parts = "PNG", _png_parts(data)
    elif data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        name, parts = "WEBP", _webp_parts(data)
    else:
        return False
    if not _are_few(parts):
        return False
    try:
        with open_picture(data, limits, formats=(name,)) as opened:
            return opened.format == name and opened.width * opened.height <= _MOST_PIXELS[name]
    except BadImage:
        return False


def _are_few(parts: Iterator[int | None]) -> bool:
    beside = 0
    for number, size in enumerate(parts):
        if size is None:
            return False
        beside += size
        if beside > _MOST_BESIDE or number >= _MOST_PARTS:
            return False
    return True


def _jpeg_parts(data: bytes) -> Iterator[int | None]:
    """Goes through what stands before a JPEG's pixels: the bytes of each segment, None for what is none."""
    at = 2
    while data[at : at + 1] == b"\xff" and at + 4 <= len(data):
        marker, size = data[at + 1], 2 + int.from_bytes(data[at + 2 : at + 4])
        if marker == _SCAN:
            return
        if marker not in _SEGMENTS or size < 4:
            break
        yield size
        at += size
    yield None


def _png_parts(data: bytes) -> Iterator[int | None]:
    """Goes through a PNG's chunks: the bytes of each that holds no pixels, 0 for one that does, None for none."""
    at = len(_PNG)
    while at + 12 <= len(data):
        name, size = data[at + 4 : at + 8], 12 + int.from_bytes(data[at : at + 4])
        yield 0 if name == b"IDAT" else size
        if name == b"IEND":
            return
        at += size
    yield None


def _webp_parts(data: bytes) -> Iterator[int | None]:
    """Goes through a WebP's one chunk: 0 where it holds the pixels and ends the file, None for any other."""
    size = 8 + int.from_bytes(data[16:20], "little")
    yield 0 if data[12:16] in (b"VP8 ", b"VP8L") and 12 + size + size % 2 == len(data) else None
