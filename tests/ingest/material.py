"""Small pictures and archives for the ingest tests, made on the spot."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pillow_heif
from PIL import Image

pillow_heif.register_heif_opener()


def picture(
    number: int = 0, *, size: tuple[int, int] = (24, 24), format: str = "PNG", mode: str = "RGB"
) -> bytes:
    """A picture file whose content depends on `number`."""
    image = Image.new("RGB", size, (number % 251, 40, 90))
    for step in range(8):
        image.putpixel((step, (number >> step) % size[1]), (255, 255, 255 - step))
    return encoded(image.convert(mode), format)


def encoded(image: Image.Image, format: str = "PNG", **options: object) -> bytes:
    target = io.BytesIO()
    image.save(target, format=format, **options)
    return target.getvalue()


def resaved(image: Image.Image, format: str, *, scale: float = 1.0, **options: object) -> Image.Image:
    """A picture scaled, encoded and decoded again."""
    size = (round(image.width * scale), round(image.height * scale))
    data = encoded(image.resize(size, Image.Resampling.BICUBIC), format, **options)
    return Image.open(io.BytesIO(data)).convert("RGB")


def zip_of(path: Path, members: Mapping[str, bytes | str]) -> Path:
    return zip_of_pairs(path, list(members.items()))


def zip_of_pairs(path: Path, members: Sequence[tuple[str, bytes | str]]) -> Path:
    """A zip in which a name may stand twice."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return path


def tar_of(path: Path, members: Mapping[str, bytes | str], mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        for name, data in members.items():
            content = data.encode() if isinstance(data, str) else data
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def folder_of(path: Path, members: Mapping[str, bytes | str]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, data in members.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data.encode() if isinstance(data, str) else data)
    return path
