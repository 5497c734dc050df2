"""Speed of a folder that is read again: each figure is that of a whole process, from its start to its end."""

from __future__ import annotations

import io
import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image
from speed_timing import Measured, Took, perennial, require, spread

PER_FOLDER = 100
BAR = 3.0  # seconds, for a folder that is as it was
CHANGED_BAR = 10.0
CAMERA = (4000, 3000)
CAMERA_BAR = 150.0  # ms of the processor


def unchanged_folder(work: Path, *, pictures: int, rounds: int) -> Measured:
    """Times `perennial add` of a folder in which nothing has changed since it was read."""
    folder, add = _taken_in(work, pictures)
    took = []
    for _ in range(rounds):
        added, report = add()
        require((report["unchanged"], report["new_images"], report["gone"]) == (pictures, 0, 0), report)
        took.append(added)
    return _measured(f"`perennial add` of {pictures:,} unchanged pictures", took, BAR, folder)


def changed_folder(work: Path, *, pictures: int, rounds: int, changes: int) -> Measured:
    """Times `perennial add` of a folder with new, moved and deleted pictures, as many of each."""
    folder, add = _taken_in(work, pictures)
    took = []
    for number in range(rounds):
        _change(folder, number, pictures, changes)
        added, report = add()
        found = tuple(report[name] for name in ("unchanged", "new_images", "moved", "gone"))
        require(found == (pictures - 2 * changes, changes, changes, changes), report)
        took.append(added)
    what = f"`perennial add` of {pictures:,} pictures, {changes} new, {changes} moved, {changes} deleted"
    return _measured(what, took, CHANGED_BAR, folder)


def photographs(work: Path, *, pictures: int, rounds: int) -> Measured:
    """Times `perennial add` of a folder with photographs as large as those of cameras, into a new home each time."""
    folder = work / "photographs"
    folder.mkdir()
    for number in range(pictures):
        (folder / f"IMG_{number:05}.jpg").write_bytes(_photograph(number))
    took = []
    for number in range(rounds):
        home = work / f"photographs-home-{number}"
        perennial("init", "--home", home, "--json")
        added, report = perennial("add", folder, "--home", home, "--json")
        require(report["new_images"] == pictures, report)
        took.append(added)
    cpus = [1000 * one.cpu / pictures for one in took]
    wall, cpu = (statistics.median(one) for one in ([one.wall for one in took], cpus))
    return Measured(
        f"`perennial add` of {pictures} photographs of 12 megapixels",
        f"{cpu:.0f} ms of the processor a picture, {pictures / wall:.1f} pictures a second",
        f"<= {CAMERA_BAR:.0f} ms",
        cpu <= CAMERA_BAR,
        f"JPEG pictures of {CAMERA[0]} x {CAMERA[1]} with grain, seeds 0 and on; `perennial-photo`; minimum / median / "
        f"maximum of {rounds} new processes, from start to end: {spread([one.wall for one in took])}",
    )


def write_pictures(folder: Path, numbers: range) -> None:
    """Writes one small JPEG picture a number, each unlike the others, a hundred to a folder, ten folders to one."""
    for number in numbers:
        above = number // PER_FOLDER
        path = folder / f"{above // 10:02}" / f"{above:03}" / f"IMG_{number:05}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_picture(number))


def _taken_in(work: Path, pictures: int) -> tuple[Path, Callable[[], tuple[Took, dict[str, int]]]]:
    """Returns a folder that a home with the tiny encoder has taken in, and what adds it once more."""
    home, folder = work / "folder-home", work / "folder"

    def add() -> tuple[Took, dict[str, int]]:
        return perennial("add", folder, "--home", home, "--json")

    if not home.exists():
        write_pictures(folder, range(pictures))
        perennial("init", "--model", "perennial-tiny", "--home", home, "--json")
        add()
    return folder, add


def _change(folder: Path, number: int, pictures: int, changes: int) -> None:
    """Deletes the first pictures, moves as many after them into a folder of their own, and writes as many new ones."""
    there = sorted(folder.rglob("IMG_*.jpg"))
    away = folder / "moved" / f"{number}"
    away.mkdir(parents=True)
    for path in there[:changes]:
        path.unlink()
    for path in there[changes : 2 * changes]:
        path.rename(away / f"was {path.name}")
    first = pictures + number * changes
    write_pictures(folder, range(first, first + changes))


def _measured(what: str, took: list[Took], bar: float, folder: Path) -> Measured:
    walls, cpus = [one.wall for one in took], [one.cpu for one in took]
    wall, cpu = statistics.median(walls), statistics.median(cpus)
    return Measured(
        what,
        f"{wall:.1f} s, {cpu:.1f} s of processor time",
        f"<= {bar:.0f} s both",
        max(wall, cpu) <= bar,
        f"JPEG pictures of 64 x 48, seeds 0 and on, {PER_FOLDER} to a folder, in {_folders(folder)} nested folders; "
        f"`perennial-tiny`; minimum / median / maximum of {len(took)} new processes, from start to end: "
        f"{spread(walls)}, processor time {spread(cpus)}",
    )


def _folders(folder: Path) -> int:
    return sum(path.is_dir() for path in folder.rglob("*"))


def _photograph(seed: int) -> bytes:
    rng = np.random.default_rng(seed)
    shapes = rng.integers(40, 215, (6, 8, 3), dtype=np.uint8)
    levels = np.asarray(Image.fromarray(shapes).resize(CAMERA, Image.Resampling.BICUBIC), np.int16)
    grain = np.tile(rng.integers(-20, 21, (250, 250, 3), np.int16), (CAMERA[1] // 250, CAMERA[0] // 250, 1))
    buffer = io.BytesIO()
    Image.fromarray(np.clip(levels + grain, 0, 255).astype(np.uint8)).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


def _picture(seed: int) -> bytes:
    noise = np.random.default_rng(seed).integers(0, 256, (6, 8, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((64, 48), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()
