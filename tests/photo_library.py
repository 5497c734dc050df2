"""A photo library as people have one, of 600 files: `python -m tests.photo_library FOLDER`.

Albums of several years by several cameras, in every format, with what was written into pictures and beside them,
copies, a phone's hidden trash, a NAS's thumbnails, videos, links and damage. Every picture is a drawn scene, so what is
to be seen on it is known. The same seed writes the same library.
"""

from __future__ import annotations

import csv
import io
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ingest.samples.scenes import STYLES, Scene, all_scenes, caption, draw
from tests.ingest.icc_profiles import DISPLAY_P3, cmyk_profile, rgb_profile
from tests.ingest.material import encoded
from tests.ingest.metadata import exif_bytes, iptc_records, photoshop_segment, xmp_packet
from tests.ingest.raw_files import dng

FILES = 600
_SIZE = (240, 192)
_APPLE, _CANON, _NIKON = (
    ("Apple", "iPhone 13"),
    ("Canon", "Canon EOS 80D"),
    ("NIKON CORPORATION", "NIKON D750"),
)
_SONY, _OLYMPUS = ("SONY", "ILCE-7M3"), ("OLYMPUS IMAGING CORP.", "E-M10MarkII")
_GOOGLE = ("Google", "Pixel 7")
_TURNED_BACK = {
    1: 0,
    3: 180,
    6: 90,
    8: 270,
}  # by EXIF's orientation, how the stored picture is turned against the shown


@dataclass(frozen=True)
class LibraryFile:
    """A file of the library, and what taking the library in makes of it."""

    path: str  # below the library's folder, with slashes
    fate: str  # picture, refused, ignored, hidden, or beside: it says something of a picture
    code: str = ""  # of a refused one, as the report has it
    caption: str = ""  # of a picture: what is to be seen, in English
    told_in: str = (
        ""  # where the file or one beside it has the caption: exif, iptc, xmp, sidecar, txt, csv, takeout
    )
    taken: str | None = None  # as its EXIF says: local time, ISO 8601
    camera: str | None = None
    place: tuple[float, float] | None = None  # latitude and longitude, in degrees
    copy_of: str | None = None  # the path of the first file of the same bytes

    @property
    def folder(self) -> str:
        """The folder that it lies in."""
        return self.path.rpartition("/")[0]


@dataclass(frozen=True)
class Album:
    """A folder of pictures that one camera took within some days."""

    folder: str
    start: str  # local time, ISO 8601
    camera: tuple[str, str] | None
    place: tuple[float, float] | None
    names: str  # of its pictures, by their number


ALBUMS = (
    Album("2014/Hochzeit Müller", "2014-05-17T11:00", _CANON, (52.5163, 13.3777), "IMG_{:04}.JPG"),
    Album("2016/2016-08 Bretagne", "2016-08-03T09:00", _NIKON, (48.6361, -1.5115), "DSC_{:04}.JPG"),
    Album("2017/東京", "2017-04-02T08:00", _OLYMPUS, (35.6586, 139.7454), "P4020{:03}.JPG"),
    Album("2019/🏖️ Strand", "2019-07-04T12:00", _APPLE, (-33.8915, 151.2767), "IMG_{:04}.JPG"),
    Album("2021/Garten", "2021-06-12T18:00", _SONY, None, "DSC0{:04}.JPG"),
    Album("Handy/WhatsApp Images", "2022-01-05T20:00", None, None, "IMG-20220105-WA{:04}.jpg"),
    Album("Handy/DCIM/Camera", "2023-09-01T07:00", _GOOGLE, (40.6892, -74.0445), "PXL_20230901_{:06}.jpg"),
)


class _Library:
    """What has been written so far."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.files: list[LibraryFile] = []
        self._folder = folder
        self._random = random.Random(seed)
        self._scenes: Iterator[Scene] = iter(self._random.sample(list(all_scenes()), FILES))
        self._numbers: Counter[str] = Counter()  # of pictures, by album

    def put(self, path: str, data: bytes, fate: str, code: str = "") -> None:
        """Writes a file that is no picture."""
        self._write(LibraryFile(path, fate, code), data)

    def drawn(self) -> tuple[Image.Image, str]:
        """Returns the next scene and what it shows."""
        scene = next(self._scenes)
        picture = draw(scene, self._random.choice(STYLES), size=_SIZE[0], seed=self._random.randrange(1_000))
        top = (_SIZE[0] - _SIZE[1]) // 2
        return picture.crop((0, top, _SIZE[0], top + _SIZE[1])), caption(scene, "en", variant=2)

    def picture(
        self,
        album: Album,
        *,
        name: str | None = None,
        format: str = "JPEG",
        told_in: str = "",
        orientation: int = 1,
        **options: Any,
    ) -> LibraryFile:
        """Writes the album's next picture with what its camera and its owner say of it."""
        image, words = self.drawn()
        self._numbers[album.folder] += 1
        number = self._numbers[album.folder]
        when = datetime.fromisoformat(album.start) + timedelta(minutes=37 * number)
        stated: dict[str, Any] = {"orientation": orientation}
        if album.camera is not None:
            stated |= {
                "taken": f"{when:%Y:%m:%d %H:%M:%S}",
                "make": album.camera[0],
                "model": album.camera[1],
            }
            stated |= {"place": album.place, "offset": "+02:00" if number % 3 else None}
        file = LibraryFile(
            f"{album.folder}/{name or album.names.format(number)}",
            "picture",
            caption=words,
            told_in=told_in,
            taken=when.isoformat() + ("+02:00" if number % 3 else "") if album.camera else None,
            camera=_shown(album.camera),
            place=album.place if album.camera else None,
        )
        if told_in == "exif":
            stated["description"] = words
        elif album.camera == _OLYMPUS:
            stated["description"] = "OLYMPUS DIGITAL CAMERA         "
        if format not in ("GIF", "BMP", "MPO"):
            options["exif"] = exif_bytes(**stated)
        if told_in == "iptc":
            options["extra"] = photoshop_segment(iptc_records(caption=words, keywords=["holiday"]))
        elif told_in == "xmp":
            options["xmp"] = xmp_packet(description={"x-default": words, "en": words}, keywords=["holiday"])
        turned = image.rotate(_TURNED_BACK[orientation], expand=True)
        self._write(file, encoded(turned, format, **options))
        return file

    def special(self, path: str, data: bytes, words: str, **facts: Any) -> LibraryFile:
        """Writes a picture that no album's camera took."""
        return self._write(LibraryFile(path, "picture", caption=words, **facts), data)

    def beside(self, file: LibraryFile, suffix: str, data: bytes, *, whole_name: bool = False) -> None:
        """Writes a file that says something of a picture."""
        stem = file.path if whole_name else file.path.rpartition(".")[0]
        self.put(stem + suffix, data, "beside")

    def copy(self, file: LibraryFile, path: str) -> None:
        """Writes the bytes of a picture once more."""
        copied = replace(file, path=path, copy_of=file.path)
        self._write(copied, (self._folder / file.path).read_bytes())

    def link(self, path: str, target: str, *, is_folder: bool = False) -> None:
        """Makes a symbolic link, which is refused."""
        self.files.append(LibraryFile(path, "refused", "special_file"))
        made = self._folder / path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.symlink_to(self._folder / target, target_is_directory=is_folder)

    def _write(self, file: LibraryFile, data: bytes) -> LibraryFile:
        made = self._folder / file.path
        made.parent.mkdir(parents=True, exist_ok=True)
        made.write_bytes(data)
        self.files.append(file)
        return file


def write_library(folder: Path, seed: int = 1, *, files: int = FILES) -> list[LibraryFile]:
    """Writes the library into an empty folder and returns what is in it; fewer files are fewer plain ones."""
    library = _Library(folder, seed)
    _write_formats(library)
    _write_captions(library)
    _write_odd_names(library)
    _write_what_is_no_picture(library)
    for number in range(files - len(library.files)):
        library.picture(ALBUMS[number % len(ALBUMS)], orientation=(1, 1, 1, 6, 1, 8, 1, 3)[number % 8])
    return library.files


def _write_formats(library: _Library) -> None:
    beach, garden, phone = ALBUMS[3], ALBUMS[4], ALBUMS[6]
    for number in range(40):
        name = f"IMG_{5000 + number}.HEIC"
        library.picture(beach, name=name, format="HEIF", orientation=(1, 6, 3, 8)[number % 4], quality=70)
    for number in range(12):
        library.picture(phone, name=f"still_{number}.avif", format="AVIF", speed=10)
        library.picture(
            phone, name=f"sticker_{number}.webp", format="WEBP", orientation=6 if number < 3 else 1
        )
    for number in range(6):
        image, words = library.drawn()
        data = dng(
            encoded(image, "JPEG"),
            preview_size=image.size,
            sensor=(600, 480),
            order=(b"II", b"MM")[number % 2],
            maker=b"Canon",
        )
        name = f"{garden.folder}/RAW/IMG_{number:04}{('.CR2', '.DNG', '.NEF')[number % 3]}"
        library.special(name, data, words, camera="Canon EOS Test")
    library.picture(beach, name="P3.JPG", icc_profile=rgb_profile(DISPLAY_P3))
    library.picture(garden, name="progressive.jpg", progressive=True)
    more = Image.effect_noise(_SIZE, 80).convert("RGB")
    several: dict[str, tuple[str, dict[str, Any]]] = {
        "burst.heic": ("HEIF", {"save_all": True, "append_images": [more]}),
        "dance.gif": ("GIF", {"save_all": True, "append_images": [more]}),
        "dance.webp": ("WEBP", {"save_all": True, "append_images": [more]}),
        "dance.avif": ("AVIF", {"save_all": True, "append_images": [more], "speed": 10}),
        "letters.tif": ("TIFF", {"save_all": True, "append_images": [more]}),
        "stereo.jpg": ("MPO", {"save_all": True, "append_images": [more]}),
        "paint.bmp": ("BMP", {}),
    }
    for name, (format, options) in several.items():
        image, words = library.drawn()
        library.special(f"Verschiedenes/{name}", encoded(image, format, **options), words)
    for number in range(3):
        image, words = library.drawn()
        wide = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257)
        library.special(f"Scans/16 bit {number}.png", encoded(wide), words)
        image, words = library.drawn()
        library.special(
            f"Scans/Druck {number}.jpg",
            encoded(image.convert("CMYK"), "JPEG", icc_profile=cmyk_profile()),
            words,
        )
        image, words = library.drawn()
        image.putalpha(
            Image.radial_gradient("L").resize(image.size).point(lambda level: 255 if level < 200 else 0)
        )
        library.special(f"Scans/freigestellt {number}.png", encoded(image), words)
        image, words = library.drawn()
        library.special(f"Scans/grau {number}.jpg", encoded(image.convert("L"), "JPEG"), words)


def _write_captions(library: _Library) -> None:
    wedding, brittany, tokyo, beach = ALBUMS[:4]
    for _ in range(10):
        library.picture(wedding, told_in="iptc")
        library.picture(brittany, told_in="xmp")
        library.picture(tokyo, told_in="exif")
    for _ in range(8):
        file = library.picture(brittany, told_in="sidecar")
        library.beside(file, ".xmp", xmp_packet(description={"x-default": file.caption, "en": file.caption}))
        file = library.picture(tokyo, told_in="txt")
        library.beside(file, ".txt", f"{file.caption}\n".encode())
        file = library.picture(beach, told_in="takeout")
        takeout = {
            "title": file.path.rpartition("/")[2],
            "description": file.caption,
            "geoData": {"latitude": 0.0},
        }
        library.beside(file, ".json", json.dumps(takeout).encode(), whole_name=True)
    table = io.StringIO()
    rows = csv.writer(table)
    rows.writerow(("id", "file_name", "caption", "language", "photographer"))
    archive = replace(wedding, folder="Archiv")
    for number in range(30):
        name = f"{number:03}.jpg"
        file = library.picture(archive, name=name, told_in="csv")
        rows.writerow((f"ARCHIVE-{number:05}", name, file.caption, "en", "Ana Núñez"))
    library.put("Archiv/captions.csv", table.getvalue().encode(), "beside")


def _write_odd_names(library: _Library) -> None:
    image, words = library.drawn()
    library.special("Panorama.jpg/teil 1.jpg", encoded(image, "JPEG"), words)
    library.files.append(LibraryFile("Panorama.jpg", "refused", "folder"))
    for path in (
        "Freunde/Zo\u00eb/Geburtstag \u00e4\u00f6\u00fc.jpg",
        "Freunde/Rene\u0301/Geburtstag a\u0308o\u0308u\u0308.jpg",
        "Freunde/\U0001f469\u200d\U0001f4bb\U0001f389/\U0001f382.jpg",
        f"Freunde/{'w' * 251}.jpg",
        "Freunde/" + "\u00fc" * 125 + ".jpg",
        "Freunde/a, b; \"c\" 'd' #1 %20.jpg",
        "Freunde/no suffix at all.JPEG",
    ):
        image, words = library.drawn()
        library.special(path, encoded(image, "JPEG"), words)
    for number, file in enumerate([one for one in library.files if one.fate == "picture"][:80:8]):
        library.copy(file, f"Beste Bilder/{number:02} {file.path.rpartition('/')[2]}")
    library.link("Beste Bilder/alle", ".", is_folder=True)
    library.link("Beste Bilder/verlinkt.jpg", library.files[0].path)
    library.link("Beste Bilder/verwaist.jpg", "gone.jpg")


def _write_what_is_no_picture(library: _Library) -> None:
    image, _ = library.drawn()
    jpeg = encoded(image, "JPEG")
    movie = b"\0\0\0\x14ftypqt  \0\0\0\0qt  " + bytes(2_000)
    refused = {
        "2019/🏖️ Strand/IMG_5000.MOV": (movie, "image_video"),
        "Handy/DCIM/Camera/VID_20230901.mp4": (
            b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + bytes(2_000),
            "image_video",
        ),
        "Handy/DCIM/Camera/VID renamed.jpg": (movie, "image_video"),
        "Handy/leer.jpg": (b"", "image_empty"),
        "Handy/halb übertragen.jpg": (jpeg[: len(jpeg) // 2], "image_truncated"),
        "Handy/kaputt.heic": (encoded(image, "HEIF")[:300], "image_unreadable"),
        "Handy/Anmeldung.jpg": (b"<!doctype html><html>Please sign in</html>", "image_unsupported"),
        "Verschiedenes/Logo.svg": (b'<svg xmlns="http://www.w3.org/2000/svg"/>', "image_unsupported"),
        "Verschiedenes/Entwurf.psd": (b"8BPS\0\x01" + bytes(100), "image_unsupported"),
        "Verschiedenes/Rechnung.pdf": (b"%PDF-1.7", "image_unsupported"),
        "Verschiedenes/punkt.png": (encoded(Image.new("RGB", (4, 4), "red")), "image_too_small"),
        "Verschiedenes/strich.png": (encoded(image.resize((2_000, 20))), "image_too_long"),
        "Verschiedenes/schwarz.png": (encoded(Image.new("RGB", _SIZE)), "image_flat"),
        "Scans/hoehen.tif": (encoded(image.convert("F"), "TIFF"), "image_depth"),
        "2021/Garten/RAW/ohne Vorschau.DNG": (
            dng(b"", preview_size=(1, 1), has_preview=False),
            "image_no_preview",
        ),
        "Verschiedenes/Einkaufsliste.txt": (b"milk\n", "image_missing"),
        "Verschiedenes/Sicherung.zip": (b"PK\x03\x04", "nested_archive"),
    }
    for path, (data, code) in refused.items():
        library.put(path, data, "refused", code)
    for path in ("README.txt", "Verschiedenes/Brief.docx", "2019/🏖️ Strand/IMG_5001.AAE", "Handy/backup.db"):
        library.put(path, b"words", "ignored")
    for path in (
        "Thumbs.db",
        "2014/.DS_Store",
        "Scans/desktop.ini",
        "2014/._IMG_0001.JPG",
        "@eaDir/IMG_1.JPG/THUMB.jpg",
    ):
        library.put(path, jpeg, "ignored")
    for path in (
        "Handy/DCIM/.thumbnails/1.jpg",
        "Handy/DCIM/Camera/.trashed-1700000000-PXL_1.jpg",
        "Scans/.unfertig.png",
    ):
        library.put(path, jpeg, "hidden")


def _shown(camera: tuple[str, str] | None) -> str | None:
    if camera is None:
        return None
    maker, model = camera
    return {_CANON: model, _NIKON: model, _OLYMPUS: f"OLYMPUS {model}"}.get(camera, f"{maker} {model}")


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if target.exists() and any(target.iterdir()):
        sys.exit(f"{target} is not empty: name a folder that is to be made.")
    found = write_library(target)
    for fate in dict.fromkeys(file.fate for file in found):
        print(f"{fate:8} {sum(file.fate == fate for file in found)}")
