"""Camera raw files made by hand, as small as LibRaw reads them."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

import numpy as np

_BYTE, _TEXT, _SHORT, _LONG, _RATIONAL = 1, 2, 3, 4, 10
_STRUCTS = {_BYTE: "B", _TEXT: "B", _SHORT: "H", _LONG: "I", _RATIONAL: "i"}
_ORDERS = {b"II": "<", b"MM": ">"}
Tags = Mapping[int, tuple[int, Sequence[int]]]


def dng(
    preview: bytes,
    *,
    preview_size: tuple[int, int],
    sensor: tuple[int, int] = (64, 48),
    orientation: int = 1,
    order: bytes = b"II",
    maker: bytes = b"Canon",
    has_preview: bool = True,
    is_bitmap: bool = False,
) -> bytes:
    """A DNG of a noisy sensor, whose first directory has a JPEG preview, or one of bare RGB pixels.

    Without `has_preview` its first directory is the sensor's.
    """
    width, height = sensor
    kind = _ORDERS[order] + "u2"
    pixels = np.random.default_rng(1).integers(0, 4095, (height, width)).astype(kind).tobytes()

    def tags(preview_at: int, sensor_at: int, below: int) -> tuple[Tags, Tags]:
        whole: dict[int, tuple[int, Sequence[int]]] = {
            271: (_TEXT, maker + b"\0"),
            272: (_TEXT, b"EOS Test\0"),
            274: (_SHORT, [orientation]),
            50706: (_BYTE, [1, 4, 0, 0]),
            50708: (_TEXT, b"Canon EOS Test\0"),
            50721: (_RATIONAL, [1, 1, 0, 1, 0, 1, 0, 1, 1, 1, 0, 1, 0, 1, 0, 1, 1, 1]),
        }
        shown = {
            254: (_LONG, [1]),
            256: (_LONG, [preview_size[0]]),
            257: (_LONG, [preview_size[1]]),
            258: (_SHORT, [8, 8, 8]),
            259: (_SHORT, [1 if is_bitmap else 7]),
            262: (_SHORT, [2 if is_bitmap else 6]),
            273: (_LONG, [preview_at]),
            277: (_SHORT, [3]),
            278: (_LONG, [preview_size[1]]),
            279: (_LONG, [len(preview)]),
            330: (_LONG, [below]),
        }
        raw = {
            254: (_LONG, [0]),
            256: (_LONG, [width]),
            257: (_LONG, [height]),
            258: (_SHORT, [16]),
            259: (_SHORT, [1]),
            262: (_SHORT, [32803]),
            273: (_LONG, [sensor_at]),
            277: (_SHORT, [1]),
            278: (_LONG, [height]),
            279: (_LONG, [len(pixels)]),
            33421: (_SHORT, [2, 2]),
            33422: (_BYTE, [0, 1, 1, 2]),
        }
        return (whole | shown, raw) if has_preview else (whole | raw, raw)

    first, second = (_directory(one, 0, order) for one in tags(0, 0, 0))
    below = 8 + len(first)
    preview_at = below + len(second)
    sensor_at = preview_at + len(preview) + len(preview) % 2
    first_tags, second_tags = tags(preview_at, sensor_at, below)
    head = order + struct.pack(_ORDERS[order] + "HI", 42, 8)
    directories = _directory(first_tags, 8, order) + _directory(second_tags, below, order)
    return head + directories + preview + bytes(len(preview) % 2) + pixels


def _directory(tags: Tags, at: int, order: bytes) -> bytes:
    """A TIFF directory that lies at `at`, with what its tags hold behind it."""
    sign = _ORDERS[order]
    entries, behind = b"", b""
    after = at + 2 + 12 * len(tags) + 4
    for tag, (kind, values) in sorted(tags.items()):
        data = struct.pack(f"{sign}{len(values)}{_STRUCTS[kind]}", *values)
        count = len(values) // (2 if kind == _RATIONAL else 1)
        entries += struct.pack(sign + "HHI", tag, kind, count)
        if len(data) <= 4:
            entries += data.ljust(4, b"\0")
        else:
            entries += struct.pack(sign + "I", after + len(behind))
            behind += data + bytes(len(data) % 2)
    return struct.pack(sign + "H", len(tags)) + entries + bytes(4) + behind
