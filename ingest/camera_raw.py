"""Camera raw files: told by what they hold, and shown by the largest JPEG that the camera put into them.

Developing a sensor's data takes seconds a picture, and a taste; every camera stores the picture that it showed as
well, mostly in full size. It is looked for by what a JPEG begins with, in any maker's file. LibRaw, which knows them
all, crashes the process on some damaged ones (docs/log.md).
"""

import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

_OLYMPUS = (b"IIRO", b"IIRS", b"MMOR")
_PANASONIC = b"IIU\0"  # and Leica
_OTHERS = (
    b"FUJIFILMCCD-RAW",
    b"II\x1a\0\0\0HEAPCCDR",  # Canon's CRW
    b"\0MRM",  # Minolta
    b"FOVb",  # Sigma
)
_TIFF = (b"II*\0", b"MM\0*")
_WIDTH, _HEIGHT, _PHOTOMETRIC, _ORIENTATION, _BELOW, _DNG = 256, 257, 262, 274, 330, 50706
_OF_SENSORS = (32803, 34892)  # a colour filter array, and DNG's linear raw
_MOST_DIRECTORIES, _MOST_TAGS, _MOST_SEGMENTS = 16, 512, 64
_MOST_OF_ONE_SIZE = 2
SIDEWAYS = (5, 6, 7, 8)
"""EXIF's orientations that exchange width and height."""


@dataclass(frozen=True, slots=True)
class RawPreview:
    """The picture that a camera put beside its sensor's data."""

    data: bytes  # begins with a JPEG file
    width: int  # of the sensor's picture, upright, in pixels; of the preview where nothing states it
    height: int
    orientation: int  # of the sensor's picture as EXIF counts it, for a preview that does not state its own


@dataclass(frozen=True, slots=True)
class _Sensor:
    width: int = 0
    height: int = 0
    orientation: int = 1


def is_camera_raw(data: bytes) -> bool:
    """Returns whether a file holds a sensor's data; a TIFF is looked through for what only raw files say."""
    if data.startswith((*_OLYMPUS, _PANASONIC, *_OTHERS)) or data[4:12] == b"ftypcrx ":
        return True
    if not data.startswith(_TIFF):
        return False
    return data[8:10] == b"CR" or any(
        _DNG in directory or directory.get(_PHOTOMETRIC) in _OF_SENSORS for directory in _directories(data, 0)
    )


def preview_of(data: bytes) -> RawPreview | None:
    """Returns the largest JPEG in a raw file, None when there is none, or when the file is none."""
    if not is_camera_raw(data):
        return None
    found = list(_jpegs(data))
    # A sensor's data may be kept as JPEG, too, in many tiles of one size.
    tiles = {size for size, count in Counter(size for _, size in found).items() if count > _MOST_OF_ONE_SIZE}
    found = [one for one in found if one[1] not in tiles]
    if not found:
        return None
    start, (width, height) = max(found, key=lambda one: one[1][0] * one[1][1])
    sensor = _sensor(data)
    size = (sensor.width or width, sensor.height or height)
    width, height = size[::-1] if sensor.orientation in SIDEWAYS else size
    return RawPreview(data[start:], width, height, sensor.orientation)


def _jpegs(data: bytes) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yields where JPEG files begin that a viewer shows, and their width and height."""
    start = data.find(b"\xff\xd8\xff")
    while start >= 0:
        size = _jpeg_size(data, start + 2)
        if size is not None:
            yield start, size
        start = data.find(b"\xff\xd8\xff", start + 3)


def _jpeg_size(data: bytes, at: int) -> tuple[int, int] | None:
    """Returns the width and height that a JPEG's segments state, None when they are none of a picture to be shown."""
    for _ in range(_MOST_SEGMENTS):
        head = data[at : at + 9]
        if len(head) < 9 or head[0] != 0xFF:
            return None
        if head[1] in (0xC0, 0xC1, 0xC2):  # what sensors write without loss has 0xC3
            bits, height, width = struct.unpack_from(">BHH", head, 4)
            return (width, height) if bits == 8 and width and height else None
        if not 0xC4 <= head[1] <= 0xFE or head[1] in (0xC8, 0xD8, 0xD9, 0xDA):
            return None
        at += 2 + struct.unpack_from(">H", head, 2)[0]
    return None


def _sensor(data: bytes) -> _Sensor:
    """Returns what the directories of a raw file say of its picture."""
    at = 0
    if data[4:8] == b"ftyp":  # Canon's CR3 has a TIFF in a box
        at = data.find(b"CMT1", 0, 1 << 16) + 4
    found = _Sensor()
    for number, directory in enumerate(_directories(data, at)):
        if number == 0:
            found = replace(found, orientation=directory.get(_ORIENTATION, 1))
        if directory.get(_PHOTOMETRIC) in _OF_SENSORS:
            found = replace(found, width=directory.get(_WIDTH, 0), height=directory.get(_HEIGHT, 0))
    return found


def _directories(data: bytes, base: int) -> Iterator[dict[int, int]]:
    """Yields by tag its first number, of a TIFF's directories and of those below them; it begins at `base`."""
    order = {b"II": "<", b"MM": ">"}.get(data[base : base + 2])
    if order is None:
        return

    def number(kind: str, at: int) -> int:
        one = struct.Struct(order + kind)
        return int(one.unpack_from(data, base + at)[0]) if base + at + one.size <= len(data) else 0

    links = [4]  # where the places of directories are written
    for _ in range(_MOST_DIRECTORIES):
        at = number("I", links.pop(0)) if links else 0
        if not at:
            return
        directory: dict[int, int] = {}
        end = at + 2 + 12 * min(number("H", at), _MOST_TAGS)
        for entry in range(at + 2, end, 12):
            tag, kind, count = number("H", entry), number("H", entry + 2), number("I", entry + 4)
            directory[tag] = number("I" if kind in (4, 13) else "H", entry + 8)
            if tag == _BELOW:
                below = entry + 8 if count == 1 else directory[tag]
                links += [below + 4 * n for n in range(min(count, _MOST_DIRECTORIES))]
        yield directory
        links.append(end)
