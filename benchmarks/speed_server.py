"""What a machine needs that only searches: its install, its server, and a search from its command line."""

from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil
from PIL import Image
from speed_timing import ROOT, Measured, Took, environment, require, run

QUERIES, WARM = 400, 40
PICTURES = 2000
DISK_MB, READY, MEMORY_MB, QUERY_MS = 780, 3.0, {"USE": 450, "both": 700}, {"USE": 7.0, "both": 37.0}
COLD = {"USE": (1.0, 250), "both": (1.6, 450)}  # processor seconds and MB
BESIDE = 0.3  # seconds
_SPACES = {"USE": "where-needed", "both": "always"}
_COLOURS = ("red", "blue", "green", "small", "large", "old", "new", "wet", "wooden", "two", "three", "many")
_THINGS = ("boat", "dog", "house", "tree", "car", "child", "horse", "bird", "man", "woman", "bottle", "ball")
_OTHERS = ("ein altes Haus", "zwei Kinder am Strand", "un chien dans l'herbe", "deux enfants jouent")


def search_only(work: Path) -> tuple[Measured, Path]:
    """Installs Perennial without extras into an environment of its own; returns what it takes, and its Python."""
    place = work / "search-only"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    python = place / "bin" / "python"
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL"))}
    before = _megabytes(place)
    pip = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt"]
    run(["git", "clone", "--quiet", ROOT, work / "source"])  # pip builds where the sources are
    took, _ = run([*pip, work / "source"], env=bare, stderr=subprocess.DEVNULL)
    packages = next(place.glob("lib/python*/site-packages"))
    sizes = sorted(((_megabytes(one), one.name) for one in packages.iterdir() if one.is_dir()), reverse=True)
    whole = _megabytes(place) - before
    largest = ", ".join(f"{name} {size:.0f}" for size, name in sizes[:14])
    found = Measured(
        "an install that searches and does not teach: `pip install .`",
        f"{whole:.0f} MB",
        f"<= {DISK_MB} MB",
        whole <= DISK_MB,
        f"in a new environment, pip itself left out; {took.wall:.0f} s, {took.cpu:.0f} s of processor time; the "
        f"largest, MB: {largest}",
    )
    return found, python


def searching(work: Path, *, pictures: int = PICTURES, queries: int = QUERIES) -> Measured:
    """Measures a server, its pages and the command line of such an install, on a home that another one made."""
    installed, python = search_only(work)
    home = _home(work, pictures)
    steps, holds = [], True
    for spaces in ("USE", "both"):
        env = {**os.environ, "PERENNIAL_SECOND_TOWER": _SPACES[spaces], "OMP_NUM_THREADS": "1"}
        env.pop("PYTHONPATH", None)
        ready, memory, query, beside = _served(python, home, env, queries)
        cold = _searched(python, home, env)
        seconds, most = statistics.median(one.cpu for one in cold), max(one.peak for one in cold)
        soon = statistics.median(one.wall for one in beside)
        bars = (READY, MEMORY_MB[spaces], QUERY_MS[spaces], *COLD[spaces], BESIDE)
        holds &= all(
            found <= bar for found, bar in zip((ready, memory, query, seconds, most, soon), bars, strict=True)
        )
        steps += [
            (f"{spaces}: server ready (bar {READY:.0f} s)", "–", f"{ready:.2f} s", "–"),
            (
                f"{spaces}: after {queries} queries and both pages (bar {MEMORY_MB[spaces]} MB)",
                "–",
                "–",
                f"{memory:.0f} MB",
            ),
            (f"{spaces}: a query over REST (bar {QUERY_MS[spaces]:.0f} ms)", "–", f"{query:.1f} ms", "–"),
            (
                f"{spaces}: `perennial search`, cold (bar {COLD[spaces][0]} s, {COLD[spaces][1]} MB)",
                f"{statistics.median(one.wall for one in cold):.2f} s",
                f"{seconds:.2f} s",
                f"{most:.0f} MB",
            ),
            (
                f"{spaces}: `perennial search`, where a server of the home runs (bar {BESIDE} s)",
                f"{soon:.2f} s",
                f"{statistics.median(one.cpu for one in beside):.2f} s",
                f"{max(one.peak for one in beside):.0f} MB",
            ),
        ]
    return Measured(
        f"a machine that only searches, {pictures:,} pictures",
        installed.figure,
        f"<= {DISK_MB} MB; more in its table",
        holds and installed.holds,
        f"{installed.what}: {installed.details}; `perennial-photo`, noise for pictures, as many texts in English, "
        "German and French, none asked twice, the language detected, one thread",
        tuple(steps),
    )


def _home(work: Path, pictures: int) -> Path:
    """Makes a home with everything installed."""
    folder, home = work / "noise", work / "served-home"
    folder.mkdir()
    dice = np.random.default_rng(0)
    for number in range(pictures):
        coarse = dice.integers(0, 255, (6, 8, 3), np.uint8)
        Image.fromarray(coarse).resize((320, 240)).save(folder / f"{number}.jpg")
    for words in (("init",), ("add", folder)):
        run([sys.executable, "-m", "perennial", *words, "--home", home], env=environment())
    return home


def _searched(python: Path, home: Path, env: dict[str, str]) -> list[Took]:
    command = [python, "-P", "-m", "perennial", "search", "--home", home]
    return [run([*command, text], env=env)[0] for text in (*_OTHERS, "two dogs")]


def _served(
    python: Path, home: Path, env: dict[str, str], queries: int
) -> tuple[float, float, float, list[Took]]:
    """Returns processor seconds to ready, MB, milliseconds of the processor a query, and searches beside the server."""
    texts = [f"{colour} {thing} {n}" for n in range(4) for colour in _COLOURS for thing in _THINGS]
    texts = [text for n, own in enumerate(texts) for text in (own, f"{_OTHERS[n % 4]} {n}")]
    with server(python, home, env) as (process, client):
        ready = sum(process.cpu_times()[:2])
        for page in ("/", "/admin/"):
            client.get(page).raise_for_status()
        for text in texts[:WARM]:
            _ask(client, text)
        since = sum(process.cpu_times()[:2])
        for text in texts[WARM : WARM + queries]:
            _ask(client, text)
        spent = sum(process.cpu_times()[:2]) - since
        memory = process.memory_info().rss / 1e6
        return ready, memory, 1000 * spent / queries, _searched(python, home, env)


def _ask(client: httpx.Client, text: str) -> None:
    require(client.post("/v1/search", json={"text": text}).raise_for_status().json()["hits"], "no hits")


@contextmanager
def server(
    python: Path, home: Path, env: dict[str, str], *options: str
) -> Iterator[tuple[psutil.Process, httpx.Client]]:
    """Runs a server; yields its process, and a client of it, once it is ready."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [
        str(python),
        "-P",
        "-m",
        "perennial",
        "serve",
        "--home",
        str(home),
        "--port",
        str(port),
        *options,
    ]
    with (
        subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        try:
            while not _is_ready(client):
                require(started.poll() is None, "the server ended")
                time.sleep(0.05)
            yield psutil.Process(started.pid), client
        finally:
            started.terminate()


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def _megabytes(place: Path) -> float:
    return (
        sum(one.lstat().st_size for one in place.rglob("*") if one.is_file() and not one.is_symlink()) / 1e6
    )
