"""Uploads that are damaged, hostile or odd, each made as a test asks for it."""

from __future__ import annotations

import gzip
import io
import json
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image

from ingest.limits import Limits
from tests.ingest.material import encoded, folder_of, picture, tar_of, zip_of

GOOD: dict[str, bytes | str] = {"good.png": picture(1), "good.txt": "a good picture"}
Maker = Callable[[Path], Path]


def zipped(members: dict[str, bytes | str]) -> Maker:
    return lambda folder: zip_of(folder / "upload.zip", members)


def tarred(members: dict[str, bytes | str]) -> Maker:
    return lambda folder: tar_of(folder / "upload.tar", members)


def one_file(name: str, data: bytes) -> Maker:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(data)
        return folder / name

    return make


def table(*lines: str | bytes, name: str = "captions.jsonl", **pictures: bytes) -> Maker:
    data = b"\n".join(line.encode() if isinstance(line, str) else line for line in lines)
    files = {f"{key}.png": value for key, value in pictures.items()} or {"good.png": picture(1)}
    return zipped({**files, name: data})


def record(image: str = "good.png", caption: object = "a good picture", **more: object) -> str:
    return json.dumps({"image": image, "caption": caption, **more})


def changed(make: Maker, change: Callable[[bytes], bytes]) -> Maker:
    def made(folder: Path) -> Path:
        path = make(folder)
        path.write_bytes(change(path.read_bytes()))
        return path

    return made


def encrypted(folder: Path) -> Path:
    """Sets the encryption bit of the second picture, in its local header and in the directory."""
    path = zip_of(folder / "upload.zip", {**GOOD, "secret.png": picture(2)})
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        data[archive.getinfo("secret.png").header_offset + 6] |= 1
    directory = data.rfind(b"PK\x01\x02")
    data[directory + 8] |= 1
    path.write_bytes(data)
    return path


def lying_size(folder: Path) -> Path:
    """Declares a smaller size for the last member than it unpacks to."""
    path = zip_of(folder / "upload.zip", {**GOOD, "lies.png": picture(2)})
    data = bytearray(path.read_bytes())
    struct.pack_into("<I", data, data.rfind(b"PK\x01\x02") + 24, 40)
    path.write_bytes(data)
    return path


def with_special(kind: str) -> Maker:
    def make_zip(folder: Path) -> Path:
        path = zip_of(folder / "upload.zip", GOOD)
        with zipfile.ZipFile(path, "a") as archive:
            info = zipfile.ZipInfo("link.png")
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, "/etc/passwd")
        return path

    def make_tar(folder: Path) -> Path:
        path = tar_of(folder / "upload.tar", GOOD)
        with tarfile.open(path, "a") as archive:
            info = tarfile.TarInfo("link.png")
            info.type = {
                "symlink": tarfile.SYMTYPE,
                "hardlink": tarfile.LNKTYPE,
                "device": tarfile.CHRTYPE,
            }.get(kind, tarfile.FIFOTYPE)
            info.linkname = "/etc/passwd"
            archive.addfile(info)
        return path

    def make_folder(folder: Path) -> Path:
        source = folder_of(folder / "upload", GOOD)
        (source / "link.png").symlink_to("/etc/passwd")
        return source

    return {"zip": make_zip, "folder": make_folder}.get(kind, make_tar)


def long_link_chain(folder: Path) -> Path:
    """The shape of CVE-2025-4517: links whose expanded path outgrows PATH_MAX, then a file through them."""
    path = tar_of(folder / "upload.tar", GOOD)
    long_name = "d" * 247
    with tarfile.open(path, "a") as archive:
        inner = ""
        for letter in "abcdefghijklmnop":
            directory = tarfile.TarInfo(f"{inner}{long_name}")
            directory.type = tarfile.DIRTYPE
            archive.addfile(directory)
            link = tarfile.TarInfo(f"{inner}{letter}")
            link.type, link.linkname = tarfile.SYMTYPE, long_name
            archive.addfile(link)
            inner += f"{long_name}/"
        escape = tarfile.TarInfo("escape.png")
        escape.type, escape.linkname = tarfile.SYMTYPE, "a/" * 16 + "../" * 20
        archive.addfile(escape)
        data = picture(2)
        through = tarfile.TarInfo("escape.png/marker.png")
        through.size = len(data)
        archive.addfile(through, io.BytesIO(data))
    return path


def overlapping(folder: Path) -> Path:
    """Many directory entries that share one compressed body."""
    body = zlib.compress(bytes(200_000), 9)[2:-4]
    crc = zlib.crc32(bytes(200_000))
    local = (
        struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 8, 0, 0, crc, len(body), 200_000, 5, 0)
        + b"a.png"
        + body
    )
    entry = struct.pack(
        "<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, crc, len(body), 200_000, 5, 0, 0, 0, 0, 0, 0
    )
    directory = (entry + b"a.png") * 15
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 15, 15, len(directory), len(local), 0)
    path = folder / "upload.zip"
    path.write_bytes(local + directory + end)
    return path


def gzip_bomb(folder: Path) -> Path:
    path = folder / "upload.tar.gz"
    with gzip.open(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        info = tarfile.TarInfo("bomb.png")
        info.size = 40 * 1024**2
        archive.addfile(info, io.BytesIO(bytes(info.size)))
    return path


def sparse_tar(folder: Path) -> Path:
    """An old GNU sparse member: a few bytes that read as four gigabytes."""
    path = tar_of(folder / "upload.tar", GOOD)
    info = tarfile.TarInfo("sparse.png")
    info.type = tarfile.GNUTYPE_SPARSE
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:410] = b"00000000000\0" + b"00000000000\0"
    header[483:495] = b"40000000000\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    data = path.read_bytes()
    end = len(data.rstrip(b"\0")) + 511 & ~511
    path.write_bytes(data[:end] + header + bytes(10240))
    return path


def in_folder(members: dict[str, bytes | str]) -> Maker:
    return lambda folder: folder_of(folder / "upload", members)


def four_thousand_passes() -> bytes:
    """A progressive JPEG whose last scan comes again and again."""
    drawn = encoded(
        Image.effect_noise((8, 8), 90).convert("RGB").resize((512, 512)), "JPEG", progressive=True
    )
    last = drawn[drawn.rindex(b"\xff\xda") : -2]
    return drawn[:-2] + last * 4000 + drawn[-2:]


def sixty_thousand_pages() -> bytes:
    """A TIFF whose pages all show the same pixels."""
    pixels = Image.effect_noise((32, 32), 90).convert("RGB").tobytes()
    told = [(256, 3, 1, 32), (257, 3, 1, 32), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 2)]
    told += [(273, 4, 1, 8), (277, 3, 1, 3), (278, 3, 1, 32), (279, 4, 1, len(pixels))]
    entries = struct.pack("<H", len(told)) + b"".join(struct.pack("<HHII", *one) for one in told)
    first = 8 + len(pixels)
    pages = 60_000
    chain = b"".join(
        entries + struct.pack("<I", first + (n + 1) * (len(entries) + 4) if n < pages - 1 else 0)
        for n in range(pages)
    )
    return struct.pack("<2sHI", b"II", 42, first) + pixels + chain


def parquet_bomb(folder: Path) -> Path:
    """One dictionary value of 16 MB, named by each of 256 rows: 4 GB out of a few kilobytes."""
    value = pa.DictionaryArray.from_arrays(
        pa.array([0] * 256, pa.int32()), pa.array([bytes(16 << 20)], pa.large_binary())
    )
    path = folder / "bomb.parquet"
    pq.write_table(pa.table({"image": value, "text": ["a"] * 256}), path, compression="zstd")
    return path


SMALL = Limits(items=20, unpacked_bytes=3 * 1024**2)
