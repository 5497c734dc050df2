"""Processes that are killed at any moment, and power that goes: nothing that was acknowledged may be lost."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
from PIL import Image
from speed_timing import Measured, environment

from app.desk.errors import AppError
from app.home.folder import Home
from app.home.settings import Settings
from app.home.workspace import Workspace
from ingest.errors import IngestError
from ingest.pair import ImageId, image_id_of
from tests.app.home import test_crash
from tests.app.home.publishing import promote

_COMMANDS = ("add", "add", "add", "rollback", "promote")
_LONGEST_SECONDS = 6.0


def random_kills(work: Path, *, kills: int) -> Measured:
    """Kills commands of a person at random moments; after each the home must hold all that any acknowledged."""
    chance = random.Random(0)
    home, folder = work / "killed", work / "killed-pictures"
    first, acknowledged = upload(folder, 0)
    for words in (("init", "--model", "perennial-tiny"), ("add", str(first))):
        commanded(home, *words).check_returncode()
    violations: list[str] = []
    done = Counter[str]()
    for number in range(2, kills + 2):
        what = chance.choice(_COMMANDS)
        arguments, ids = [what], set[ImageId]()
        if what == "add":
            place, ids = upload(folder, number)
            arguments.append(str(place))
        elif what == "promote":
            arguments += [_releases(home)[-1], "--force", "--why", "soak"]
        child = subprocess.Popen(
            [sys.executable, "-m", "perennial", *arguments, "--home", str(home)],
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            child.wait(chance.uniform(0.05, _LONGEST_SECONDS))
        except subprocess.TimeoutExpired:
            child.kill()
        code = child.wait()
        done[f"{what}: {'killed' if code == -9 else 'ended'}"] += 1
        if code == 0:
            acknowledged |= ids
        violations += wrong(home, acknowledged, f"after {what} {number} ({code})")
    killed = sum(count for name, count in done.items() if name.endswith("killed"))
    return Measured(
        f"P1: {killed} commands killed at random moments",
        f"{len(violations)} violations",
        "0",
        not violations,
        f"of {kills} commands ({', '.join(f'{name} {count}' for name, count in sorted(done.items()))}); after each "
        f"the live release is verified byte by byte and every picture of the {len(acknowledged)} acknowledged "
        f"uploads is looked up; seed 0{'; ' + '; '.join(violations[:5]) if violations else ''}",
    )


def commanded(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs a command on a home."""
    command = [sys.executable, "-m", "perennial", *words, "--home", str(home)]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)


def upload(folder: Path, *numbers: int) -> tuple[Path, set[ImageId]]:
    """Writes pictures of noise into a folder of their own; returns it and their ids."""
    place = folder / "-".join(map(str, numbers))
    place.mkdir(parents=True)
    ids = set()
    for number in numbers:
        dice = np.random.default_rng(number)
        file = place / f"{number}.png"
        Image.fromarray(dice.integers(0, 255, (24, 24, 3), np.uint8)).resize((96, 96)).save(file)
        ids.add(image_id_of(file.read_bytes()))
    return place, ids


def _releases(home: Path) -> list[str]:
    with Workspace.open(Settings(home=home), read_only=True) as workspace:
        return [one.id for one in workspace.releases.releases()]


def wrong(home: Path, acknowledged: set[ImageId], when: str) -> list[str]:
    """Returns what is wrong with a home that has acknowledged some pictures, as sentences."""
    try:
        with Workspace.open(Settings(home=home), read_only=True) as workspace:
            commit = workspace.releases.current()
            if commit is None:
                return [f"{when}: nothing is live"]
            workspace.releases.verify_release(commit.release)
            there = acknowledged.intersection(workspace.catalog.gallery_ids())
            lost = len(acknowledged) - sum(workspace.blobs.contains(sorted(there)))
    except (AppError, IngestError, OSError) as error:
        return [f"{when}: {error}"]
    return [f"{when}: {lost} of {len(acknowledged)} pictures are lost"] if lost else []


def power_cuts(work: Path, *, states: int) -> Measured:
    """Goes through what a power cut may leave of a promotion, and leaves out each class of fsync once."""
    began = time.monotonic()
    found: list[str] = []
    tried: list[int] = []
    for seed in range(1000):
        home = Home.create(work / f"power-{seed}")
        promote(home, "english")
        disk, files = test_crash.record_promotion(home)
        found += test_crash.violations(disk, files, work / "after", states=tried, seed=seed)
        if len(tried) >= states:
            break
    classes = ("files", "staged", "versions", "generations", "releases", "commits")
    noticed = []
    for forgotten in classes:
        home = Home.create(work / f"power-without-{forgotten}")
        promote(home, "english")
        disk, files = test_crash.record_promotion(home, frozenset({forgotten}))
        place, first = work / f"after-{forgotten}", test_crash.linked(files)
        found_one = next(test_crash.violations(disk, files, place, first=first), None)
        noticed += [forgotten] if found_one is not None else []
    return Measured(
        f"P2: {len(tried):,} states that a power cut may leave of a promotion",
        f"{len(found)} violations; {len(noticed)} of {len(classes)} classes of fsync are missed when left out",
        f"0 of >= 5,000 states; {len(classes)} of {len(classes)}",
        not found and len(noticed) == len(classes),
        f"the simulator of tests/app/home/power_loss.py, {time.monotonic() - began:.0f} s; missed: {noticed}",
    )
