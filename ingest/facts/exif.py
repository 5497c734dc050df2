"""EXIF, as Pillow reads it, of pictures and of cameras' raw files."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from PIL import ExifTags, Image

from ingest.facts.record import PictureFacts, camera_name, caption_of, moment, position

Tags = Mapping[int, Any]
_CANON_HEAD = 1 << 16


@dataclass(frozen=True, slots=True)
class ExifTagSets:
    """The three directories of EXIF that are read."""

    image: Tags = field(default_factory=dict)
    photo: Tags = field(default_factory=dict)
    place: Tags = field(default_factory=dict)


def exif_facts(tags: ExifTagSets) -> PictureFacts:
    """Returns what EXIF says."""
    base, gps = ExifTags.Base, ExifTags.GPS
    latitude, longitude = position(
        _degrees(tags.place.get(gps.GPSLatitude), tags.place.get(gps.GPSLatitudeRef), "S"),
        _degrees(tags.place.get(gps.GPSLongitude), tags.place.get(gps.GPSLongitudeRef), "W"),
    )
    described = caption_of(_text(tags.image.get(base.ImageDescription)), "EXIF description")
    return PictureFacts(
        taken=moment(tags.photo.get(base.DateTimeOriginal), tags.photo.get(base.OffsetTimeOriginal)),
        camera=camera_name(_text(tags.image.get(base.Make)), _text(tags.image.get(base.Model))),
        latitude=latitude,
        longitude=longitude,
        captions=(described,) if described else (),
    )


def exif_of(exif: Image.Exif | bytes) -> ExifTagSets:
    """Returns the directories of what Pillow has read, or of a TIFF."""
    exif = _loaded(exif) if isinstance(exif, bytes) else exif
    return ExifTagSets(exif, exif.get_ifd(ExifTags.IFD.Exif), exif.get_ifd(ExifTags.IFD.GPSInfo))


def exif_of_raw(data: bytes) -> ExifTagSets:
    """Returns the directories of a camera's raw file that is a TIFF but for its first bytes, or is Canon's CR3."""
    if data[4:8] == b"ftyp":
        head = data[:_CANON_HEAD]
        return ExifTagSets(*(_loaded(head.partition(box)[2]) for box in (b"CMT1", b"CMT2", b"CMT4")))
    return exif_of(data[:2] + (b"*\0" if data.startswith(b"II") else b"\0*") + data[4:])


def _loaded(tiff: bytes) -> Image.Exif:
    exif = Image.Exif()
    if tiff:
        exif.load(tiff)
    return exif


def _text(value: object) -> str | None:
    """Returns a text that Pillow has read as Latin, as the UTF-8 that most programs write."""
    if not isinstance(value, str):
        return None
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return value


def _degrees(parts: object, reference: object, negative: str) -> float | None:
    """Returns degrees of degrees, minutes and seconds."""
    if not isinstance(parts, tuple) or not 1 <= len(parts) <= 3:
        return None
    degrees = math.fsum(float(part) / 60**n for n, part in enumerate(parts))
    if not math.isfinite(degrees) or degrees < 0:
        return None
    return -degrees if isinstance(reference, str) and reference.strip(" \0").upper() == negative else degrees
