"""Killed at every step, cut off at every step: what is live is always whole, and the next update works."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.errors import AppError
from app.home import garbage
from app.home.durable import FAULT_POINTS, KILLED
from app.home.folder import Home
from app.home.store import ReleaseStore
from tests.app.home.power_loss import Disk, RecordingFileSystem, materialise
from tests.app.home.publishing import (
    FailingFileSystem,
    Killed,
    live_content,
    promote,
)

# From here on the commit is linked.
AFTER_THE_LINK = {"commit:fsync-commits", "commit:unlink-temporary"}
STATES_PER_PREFIX = 40


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.create(tmp_path / "home")
    promote(home, "english")
    return home


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Home, int]]:
    """By point: a home whose process was to die there while it promoted German over English, and how that ended."""
    place = tmp_path_factory.mktemp("killed")
    first = Home.create(place / "0")
    promote(first, "english")
    for number in range(1, len(FAULT_POINTS)):
        shutil.copytree(first.root, place / str(number))
    command = [sys.executable, "-m", "tests.app.home.publishing", "die", str(place), "german"]
    ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    homes = [Home.open(place / str(number)) for number in range(len(FAULT_POINTS))]
    return dict(zip(FAULT_POINTS, zip(homes, json.loads(ended.stdout), strict=True), strict=True))


@pytest.mark.parametrize("point", FAULT_POINTS)
def test_a_kill_leaves_a_whole_release_live_and_the_next_update_works(
    killed: dict[str, tuple[Home, int]], point: str
) -> None:
    home, code = killed[point]

    assert code == KILLED
    assert live_content(home) == ("german" if point in AFTER_THE_LINK else "english")
    again = promote(home, "german")
    assert again.number == (3 if point in AFTER_THE_LINK else 2)
    assert live_content(home) == "german"
    assert list(home.staging.iterdir()) == []
    assert not list(home.commits.glob(".tmp-*"))


def record_promotion(home: Home, forget: frozenset[str] = frozenset()) -> tuple[Disk, RecordingFileSystem]:
    """The disk before promoting German over English, and what promoting did."""
    before = Disk.of(home.root)
    files = RecordingFileSystem(home.root, forget=forget)
    promote(home, "german", files)
    files.acknowledge("german is live")
    return before, files


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """Where crash states are built: in memory where possible, ten times as fast as a busy disk."""
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        yield tmp_path / "after"
        return
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder) / "after"


def violations(
    disk: Disk,
    files: RecordingFileSystem,
    place: Path,
    *,
    first: int = 0,
    states: list[int] | None = None,
    seed: int = 0,
) -> Iterator[str]:
    """Goes through cuts after every operation from `first` on; yields what no user should ever see.

    The operations of each distinct state tried are appended to `states`.
    """
    chance = random.Random(seed)
    seen = set()
    for done in range(len(files.operations) + 1):
        if done:
            disk.apply(files.operations[done - 1])
        if done < first:
            continue
        is_promised = done >= files.acknowledged["german is live"]
        for _ in range(STATES_PER_PREFIX):
            state = disk.after_power_cut(chance)
            if (key := (is_promised, frozenset(state.items()))) in seen:
                continue
            seen.add(key)
            if states is not None:
                states.append(done)
            materialise(state, place)
            yield from _violation(Home(place), is_promised, f"after operation {done}")
            shutil.rmtree(place)


def linked(files: RecordingFileSystem) -> int:
    """The operation that made the release live: before it, a missing fsync can do no harm."""
    operations = enumerate(files.operations, 1)
    return next(
        done for done, one in operations if one.name == "link" and one.paths[1].startswith("commits/")
    )


def _violation(home: Home, is_promised: bool, when: str) -> Iterator[str]:
    try:
        live = live_content(home)
        if is_promised and live != "german":
            yield f"{when}: the promised release is gone"
        promote(home, "french")
        if live_content(home) != "french":
            yield f"{when}: the next promotion did not become live"
    except (AppError, OSError) as error:
        yield f"{when}: {error}"


def test_no_power_cut_leaves_a_broken_release_live(home: Home, place: Path) -> None:
    disk, files = record_promotion(home)
    states: list[int] = []

    assert list(violations(disk, files, place, states=states)) == []
    assert len(states) > 200
    assert len(set(states)) > 20


@pytest.mark.parametrize("forgotten", ["files", "staged", "versions", "generations", "releases", "commits"])
def test_the_simulator_notices_each_class_of_fsync_that_is_left_out(
    home: Home, place: Path, forgotten: str
) -> None:
    disk, files = record_promotion(home, frozenset({forgotten}))

    assert next(violations(disk, files, place, first=linked(files)), None) is not None


@pytest.mark.parametrize("shelf", ["versions", "generations", "releases"])
@pytest.mark.parametrize("is_forgotten", [True, False])
def test_content_found_on_the_shelf_is_made_durable_before_it_is_used(
    home: Home, place: Path, shelf: str, is_forgotten: bool
) -> None:
    """A first updater dies between the rename and the fsync; a second finds the folder and relies on it."""
    disk = Disk.of(home.root)

    class DyingFileSystem(RecordingFileSystem):
        def fsync_dir(self, path: Path) -> None:
            if path == home.root / shelf:
                raise Killed
            super().fsync_dir(path)

    dying = DyingFileSystem(home.root)
    with pytest.raises(Killed):
        promote(home, "german", dying)
    # Cleaning up staging is not recorded: nothing there was promised to anybody.
    garbage.clean_staging(ReleaseStore(home), grace_seconds=0)
    files = RecordingFileSystem(home.root, forget=frozenset({shelf}) if is_forgotten else frozenset())
    files.operations = dying.operations
    promote(home, "german", files)
    files.acknowledge("german is live")

    found = next(violations(disk, files, place, first=linked(files)), None)

    assert (found is not None) is is_forgotten, found


def test_a_process_that_dies_at_any_operation_leaves_work_that_can_be_cleaned(home: Home) -> None:
    for step in range(100):
        try:
            promote(home, "german", FailingFileSystem(step, Killed()))
        except Killed:
            garbage.clean_staging(ReleaseStore(home), grace_seconds=0)
        assert list(home.staging.iterdir()) == []
        if live_content(home) == "german":
            break
    assert step > 15
