"""A disk that is full, at many sizes: what is there stays there and is found, and with room again all goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from soak_kills import commanded, upload, wrong
from speed_timing import Measured

_PICTURES, _STEP_BYTES, _ROOM_BYTES = 6, 61_000, 512 * 1024**2


def full_disk(work: Path, *, alignments: int) -> Measured:
    """Adds pictures to a home on a disk that has room for some of what that writes, or for none of it."""
    if os.geteuid() != 0:
        return Measured(
            "P3: a full disk", "not run", "0 violations", False, "mounting a small disk needs root"
        )
    home, folder = work / "space", work / "space-pictures"
    first, kept = upload(folder, 0)
    for words in (("init", "--model", "perennial-tiny"), ("add", str(first))):
        commanded(home, *words).check_returncode()
    more, added = upload(folder, *range(1, _PICTURES + 1))
    violations: list[str] = []
    ended = Counter[str]()
    for n in range(alignments):
        with _small_disk(work / "disk", home, n * _STEP_BYTES) as copy:
            when = f"{n * _STEP_BYTES / 1000:.0f} kB free"
            done = commanded(copy, "add", str(more))
            ended["added" if done.returncode == 0 else "refused"] += 1
            if "Traceback" in done.stderr:
                violations.append(f"{when}: a traceback")
            violations += wrong(copy, kept | (added if done.returncode == 0 else set()), when)
            if (found := commanded(copy, "search", "a red boat")).returncode:
                violations.append(f"{when}: {found.stderr.strip()[:200]}")
            _remount(work / "disk", _ROOM_BYTES)
            if (again := commanded(copy, "add", str(more))).returncode:
                violations.append(f"{when}, with room again: {again.stderr.strip()[:200]}")
            violations += wrong(copy, kept | added, f"{when}, with room again")
    told = ", ".join(f"{count} {name}" for name, count in sorted(ended.items()))
    return Measured(
        f"P3: a full disk, at {alignments} sizes",
        f"{len(violations)} violations",
        "0",
        not violations,
        f"adding {_PICTURES} pictures to a home on a disk with 0 to {(alignments - 1) * _STEP_BYTES / 1e6:.1f} MB "
        f"free: {told}; after each the live release is verified, a search is asked, and the same is added with room"
        f"{'; ' + '; '.join(violations[:5]) if violations else ''}",
    )


@contextmanager
def _small_disk(place: Path, home: Path, free: int) -> Iterator[Path]:
    """Yields a copy of a home on a disk in memory that has so many bytes free."""
    place.mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={_ROOM_BYTES}", "tmpfs", place], check=True)
    try:
        shutil.copytree(home, place / "home")
        used = shutil.disk_usage(place).used
        _remount(place, used + free)
        yield place / "home"
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


def _remount(place: Path, size: int) -> None:
    pages = -(-size // os.sysconf("SC_PAGE_SIZE")) * os.sysconf("SC_PAGE_SIZE")
    subprocess.run(["mount", "-o", f"remount,size={pages}", place], check=True, stdout=sys.stderr)
