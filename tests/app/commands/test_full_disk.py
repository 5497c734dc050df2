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
def full(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home on a disk in memory without a byte to spare."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={LARGE}", "tmpfs", place], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    try:
        home = copy_of(small_home(tmp_path_factory), place)
        page = os.sysconf("SC_PAGE_SIZE")
        _resize(place, shutil.disk_usage(place).used // page * page)
        yield home
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


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
