"""Measures how long very large pictures take to decode and how much memory, each in a process of its own.

    python benchmarks/large_pictures.py

Prints the table of `docs/ingest.md`. Pictures are noise that was made smooth, which no format packs away.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image

from ingest.images import decode

MEGABYTE = 1e6
PHONE, LARGEST = (8064, 6048), (16320, 12240)
PICTURES: tuple[tuple[str, str, tuple[int, int], dict[str, object]], ...] = (
    ("JPEG", "JPEG", PHONE, {"quality": 90}),
    ("PNG", "PNG", PHONE, {"compress_level": 1}),
    ("HEIC", "HEIF", PHONE, {"quality": 50}),
    ("AVIF", "AVIF", PHONE, {"speed": 10}),
    ("WebP", "WEBP", PHONE, {"method": 0}),
    ("TIFF", "TIFF", PHONE, {"compression": "tiff_lzw"}),
    ("JPEG", "JPEG", LARGEST, {"quality": 90}),
    ("progressive JPEG", "JPEG", LARGEST, {"quality": 80, "progressive": True}),
    ("progressive JPEG, 4:4:4", "JPEG", LARGEST, {"quality": 80, "progressive": True, "subsampling": 0}),
    ("PNG", "PNG", LARGEST, {"compress_level": 1}),
)


def made(format: str, size: tuple[int, int], options: dict[str, object]) -> bytes:
    """Returns a picture file."""
    tile = np.asarray(Image.effect_noise((512, 512), 60).convert("RGB").resize((1024, 1024)))
    width, height = size
    pixels = np.tile(tile, (-(-height // 1024), -(-width // 1024), 1))[:height, :width]
    target = io.BytesIO()
    Image.fromarray(pixels).save(target, format, **options)
    return target.getvalue()


def peak() -> int:
    """Returns the most bytes of memory that this process has had at once; what started it does not count (Linux)."""
    return int(re.findall(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[0]) * 1024


def decoded_here() -> None:
    """Decodes what comes in and says its size, the seconds and the bytes of memory on top of the file's own."""
    data = sys.stdin.buffer.read()
    before, start = peak(), time.perf_counter()
    picture = decode(data)
    print(*picture.image.size, time.perf_counter() - start, peak() - before)


def main() -> None:
    """Prints the table."""
    print("| picture | file, MB | decoded to | seconds | memory beside the file, MB |\n|---|---|---|---|---|")
    for name, format, size, options in PICTURES:
        data = made(format, size, options)
        command = [sys.executable, __file__, "decode"]
        said = subprocess.run(command, input=data, capture_output=True, check=True).stdout.split()
        width, height, seconds, grown = int(said[0]), int(said[1]), float(said[2]), int(said[3])
        pixels = size[0] * size[1] / MEGABYTE
        print(
            f"| {name}, {pixels:.0f} megapixels | {len(data) / MEGABYTE:.0f} | {width}x{height} "
            f"| {seconds:.1f} | {grown / MEGABYTE:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    decoded_here() if sys.argv[1:] == ["decode"] else main()
