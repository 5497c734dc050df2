"""Measures what an update costs beside a busy server, with OpenMP threads that spin while they wait and that sleep.

    python benchmarks/beside_server.py [--strategy finetune] [--rounds 3] [--rate 20]

Prints the processor seconds (user and system) of one update's worker process, alone and beside a server that answers
queries at a steady rate, and what one query's encoding takes in a process of its own, by turns in one run; then the
ratios of the medians. Nothing is promoted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from app.desk.jobs import UpdateRequest
from app.home import cores
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.jobs import worker
from app.learning import adding, beginning
from ingest.intake import IntakeOptions
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk

OPENMP = ("OMP_", "KMP_", "GOMP_", "MKL_")
PORT = 7999
ASKERS = 4
# One query after another with a pause, as people ask; the median of each process is printed.
QUERIES = """
import time
from model_updates.opening import open_encoder
encoder, seconds = open_encoder("perennial-tiny"), []
for turn in range(110):
    began = time.perf_counter()
    encoder.encode_texts([f"{turn % 7} red boats on a beach"], "en")
    seconds.append(time.perf_counter() - began)
    time.sleep(0.03)
print(1000 * sorted(seconds[10:])[50])
"""
PATIENCE_SECONDS = 60.0


def main() -> None:
    """Measures by turns and prints each figure, then the ratios."""
    asked = _arguments()
    usual = {name: value for name, value in os.environ.items() if not name.startswith(OPENMP)}
    spin, sleep = usual, usual | {name: cores.environment(None)[name] for name in cores.SLEEP}
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(home=Path(folder) / "home", device="cpu")
        chunk = prepare(settings, asked.pictures)
        request = UpdateRequest(
            chunk, asked.strategy, {"epochs": asked.epochs}, promote=False, by="benchmark"
        )
        for round_number in range(asked.rounds):
            for name, environment in (("spin", spin), ("sleep", sleep)):
                alone = processor_seconds(settings, request, environment)
                with busy_server(settings, environment, asked.rate) as answers:
                    beside = processor_seconds(settings, request, environment)
                seconds.setdefault(f"{name} alone", []).append(alone)
                seconds.setdefault(f"{name} beside", []).append(beside)
                query = query_milliseconds(environment)
                seconds.setdefault(f"{name} query", []).append(query)
                print(
                    f"{round_number} {name}: alone {alone:.1f} s, beside {beside:.1f} s of processor; {answers}; "
                    f"a bare query {query:.1f} ms",
                    flush=True,
                )
    middle = {name: statistics.median(found) for name, found in seconds.items()}
    print(json.dumps({name: round(value, 1) for name, value in middle.items()}))
    for one, other in (
        ("spin beside", "spin alone"),
        ("sleep beside", "sleep alone"),
        ("sleep alone", "spin alone"),
        ("sleep beside", "spin beside"),
        ("sleep query", "spin query"),
    ):
        print(f"{one} / {other}: {middle[one] / middle[other]:.2f}")


def prepare(settings: Settings, pictures: int) -> str:
    """Makes a home whose gallery holds drawn pictures, and returns the chunk with their German captions."""
    beginning.initialise(settings)
    drawn = [(scene, "flat", n) for n, scene in enumerate(list(scenes.all_scenes())[:pictures])]
    with Workspace.open(settings) as workspace:
        for language in ("en", "de"):
            source = settings.home.parent / f"{language}.zip"
            write_chunk(source, scenes=drawn, languages=[language])
            added = adding.add_chunk(workspace, source, IntakeOptions(), by="benchmark")
    return added.report.chunk_id


def processor_seconds(settings: Settings, request: UpdateRequest, environment: Mapping[str, str]) -> float:
    """Runs an update in a worker process of its own and returns the processor time that it took."""
    job = worker.submit(settings, "update", request.to_json())
    command = [sys.executable, "-m", "app.jobs.job_runner", "--home", str(settings.home), job.id]
    process = subprocess.Popen(command, env=dict(environment), stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"the update ended with {process.returncode}; the home's log says why")
    return usage.ru_utime + usage.ru_stime


def query_milliseconds(environment: Mapping[str, str]) -> float:
    """Returns the median time to encode one query in a process that does nothing else."""
    said = subprocess.run(
        [sys.executable, "-c", QUERIES], env=dict(environment), capture_output=True, text=True, check=True
    )
    return float(said.stdout)


@dataclass
class Answers:
    """How long queries took from when they were due, in seconds."""

    seconds: list[float] = field(default_factory=list)
    failed: int = 0

    def __str__(self) -> str:
        if not self.seconds:
            return f"no answer, {self.failed} failed"
        ordered = sorted(self.seconds)
        p50, p95 = (1000 * ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.95))
        return f"{len(ordered)} answers, {self.failed} failed, p50 {p50:.0f} ms, p95 {p95:.0f} ms"


@contextmanager
def busy_server(settings: Settings, environment: Mapping[str, str], rate: float) -> Iterator[Answers]:
    """Runs `serve` in a process of its own and asks it `rate` queries a second while the block runs."""
    command = [sys.executable, "-m", "perennial", "serve", "--home", str(settings.home), "--port", str(PORT)]
    server = subprocess.Popen(command, env=dict(environment), stderr=subprocess.DEVNULL)
    answers, done = Answers(), threading.Event()
    askers = [threading.Thread(target=_ask, args=(number, rate, answers, done)) for number in range(ASKERS)]
    try:
        _wait_until_ready()
        for asker in askers:
            asker.start()
        yield answers
    finally:
        done.set()
        for asker in askers:
            if asker.ident is not None:
                asker.join()
        server.terminate()
        server.wait()


def _ask(number: int, rate: float, answers: Answers, done: threading.Event) -> None:
    due, turn = time.monotonic() + number / rate, number
    while not done.wait(max(0.0, due - time.monotonic())):
        turn += 1
        body = json.dumps({"text": f"{turn % 7} red boats on a beach", "language": "en"}).encode()
        asking = urllib.request.Request(
            f"http://127.0.0.1:{PORT}/v1/search", data=body, headers={"Content-Type": "application/json"}
        )
        try:
            urllib.request.urlopen(asking, timeout=30).read()
            answers.seconds.append(time.monotonic() - due)
        except OSError:
            answers.failed += 1
        # A server that falls behind is not buried under what it missed.
        due = max(due + ASKERS / rate, time.monotonic() - 1)


def _wait_until_ready() -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=5).close()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--strategy", default="language-tables")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--pictures", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=20.0, help="queries a second")
    return parser.parse_args()


if __name__ == "__main__":
    main()
