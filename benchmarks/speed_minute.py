"""Speed of the first minute with one's own pictures: each step from an installed command to what it finds."""

from __future__ import annotations

import os
import re
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
from speed_timing import ROOT, Measured, Took, environment, perennial, require, run, spread

WORDS = "a red boat"
BAR = 60.0  # seconds
INSTALL_BAR = 600.0
_LOOK_SECONDS = 0.1

sys.path.insert(0, str(ROOT))  # the library that the tests use

Steps = dict[str, list[Took]]


def installing(work: Path) -> Measured:
    """Times README's commands on a fresh clone, up to a command that answers; packages come from pip's index."""
    clone, steps = work / "clone", {}
    steps["`git clone`"], _ = run(["git", "clone", "--quiet", ROOT, clone])
    bare = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    steps["`make install`"], _ = run(["make", "install"], cwd=clone, env=bare)
    first = [clone / ".venv" / "bin" / "perennial", "--version"]
    steps["`perennial --version`"], _ = run(first, cwd=clone, env=bare)
    _, used = run(["du", "-sm", clone])
    wall = sum(one.wall for one in steps.values())
    return Measured(
        "installing from a fresh clone",
        f"{wall / 60:.1f} min, {sum(one.cpu for one in steps.values()) / 60:.1f} min of processor time",
        f"<= {INSTALL_BAR / 60:.0f} min",
        wall <= INSTALL_BAR,
        "`make install`, once; what pip has kept from before is not fetched again; "
        f"{int(used.split()[0]) / 1000:.1f} GB in the end",
        tuple((name, f"{one.wall:.1f} s", f"{one.cpu:.1f} s", _peak([one])) for name, one in steps.items()),
    )


def first_minute(work: Path, *, rounds: int, few: int | None = None) -> Measured:
    """Times the steps from no home to searched pictures, in a terminal and in a browser's stead; `few`: of as many."""
    from tests.photo_library import write_library

    folder = work / "library"
    library = write_library(folder)
    if few is not None:
        for one in library[few:]:
            if one.fate == "picture":
                (folder / one.path).unlink(missing_ok=True)
    steps: Steps = defaultdict(list)
    pictures = 0
    for number in range(rounds):
        pictures = _in_a_terminal(work / f"terminal-{number}", folder, steps)
        _in_a_browser(work / f"browser-{number}", folder, steps, pictures)
    whole = [one.wall for one in steps["`open`: all of them found"]]
    first = [one.wall for one in steps["`open`: first pictures found"]]
    return Measured(
        f"the first minute: `perennial open` of a folder of {len(library)} files without a home, after installing",
        f"{statistics.median(first):.0f} s to the first pictures found, {statistics.median(whole):.0f} s to all "
        f"{pictures}",
        f"<= {BAR:.0f} s",
        statistics.median(whole) <= BAR,
        f"`tests/photo_library.py`, seed 1, {pictures} different pictures of 240 x 192 among its files; "
        f"`perennial-photo`; minimum / median / maximum of {rounds} rounds, each with new homes; the times of `open` "
        "and `again` run from the command's start, their processor time is that of all their processes",
        tuple(
            (name, spread([t.wall for t in took]), spread([t.cpu for t in took]), _peak(took))
            for name, took in steps.items()
        ),
    )


def _peak(took: Sequence[Took]) -> str:
    most = max(one.peak for one in took)
    return f"{most:.0f} MB" if most else "–"


def _in_a_terminal(home: Path, folder: Path, steps: Steps) -> int:
    """Does what README says in a terminal, each command a process; returns how many pictures there are."""

    def step(name: str, *words: object) -> Any:
        took, said = perennial(*words, "--home", home, "--json")
        steps[name].append(took)
        return said

    step("`init`", "init")
    pictures: int = step("`add`: read and made searchable", "add", folder)["new_images"]
    require(step("`search`: first answer", "search", WORDS)["hits"], "no hits")
    step("`search` again", "search", WORDS)
    step("`add` again, unchanged", "add", folder)
    return pictures


def _in_a_browser(home: Path, folder: Path, steps: Steps, pictures: int) -> None:
    for start in ("`open`", "again"):
        with _opened(home, folder) as (server, url, since):

            def noted(
                what: str, start: str = start, server: psutil.Process = server, since: float = since
            ) -> None:
                steps[f"{start}: {what}"].append(Took(time.perf_counter() - since, _of_all(server)))

            noted("ready")
            with httpx.Client(base_url=url, timeout=60) as client:
                _until(lambda: _found(client, 1) >= 1)
                noted("first pictures found")
                if start == "`open`":
                    _until(lambda: _is_taken_in(client) and _found(client, pictures) >= pictures)
                    noted("all of them found")


@contextmanager
def _opened(home: Path, folder: Path) -> Iterator[tuple[psutil.Process, str, float]]:
    """Runs `perennial open` and yields its process and address, once it is ready, and when it was started."""
    words = ("open", folder, "--no-browser", "--port", 0, "--home", home)
    command = [sys.executable, "-u", "-m", "perennial", *map(str, words)]
    since = time.perf_counter()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as process:
        try:
            ready = (re.search(r"ready after .*: pages on (\S+)/ ", line) for line in process.stdout or ())
            yield psutil.Process(process.pid), next(filter(None, ready))[1], since
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60)


def _found(client: httpx.Client, wanted: int) -> int:
    answer = client.post("/v1/search", json={"text": WORDS, "k": wanted})
    return len(answer.raise_for_status().json()["hits"])


def _is_taken_in(client: httpx.Client) -> bool:
    jobs = client.get("/v1/jobs").raise_for_status().json()["jobs"]
    return any(job["kind"] == "folder" and job["state"] == "succeeded" for job in jobs)


def _until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 600
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError("the pictures are not found after ten minutes")
        time.sleep(_LOOK_SECONDS)


def _of_all(process: psutil.Process) -> float:
    """Returns the processor seconds so far of a process and all that it started."""
    return sum(sum(one.cpu_times()[:4]) for one in (process, *process.children(recursive=True)))
