"""A home that learns for years: a hundred chunks dripped into it, and what grows; writes docs/results/drip.md.

    python benchmarks/drip.py --data ../shared/data --work WORK [--steps 100]

Each chunk is taken in and taught by the product in a process of its own, with default strategy and default gate.
Where that asks for a person, the person knows which chunks are bad: good ones go live, bad ones do not. After each, a
few texts of every language and pictures by every domain's route are encoded; what was not taught must be bit-identical.
Every `LOOK` chunks the release that is live is set beside the first one. The home is kept in the work folder and each
step is a line of its results: the run can be stopped and started at any time. Times are of the processor.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from drip_plan import BAD, FIRST, Drop, Material, planned
from drip_report import write_report
from PIL import Image
from real_input import say
from real_input_data import write_upload

from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, going_live, update_cycle
from app.query.parts import encode
from app.query.question import Question
from app.query.ranking import ranked
from app.query.snapshot import LastTexts, Snapshot
from ingest.errors import IngestError
from ingest.intake import IntakeOptions

REPORT = Path(__file__).resolve().parent.parent / "docs" / "results" / "drip.md"
LOOK = 10
QUERIES, ROUNDS = 60, 5
SAMPLED = 8  # texts of a language, pictures of a domain

Values = dict[str, Any]


@dataclass(frozen=True)
class Drip:
    """One run: where its material, home and results are."""

    material: Material
    work: Path

    @property
    def settings(self) -> Settings:
        """Of its home."""
        return Settings(home=self.work / "home", device="cpu")

    @property
    def results(self) -> Path:
        """A line of JSON for each step."""
        return self.work / "steps.jsonl"

    def finished(self) -> list[Values]:
        """Returns the lines that are there."""
        if not self.results.exists():
            return []
        return [json.loads(line) for line in self.results.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    """Runs what is not finished yet and writes the report; one step alone where it is told so."""
    asked = _arguments()
    torch.set_num_threads(1)
    drops = planned()
    drip = Drip(Material(asked.data, asked.work / "pictures", drops), asked.work)
    if asked.teach:
        _answer(_taught(drip, drops[asked.teach - 1]))
    elif asked.weigh:
        _answer(_weighed(drip, asked.weigh))
    elif asked.look:
        _answer(_looked(drip, asked.look))
    else:
        asked.work.mkdir(parents=True, exist_ok=True)
        _run(drip, drops[: asked.steps])
        write_report(drip.finished(), asked.report)


def _run(drip: Drip, drops: list[Drop]) -> None:
    if not drip.settings.home.exists():
        beginning.initialise(drip.settings, model="perennial-tiny")
    done = drip.finished()
    for drop in drops[len(done) :]:
        step = asdict(drop) | _alone("--teach", drop.number)
        first = done[0]["live"] if done else step["live"]
        if drop.number == 1 or drop.number % LOOK == 0 or drop is drops[-1]:
            step |= {
                "first": _alone("--weigh", first),
                "newest": _alone("--weigh", step["live"]),
                "looked": _alone("--look", first),
            }
        done.append(step)
        with drip.results.open("a", encoding="utf-8") as file:
            file.write(json.dumps(step) + "\n")
        say(f"{drop.name}: {step['pairs']} pairs, {step['verdict']}, {step['update_seconds']} s")


def _alone(what: str, of: object) -> Values:
    """Runs one step of this script in a process of its own and returns its answer."""
    words = [sys.executable, *sys.argv, what, str(of)]
    said = subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: Values = json.loads(said.splitlines()[-1])
    return found


def _answer(values: Values) -> None:
    sys.stdout.write("\n" + json.dumps(values) + "\n")


# ------------------------------------------------------------------------------------------------------------- a chunk


def _taught(drip: Drip, drop: Drop) -> Values:
    """Takes a chunk in, teaches it where its checks let it, and says what that cost and what it moved."""
    with Workspace.open(drip.settings) as workspace:
        before = _encoded(workspace, drip.material)
        values: Values = {"standing": "refused", "verdict": "", "pairs": 0, "update_seconds": 0.0}
        started = time.process_time()
        chunk = _taken_in(workspace, drip.material, drop, values)
        values["intake_seconds"] = round(time.process_time() - started, 2)
        if values["standing"] == "new":
            values |= _updated(workspace, chunk, is_good=drop.kind != BAD)
        after = _encoded(workspace, drip.material)
        live = going_live.live_release(workspace)[1]
        folder = workspace.home.versions / live.version
        files = [path.stat() for path in folder.iterdir()]
        return values | {
            "live": live.id,
            "moved": sorted(name for name, digest in before.items() if after[name] != digest),
            "languages": list(live.manifest.languages),
            "routes": len(workspace.open_encoder(live.version).image_routes),
            "pictures": len(workspace.catalog.gallery_ids()),
            "slices": [[s.language, s.domain, s.view, s.captions, s.recalls] for s in live.manifest.slices],
            "version_bytes": sum(file.st_size for file in files),
            "own_bytes": sum(file.st_size for file in files if file.st_nlink == 1),
            "home_bytes": _weight(workspace.home.root),
        }


def _taken_in(workspace: Workspace, material: Material, drop: Drop, values: Values) -> str:
    stopped = next((chunk for chunk in workspace.catalog.chunks() if chunk.name == drop.name), None)
    if stopped is not None:  # a run that was stopped in this step took it in
        values |= {"standing": stopped.standing, "pairs": len(workspace.catalog.pairs(chunk=stopped.id))}
        return stopped.id
    with tempfile.TemporaryDirectory(dir=material.made.parent) as place:
        upload = write_upload(Path(place) / drop.name, material.rows(drop))
        try:
            added = adding.add_chunk(workspace, upload, IntakeOptions(name=drop.name), by="benchmark")
        except IngestError as error:
            values["why"] = str(error)[:300]
            return ""
    chunk = workspace.catalog.chunk(added.report.chunk_id)
    values |= {"standing": chunk.standing, "pairs": added.report.new_pairs}
    return chunk.id


def _updated(workspace: Workspace, chunk: str, *, is_good: bool) -> Values:
    request = UpdateRequest(chunk=chunk, seed=0, by="benchmark")
    scratch = Path(tempfile.mkdtemp(dir=workspace.home.staging))
    clock = _Clock()
    try:
        outcome = update_cycle.update(workspace, request, scratch=scratch, progress=clock)
    except Exception as error:  # noqa: BLE001 - a chunk that teaches nothing ends its step, not the run
        return {"verdict": "refused", "why": f"{type(error).__name__}: {error}"[:300]}
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    seconds, stages = clock.stopped()
    if outcome.release is not None and outcome.commit is None and is_good:
        going_live.promote(workspace, outcome.release, why="a good chunk", by="benchmark", force=True)
    return {
        "verdict": outcome.verdict,
        "why": outcome.sentence[:300],
        "strategy": outcome.strategy,
        "update_seconds": seconds,
        "stages": stages,
        "training_pairs": outcome.training["training_pairs"],
        "epochs": len(outcome.training["history"]),
        "embedded": outcome.images_embedded,
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


class _Clock:
    """Adds up processor seconds by the stage that an update says it is in."""

    def __init__(self) -> None:
        self._stages: dict[str, float] = {}
        self._stage, self._since = "start", time.process_time()
        self._began = self._since

    def __call__(self, stage: Stage) -> None:
        now = time.process_time()
        self._stages[self._stage] = self._stages.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage.name, now

    def stopped(self) -> tuple[float, dict[str, float]]:
        """Returns the seconds of the whole update, and of its stages."""
        self(Stage("end", ""))
        total = round(self._since - self._began, 2)
        return total, {name: round(seconds, 2) for name, seconds in self._stages.items()}


def _encoded(workspace: Workspace, material: Material) -> dict[str, str]:
    """Returns the sha256 of vectors: of texts by learned language, of pictures by domain, as what is live has them."""
    live = going_live.live_release(workspace)[1]
    encoder = workspace.open_encoder(live.version)
    found = {}
    for language in live.manifest.languages:
        texts = [row.caption for row in material.rows(Drop(0, "sample", language, FIRST, SAMPLED))]
        found[language] = hashlib.sha256(encoder.encode_texts(texts, language).tobytes()).hexdigest()
    rows = material.rows(Drop(0, "sample", "en", FIRST, SAMPLED))
    pictures = [Image.open(row.picture).convert("RGB") for row in rows]
    for domain in sorted({drop.domain for drop in material.drops}):
        vectors = encoder.encode_images(pictures, encoder.image_route(domain))
        found[domain] = hashlib.sha256(vectors.tobytes()).hexdigest()
    return found


def _weight(folder: Path) -> int:
    """Returns what the files below a folder weigh, each once."""
    files = {(found := path.lstat()).st_ino: found.st_blocks * 512 for path in folder.rglob("*")}
    return sum(files.values())


# -------------------------------------------------------------------------------------------------- what is live


def _queries(drip: Drip) -> list[str]:
    """Returns names in English and the first language, which the first release reads, too."""
    languages = ("en", drip.material.drops[0].language)
    drops = [Drop(0, "sample", tag, FIRST, QUERIES // 2) for tag in languages]
    return [row.caption for drop in drops for row in drip.material.rows(drop)]


def _search(snapshot: Snapshot, text: str) -> None:
    query = encode(snapshot, Question.of(text).terms, {}, "auto")
    ranked(snapshot, query.vectors, query.readings, 20)


def _weighed(drip: Drip, release: str) -> Values:
    """Loads a release as a server does and says what that costs; queries have run in every language."""
    with Workspace.open(drip.settings) as workspace:
        base = workspace.releases.releases()[0]
        _search(Snapshot.load(workspace, base.id), "warm up")  # what any release costs once
        workspace.forget_version(base.version)
        empty = _memory()
        started = time.process_time()
        snapshot = Snapshot.load(workspace, release)
        seconds = time.process_time() - started
        for language in snapshot.languages:
            for row in drip.material.rows(Drop(0, "sample", language, FIRST, SAMPLED)):
                _search(snapshot, row.caption)
        return {"load_seconds": round(seconds, 3), "mb": round(_memory() - empty, 2)}


def _looked(drip: Drip, first: str) -> Values:
    """Asks the first release and the live one the same, in turn; returns processor milliseconds of a query, median."""
    with Workspace.open(drip.settings) as workspace:
        live = going_live.live_release(workspace)[1]
        asked = {"first": first, "newest": live.id}
        # No text was asked before: else one that was is answered without its tower.
        snapshots = {
            name: replace(Snapshot.load(workspace, release), texts=LastTexts(most=0))
            for name, release in asked.items()
        }
        took: dict[str, list[tuple[str, float]]] = {name: [] for name in snapshots}
        readings: dict[str, list[int]] = {name: [] for name in snapshots}
        texts = _queries(drip)
        for number in range(ROUNDS):
            for text in texts:
                for name, snapshot in snapshots.items():
                    started = time.process_time_ns()
                    _search(snapshot, text)
                    if number:
                        took[name].append((text, (time.process_time_ns() - started) / 1e6))
                    else:
                        readings[name].append(
                            len(encode(snapshot, Question.of(text).terms, {}, "auto").readings)
                        )
    pairs = zip(texts, *readings.values(), strict=True)
    alike = {text for text, first_read, newest_read in pairs if first_read == newest_read}
    found: Values = {name: _median(times) for name, times in took.items()}
    return found | {
        "tables": {name: round(statistics.mean(n), 2) for name, n in readings.items()},
        # what is read by as many tables in both: what else grows
        "alike": {name: _median([(t, ms) for t, ms in times if t in alike]) for name, times in took.items()}
        | {"texts": len(alike), "of": len(texts)},
    }


def _median(times: Sequence[tuple[str, float]]) -> float:
    return round(statistics.median(ms for _, ms in times), 3) if times else 0.0


def _memory() -> float:
    """Returns the megabytes that are this process's own: pages of mapped files are the system's to keep or drop."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Anonymous:"):
            return int(line.split()[1]) / 1024
    return 0.0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the evaluation data")
    parser.add_argument("--work", type=Path, required=True, help="where the home and the results are kept")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--report", type=Path, default=REPORT)
    parser.add_argument("--teach", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--weigh", default="", help=argparse.SUPPRESS)
    parser.add_argument("--look", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
