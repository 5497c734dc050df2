"""ICC profiles made by hand: of RGB by primaries and gamma, of grey by gamma, and of CMYK by a small table."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import product

# Primaries in XYZ under D50, a row for each of red, green and blue.
DISPLAY_P3 = ((0.51512, 0.24120, -0.00105), (0.29198, 0.69225, 0.04189), (0.15710, 0.06657, 0.78407))
ADOBE_RGB = ((0.60974, 0.31111, 0.01947), (0.20528, 0.62567, 0.06087), (0.14919, 0.06322, 0.74457))
SRGB = ((0.43607, 0.22249, 0.01392), (0.38515, 0.71687, 0.09708), (0.14307, 0.06061, 0.71410))
_D50 = (0.9642, 1.0, 0.8249)


def rgb_profile(primaries: Sequence[Sequence[float]], gamma: float = 2.2) -> bytes:
    """A matrix profile."""
    curve = _curve(gamma)
    tags = {b"wtpt": _xyz(_D50)}
    for letter, primary in zip((b"r", b"g", b"b"), primaries, strict=True):
        tags |= {letter + b"XYZ": _xyz(primary), letter + b"TRC": curve}
    return _profile(b"mntr", b"RGB ", b"XYZ ", tags)


def grey_profile(gamma: float) -> bytes:
    return _profile(b"mntr", b"GRAY", b"XYZ ", {b"wtpt": _xyz(_D50), b"kTRC": _curve(gamma)})


def cmyk_profile() -> bytes:
    """One in which full cyan, magenta and yellow are grey, which no formula without a profile makes of them."""
    corners = b""
    for *inks, black in product((0, 1), repeat=4):
        light = 0 if black else 255 - 43 * sum(inks)
        corners += bytes((light, 128, 128))
    ramp = bytes(range(256))
    matrix = struct.pack(">9i", *(65536 if n % 4 == 0 else 0 for n in range(9)))
    table = b"mft1" + bytes(4) + bytes((4, 3, 2, 0)) + matrix + 4 * ramp + corners + 3 * ramp
    return _profile(b"prtr", b"CMYK", b"Lab ", {b"wtpt": _xyz(_D50), b"A2B0": table})


def _curve(gamma: float) -> bytes:
    return b"curv" + bytes(4) + struct.pack(">IH", 1, round(gamma * 256)) + bytes(2)


def _xyz(values: Sequence[float]) -> bytes:
    return b"XYZ " + bytes(4) + struct.pack(">3i", *(round(value * 65536) for value in values))


def _profile(kind: bytes, colours: bytes, connection: bytes, tags: dict[bytes, bytes]) -> bytes:
    tags = {b"desc": b"desc" + bytes(4) + struct.pack(">I", 5) + b"test\0" + bytes(79)} | tags
    at = 128 + 4 + 12 * len(tags)
    table, data = struct.pack(">I", len(tags)), b""
    for name, value in tags.items():
        value += bytes(-len(value) % 4)
        table += name + struct.pack(">II", at + len(data), len(value))
        data += value
    head = struct.pack(">I4sI4s4s4s", at + len(data), b"test", 0x02400000, kind, colours, connection)
    head += struct.pack(">6H4s", 2026, 1, 1, 0, 0, 0, b"acsp")
    head = head.ljust(64, b"\0") + struct.pack(">I3i", 0, *(round(value * 65536) for value in _D50))
    return head.ljust(128, b"\0") + table + data
