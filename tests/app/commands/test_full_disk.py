"""A home on a full disk: what is there is found, what cannot be written is said in a sentence, and nothing is lost."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from app.desk.errors import NoSpace
from app.desk.jobs import UpdateRequest
from app.home.backup import write_backup
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, transfer, update_cycle
from app.query.finder import Finder
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.intake import IntakeOptions
from ingest.storage import Store
from model_updates.shards import write_shards
from tests.app.small_home import PICTURES, copy_of, sample_chunk, small_home, taught_chunk
from tests.forked_starts import COLD

pytestmark = pytest.mark.usefixtures("starts_at_once")

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
    _fill(disk)
    return home


def _fill(disk: Path) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    _resize(disk, shutil.disk_usage(disk).used // page * page)


def _resize(place: Path, size: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size}", place], check=True, capture_output=True)


def _run(*words: str, home: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "perennial", *words, "--home", str(home)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_home_on_a_full_disk_is_searched_and_goes_on_with_room(full: Path, tmp_path: Path) -> None:
    chunk = sample_chunk(tmp_path / "more.zip", first=PICTURES)
    for words in (("search", "a red boat"), ("search", "ein rotes Boot"), ("status",)):
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


def test_a_home_on_a_disk_that_may_only_be_read_is_searched_and_says_why_nothing_is_written(
    disk: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = copy_of(small_home(tmp_path_factory), disk)
    more, chunk = sample_chunk(tmp_path / "more.zip", first=PICTURES), taught_chunk(home)
    subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    reading = (["search", "a red boat"], ["status"], ["doctor"], ["export", "r2", "--to", str(tmp_path)])
    for words in reading:
        done = _run(*words, home=home)
        assert done.returncode == 0, done.stdout + done.stderr
    writing = (["add", str(more)], ["withdraw", chunk, "--why", "wrong"], ["rollback", "r1"])
    for words in writing:
        refused = _run(*words, home=home)
        assert refused.returncode == 1, words
        assert "Traceback" not in refused.stderr
        assert "unexpected" not in refused.stderr
        assert "from a backup" not in refused.stderr
    subprocess.run(["mount", "-o", "remount,rw", disk], check=True)
    assert _run("rollback", "r1", home=home).returncode == 0


def test_weights_that_find_no_room_are_an_error_of_the_system_as_of_any_other_file(disk: Path) -> None:
    """safetensors says it in words alone."""
    _resize(disk, os.sysconf("SC_PAGE_SIZE"))
    with pytest.raises(OSError, match="No space left") as raised:
        write_shards({"table": np.ones((1000, 100))}, disk, "weights")
    assert raised.value.errno == errno.ENOSPC


def test_a_release_that_nobody_asked_yet_answers_when_the_disk_has_filled(
    disk: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What its cosines mean is measured on captions, whose vectors are kept where they find room."""
    home = copy_of(small_home(tmp_path_factory, pictures=200), disk)
    shutil.rmtree(home / "vectors.lmdb")  # what adding them has read
    Store.open(home / "vectors.lmdb").close()
    with Workspace.open(load_settings(home=home)) as workspace:
        snapshot, finder = Snapshot.load(workspace), Finder(workspace)
        _fill(disk)
        assert finder.find(snapshot, Question.of("a red boat", language="en")).hits[0].relevance
        assert workspace.features.examine().rows == 0


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


def test_what_would_not_fit_is_refused_before_it_starts(
    disk: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = copy_of(small_home(tmp_path_factory), disk)
    chunk = sample_chunk(tmp_path / "more.zip", pictures=300, first=1)
    with Workspace.open(load_settings(home=home)) as workspace:
        package = transfer.export_release(workspace, "r2", tmp_path).path
        request = UpdateRequest(chunk=taught_chunk(home), strategy="language-tables", by="test")
        page = os.sysconf("SC_PAGE_SIZE")
        _resize(disk, (shutil.disk_usage(disk).used + 3_000_000) // page * page)
        used = shutil.disk_usage(disk).used
        works: dict[str, Callable[[], object]] = {
            "Taking these pictures in": lambda: adding.add_chunk(
                workspace, chunk, IntakeOptions(), by="test"
            ),
            "This update": lambda: update_cycle.update(
                workspace, request, scratch=tmp_path, progress=lambda _: None
            ),
            "Taking this release in": lambda: transfer.import_release(workspace, package),
            "This backup": lambda: write_backup(workspace.home, disk / "backups", lambda _: None),
        }
        for what, work in works.items():
            with pytest.raises(NoSpace, match=f"{what} needs about .* of the disk at .*, and .* are free"):
                work()
        assert shutil.disk_usage(disk).used - used < 1_000_000


@pytest.mark.parametrize("what", ["This update", "Taking these pictures in"])
def test_what_would_not_fit_in_memory_is_refused_before_it_starts(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, what: str
) -> None:
    home = copy_of(small_home(tmp_path_factory), tmp_path)
    source = sample_chunk(tmp_path / "more.zip", pictures=5, first=1)
    # What is loaded for the others leaves a forked process room that these few pictures find.
    python = COLD if what == "Taking these pictures in" else sys.executable
    done = subprocess.run(
        [python, "-c", _BOUNDED, home, taught_chunk(home), source, what],
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"NoMemory: {what} needs about" in done.stderr, done.stderr


# With some megabytes more than a process has that is ready to begin.
_BOUNDED = """
import resource, sys
from pathlib import Path
from app.desk.jobs import UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live
from ingest.intake import IntakeOptions
home, chunk, source, what = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4]
with Workspace.open(load_settings(home=home)) as workspace:
    if what == "This update":
        from app.learning import update_cycle
        workspace.open_encoder(going_live.live_release(workspace)[1].version)
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    bound = pages * resource.getpagesize() + (100 << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
    if what == "This update":
        request = UpdateRequest(chunk=chunk, strategy="language-tables", by="test")
        update_cycle.update(workspace, request, scratch=home / "staging", progress=lambda _: None)
    else:
        adding.add_chunk(workspace, source, IntakeOptions(), by="test")
"""
