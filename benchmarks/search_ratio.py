"""What a search costs a server beside what it cost at another commit, both in one run.

    python benchmarks/search_ratio.py 8bbb8932 [--turns 14] [--searches 600]

A home of drawn pictures is made by the other commit, and copied for each server. They are asked in turn over REST, the
one and then the other first, no text twice; what counts is the processor time of each server and its processes.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np
import psutil
from PIL import Image
from speed_timing import ROOT

PICTURES, WARM, SETTLES_SECONDS = 2000, 80, 15
WORDS = (
    "red",
    "blue",
    "green",
    "boat",
    "dog",
    "house",
    "tree",
    "car",
    "child",
    "old",
    "new",
    "small",
    "two",
    "water",
)


@dataclass(frozen=True)
class Server:
    """A server of one commit."""

    process: subprocess.Popen[bytes]
    client: httpx.Client

    def ask(self, texts: list[str]) -> float:
        """Searches for texts, and returns the milliseconds of the processor that one took."""
        before = self._seconds()
        for text in texts:
            self.client.post("/v1/search", json={"text": text}).raise_for_status()
        return (self._seconds() - before) / len(texts) * 1000

    def _seconds(self) -> float:
        parent = psutil.Process(self.process.pid)
        return sum(sum(one.cpu_times()[:2]) for one in (parent, *parent.children(recursive=True)))


def main() -> None:
    """Measures and prints the turns, and the middle of their ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", help="the other commit")
    parser.add_argument("--turns", type=int, default=14)
    parser.add_argument("--searches", type=int, default=600)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        work = Path(place)
        sources = {"before": work / "source", "now": ROOT}
        subprocess.run(["git", "clone", "--quiet", ROOT, sources["before"]], check=True)
        subprocess.run(["git", "-C", sources["before"], "checkout", "--quiet", asked.before], check=True)
        _make_home(sources["before"], work)
        servers = {name: _served(source, work, name, stack) for name, source in sources.items()}
        _compare(servers, asked.turns, asked.searches)


def _compare(servers: dict[str, Server], turns: int, searches: int) -> None:
    draw = random.Random(0)

    def texts(count: int) -> list[str]:
        return [f"{' '.join(draw.sample(WORDS, 4))} {draw.randrange(10**6)}" for _ in range(count)]

    for server in servers.values():
        server.ask(texts(WARM))
    time.sleep(SETTLES_SECONDS)  # what a server does by itself when it has begun
    ratios = []
    for turn in range(turns):
        same = texts(searches)
        took = {name: servers[name].ask(same) for name in (("before", "now"), ("now", "before"))[turn % 2]}
        ratios.append(took["now"] / took["before"])
        _say(f"{took['now']:.2f} ms, before {took['before']:.2f} ms: {ratios[-1]:.3f}")
    _say(f"now / before: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _make_home(source: Path, work: Path) -> None:
    draw, pictures = np.random.default_rng(0), work / "pictures"
    pictures.mkdir()
    for number in range(PICTURES):
        rough = Image.fromarray(draw.integers(0, 256, (12, 12, 3), dtype=np.uint8))
        rough.resize((96, 96)).save(pictures / f"{number}.jpg")
    for words in (["init", "--model", "perennial-tiny"], ["add", str(pictures)]):
        subprocess.run(
            [*_perennial(), *words, "--home", work / "home"], env=_told(source), cwd=work, check=True
        )


def _served(source: Path, work: Path, name: str, stack: ExitStack) -> Server:
    home = shutil.copytree(work / "home", work / name)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    process = subprocess.Popen(
        [*_perennial(), "serve", "--home", home, "--port", str(port)], env=_told(source), cwd=work
    )
    stack.callback(process.wait)
    stack.callback(process.terminate)
    client = stack.enter_context(httpx.Client(base_url=f"http://127.0.0.1:{port}"))
    for _ in range(200):
        try:
            if client.get("/readyz").is_success:
                return Server(process, client)
        except httpx.TransportError:
            pass
        time.sleep(0.3)
    raise SystemExit(f"the server of {name} is not ready after a minute")


def _perennial() -> list[str]:
    return [sys.executable, "-m", "perennial"]


def _told(source: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}


if __name__ == "__main__":
    main()
