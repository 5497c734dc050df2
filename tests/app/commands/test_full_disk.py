"""A home on a full disk: what is there is found, what cannot be written is said in a sentence, and nothing is lost."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.app.small_home import PICTURES, copy_of, sample_chunk, small_home

LARGE = 1 << 30


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk in memory."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={LARGE}", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def full(disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home on a disk without a byte to spare."""
    home = copy_of(small_home(tmp_path_factory), disk)
    page = os.sysconf("SC_PAGE_SIZE")
    _resize(disk, shutil.disk_usage(disk).used // page * page)
    return home


def _resize(place: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True, capture_output=True)


def _run(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perennial", *words, "--home", str(home)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_home_on_a_full_disk_is_searched_and_goes_on_with_room(full: Path, tmp_path: Path) -> None:
    chunk = sample_chunk(tmp_path / "more.zip", first=PICTURES)
    for words in (("search", "a red boat"), ("status",)):
        done = _run(*words, home=full)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    refused = _run("add", str(chunk), home=full)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert "space" in refused.stderr
    assert _run("search", "a red boat", home=full).returncode == 0
    _resize(full.parent, LARGE)
    assert _run("add", str(chunk), home=full).returncode == 0


@pytest.mark.parametrize("size", [200_000, 2_000_000, 12_000_000])
def test_a_backup_that_does_not_fit_is_a_sentence_and_leaves_nothing(
    disk: Path, tmp_path_factory: pytest.TempPathFactory, size: int
) -> None:
    _resize(disk, size)
    refused = _run("backup", str(disk / "to"), home=small_home(tmp_path_factory))
    assert refused.returncode == 1, refused.stdout
    assert "Free some space" in refused.stderr
    assert "unexpected" not in refused.stderr
    assert [path.name for path in (disk / "to").glob("[!.]*")] == []
    assert list((disk / "to").glob(".part-*")) == []
