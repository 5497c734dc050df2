"""Processes that are killed at any moment: nothing that was acknowledged may be lost, and what was begun goes on.

A command is started, killed after a random share of what it took before, and the home is looked at. One that was not
killed has acknowledged what it did. How many were killed is kept in a file, so that who is cut off goes on later, as
long as the code is the same.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock

import httpx
import numpy as np
from PIL import Image
from soak_forks import JOB, Verbs
from speed_timing import ROOT, Measured, environment, require

from app.desk.errors import AppError
from app.desk.jobs import UpdateRequest
from app.home.commits import CommitRecord
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.jobs import requests, worker
from app.learning import adding, beginning, going_live, update_cycle
from ingest.errors import IngestError
from ingest.intake import IntakeOptions
from ingest.pair import ImageId, image_id_of
from ingest.records import FINAL_STATES, JobRecord
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from ingest.standing import WITHDRAWN
from model_updates.gate.report import Policy

_KEEPING = Lock()
TALLY = ROOT / "build" / "soak-kills.json"
# Everything becomes a release, and is judged quickly.
GATE = Policy(
    cross_fit=False,
    samples=100,
    slice_drop=100.0,
    pooled_drop=100.0,
    first_slice_drop=100.0,
    first_pooled_drop=100.0,
)
_LESSON = {"strategy": "er", "options": {"epochs": 3, "batch_size": 16}}
_OFTEN = {
    "add": 6,
    "update": 5,
    "promote": 3,
    "rollback": 3,
    "gallery": 2,
    "remove": 2,
    "withdraw": 1,
    "serve": 2,
}
_LATER = 1.3  # a command is killed within so many times what it took before, so that some end
_HOME_COMMANDS = 50  # then another copy of the home is used, so that looking at one stays quick
_GIVEN_UP_SECONDS, _PROMOTION_SECONDS = 120.0, 0.5
_SCENES = 16  # of a chunk, each with a caption in English and one in German
_ENDED_WELL = {"succeeded", "review", "rejected"}


@dataclass
class Tally:
    """What happened so far."""

    code: str = ""  # which code was tried
    killed: Counter[str] = field(default_factory=Counter)  # by command
    ended: Counter[str] = field(default_factory=Counter)  # by command; before they were killed
    resumed: Counter[str] = field(default_factory=Counter)  # jobs that were killed, and ended well in the end
    pictures: int = 0  # acknowledged, and looked up after every later kill of their home
    ready: float = 0.0  # the longest a server took, in seconds
    seconds: dict[str, float] = field(default_factory=dict)  # that each command took when it last ended
    violations: list[str] = field(default_factory=list)

    @classmethod
    def kept(cls) -> Tally:
        """Reads what is kept of the same code, or begins."""
        trees = [f"HEAD:{name}" for name in ("app", "index", "ingest", "model_updates")]
        told = subprocess.run(
            ["git", "rev-parse", *trees], cwd=ROOT, capture_output=True, text=True, check=True
        )
        code = " ".join(line[:8] for line in told.stdout.split())
        said = json.loads(TALLY.read_text(encoding="utf-8")) if TALLY.exists() else {}
        if said.get("code") != code:
            return cls(code)
        for name in ("killed", "ended", "resumed"):
            said[name] = Counter(said[name])
        return cls(**said)

    def keep(self) -> None:
        """Writes it down."""
        with _KEEPING:
            TALLY.parent.mkdir(exist_ok=True)
            TALLY.write_text(json.dumps(vars(self), indent=1), encoding="utf-8")


def random_kills(work: Path, *, kills: int, minutes: float) -> Measured:
    """Kills what people start and what works for them at random moments, until so many were killed or time is up.

    Each core has a home of its own at a time.
    """
    tally, end = Tally.kept(), time.monotonic() + 60 * minutes
    verbs = Verbs({"PERENNIAL_GATE": json.dumps(asdict(GATE)), "PERENNIAL_JOBS": "elsewhere"})
    settings = load_settings(home=work / "template", gate=GATE)
    _make_template(settings, work)
    numbers = itertools.count(tally.killed.total() + tally.ended.total())

    def keep_killing() -> None:
        while tally.killed.total() < kills and time.monotonic() < end:
            home = Path(shutil.copytree(settings.home, work / f"home-{next(numbers)}"))
            fire = _Fire(settings.model_copy(update={"home": home}), work, verbs, tally, numbers)
            for _ in range(_HOME_COMMANDS):
                if tally.killed.total() < kills and time.monotonic() < end:
                    fire.one_more()
                    tally.keep()
            shutil.rmtree(home)

    with ThreadPoolExecutor(os.cpu_count() or 1) as lanes:
        for lane in [lanes.submit(keep_killing) for _ in range(os.cpu_count() or 1)]:
            lane.result()
    return _measured(tally, kills)


def _measured(tally: Tally, kills: int) -> Measured:
    killed, bad = tally.killed.total(), tally.violations
    by_command = ", ".join(f"{name} {count}" for name, count in sorted(tally.killed.items()))
    jobs = ", ".join(f"{name} {count}" for name, count in sorted(tally.resumed.items()))
    return Measured(
        f"P1: {killed:,} processes killed at random moments",
        f"{len(bad)} violations; {by_command}",
        f"0 of >= {kills:,}",
        not bad and killed >= kills,
        f"beside them {tally.ended.total()} commands ended and {tally.pictures} pictures were acknowledged; after each "
        "kill every byte of the live release is read, it must be what it was or what the command was to make it, and "
        f"every acknowledged picture of the home is looked up; killed jobs that were resumed and ended well: {jobs}; "
        f"a server after a kill was ready in at most {tally.ready:.1f} s; processes are forked from one that has "
        f"imported all{'; ' + '; '.join(bad[:5]) if bad else ''}",
    )


class _Fire:
    """One home, what it has acknowledged, and what is done to it."""

    def __init__(
        self, settings: Settings, work: Path, verbs: Verbs, tally: Tally, numbers: Iterator[int]
    ) -> None:
        self._settings, self._verbs, self._tally = settings, verbs, tally
        self._pictures = work / f"pictures-of-{settings.home.name}"
        self._numbers, self._number = numbers, next(numbers)
        self._chance = random.Random(self._number)
        self._acknowledged: set[ImageId] = set()

    def one_more(self) -> None:
        """Starts a command, kills it or lets it end, and looks at the home."""
        self._number = next(self._numbers)
        what = self._chance.choices([*_OFTEN], [*_OFTEN.values()])[0]
        before = _live(self._settings)
        getattr(self, f"_{what}")(before)
        when = f"{what} {self._number}"
        self._tally.violations += wrong(self._settings.home, self._acknowledged, when)

    def _under_fire(self, what: str, words: list[object], *, tries: int = 1) -> int | None:
        """Runs a command; None where it was killed. The first of its kind is not, nor the last of several tries."""
        process = self._verbs.start(words, self._settings.home)
        began = time.monotonic()
        usual = self._tally.seconds.get(what) if tries else None
        process.join(self._chance.uniform(0.0, _LATER * usual) if usual else _GIVEN_UP_SECONDS)
        process.kill()  # of one that has ended nothing is left to be killed
        process.join()
        if process.exitcode == -signal.SIGKILL:
            if usual is None:
                self._tally.violations.append(f"{what} {self._number} does not end")
            self._tally.killed[what] += 1
            return None
        self._tally.seconds[what] = time.monotonic() - began
        self._tally.ended[what] += 1
        return process.exitcode

    def _add(self, before: CommitRecord) -> None:
        place, ids = upload(self._pictures, self._number)
        code = self._under_fire("add", ["add", place])
        if code == 0:
            self._acknowledged |= ids
            self._tally.pictures += len(ids)
        self._require(code in {0, None}, f"add ended with {code}")

    def _promote(self, before: CommitRecord) -> None:
        with Workspace.open(self._settings, read_only=True) as workspace:
            known = [one.id for one in workspace.releases.releases() if one.id != before.release]
        wanted = self._chance.choice(known)
        code = self._under_fire("promote", ["promote", wanted, "--force", "--why", "soak"])
        self._require_live({wanted} if code == 0 else {before.release, wanted}, code)

    def _rollback(self, before: CommitRecord) -> None:
        with Workspace.open(self._settings, read_only=True) as workspace:
            wanted = going_live.before(workspace, before)
        if wanted is None:
            return
        code = self._under_fire("rollback", ["rollback"])
        self._require_live({wanted} if code == 0 else {before.release, wanted}, code)

    def _withdraw(self, before: CommitRecord) -> None:
        chunk = self._chunk(lambda learned, standing: not learned and standing != WITHDRAWN)
        if chunk is None:
            return
        gone = self._pictures_of(chunk)
        self._acknowledged -= gone  # from now on either may be
        if self._under_fire("withdraw", ["withdraw", chunk, "--why", "soak"]) == 0:
            self._require(self._standing(chunk) == WITHDRAWN, f"{chunk} is not withdrawn")

    def _update(self, before: CommitRecord) -> None:
        chunk = self._chunk(lambda _, standing: standing not in {WITHDRAWN, "held"})
        if chunk is None:
            return
        request = UpdateRequest(chunk, **_LESSON, seed=self._number, by="soak")  # type: ignore[arg-type]
        job = worker.submit(self._settings, "update", request.to_json())
        self._job("update", job.id)

    def _remove(self, before: CommitRecord) -> None:
        chunk = self._chunk(lambda learned, standing: learned and standing != WITHDRAWN)
        if chunk is None:
            return
        self._acknowledged -= self._pictures_of(chunk)
        with Workspace.open(self._settings) as workspace:
            job = requests.remove_chunk(workspace, chunk, why="soak", by="soak")
        self._job("remove", job.id)

    def _gallery(self, before: CommitRecord) -> None:
        """What a promotion or a rollback left to do: pictures that came after the release."""
        with Workspace.open(self._settings, read_only=True) as workspace:
            waiting = [one for one in workspace.catalog.jobs(state="queued") if one.kind == "gallery"]
        if waiting:
            self._job("gallery", waiting[0].id)

    def _job(self, what: str, job: str) -> None:
        """Kills a job's worker up to twice, resumes it as a person does, and has it end."""
        killed = 0
        for tries in (2, 1, 0):
            is_killed = self._under_fire(what, [JOB, job], tries=tries) is None
            worker.recover(self._settings)
            killed += is_killed
            if not is_killed or self._record(job).state in FINAL_STATES:
                break
            self._tally.violations += wrong(self._settings.home, self._acknowledged, f"{what} {self._number}")
            worker.resume(self._settings, job)
        ended = self._record(job)
        self._require(ended.state in _ENDED_WELL, f"{what} {job} is {ended.state}: {ended.error}")
        if killed and ended.state in _ENDED_WELL:
            self._tally.resumed[what] += 1

    def _record(self, job: str) -> JobRecord:
        with Workspace.open(self._settings, read_only=True) as workspace:
            return workspace.catalog.job(job)

    def _serve(self, before: CommitRecord) -> None:
        """Kills a server while it promotes; the next one answers from what is live then."""
        with Workspace.open(self._settings, read_only=True) as workspace:
            known = [one.id for one in workspace.releases.releases() if one.id != before.release]
        wanted = self._chance.choice(known)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        process = self._verbs.start(["serve", "--port", port], self._settings.home)
        began = time.monotonic()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                while not _is_ready(client):
                    require(time.monotonic() - began < _GIVEN_UP_SECONDS, "a server that does not start")
                    time.sleep(0.02)
                self._tally.ready = max(self._tally.ready, time.monotonic() - began)
                answering = client.get("/readyz").json()["release"]
                self._require(answering == before.release, f"{answering} answers, not {before.release}")
                told = self._promoted_while_killed(client, wanted, process.kill)
        finally:
            process.kill()
            process.join()
        self._tally.killed["serve"] += 1
        self._require_live({wanted} if told else {before.release, wanted}, None)

    def _promoted_while_killed(self, client: httpx.Client, wanted: str, kill: Callable[[], None]) -> bool:
        """Asks for a promotion, has the server killed meanwhile, and says whether it was acknowledged."""
        asked = {"force": True, "why": "soak"}
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(client.post, f"/v1/releases/{wanted}/promote", json=asked)
            wait([answer], self._chance.uniform(0.0, _PROMOTION_SECONDS))
            kill()
            try:
                return answer.result().status_code == 200
            except httpx.TransportError:
                return False

    def _chunk(self, wanted: Callable[[bool, str], bool]) -> str | None:
        """Returns one of the chunks by whether it was learned and how it stands, if there is any."""
        with Workspace.open(self._settings, read_only=True) as workspace:
            learned = going_live.live_release(workspace)[1].manifest.chunks
            chunks = workspace.catalog.chunks()[1:]  # the probes stay
        found = [one.id for one in chunks if one.pairs and wanted(one.id in learned, one.standing)]
        return self._chance.choice(found) if found else None

    def _pictures_of(self, chunk: str) -> set[ImageId]:
        with Workspace.open(self._settings, read_only=True) as workspace:
            return set(workspace.catalog.ids_where(chunks=[chunk]))

    def _standing(self, chunk: str) -> str:
        with Workspace.open(self._settings, read_only=True) as workspace:
            return workspace.catalog.chunk(chunk).standing

    def _require_live(self, allowed: set[str], code: int | None) -> None:
        live = _live(self._settings).release
        # Pictures that came later make it a release of their own, of the same version.
        self._require(live in allowed, f"{live} is live, and not one of {sorted(allowed)} ({code})")

    def _require(self, holds: bool, said: str) -> None:
        if not holds:
            self._tally.violations.append(f"{self._number}: {said}")


def _live(settings: Settings) -> CommitRecord:
    with Workspace.open(settings, read_only=True) as workspace:
        return going_live.live_release(workspace)[0]


def _is_ready(client: httpx.Client) -> bool:
    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


def _make_template(settings: Settings, work: Path) -> None:
    """Makes a home with six chunks, of which the live release has learned two."""
    beginning.initialise(settings)
    every = list(all_scenes())
    with Workspace.open(settings) as workspace:
        for number in range(6):
            source = work / f"chunk-{number}.zip"
            drawn = [(scene, "flat", n) for n, scene in enumerate(every[number::150][:_SCENES])]
            write_chunk(source, scenes=drawn, languages=["en", "de"])
            chunk = adding.add_chunk(workspace, source, IntakeOptions(), by="soak").report.chunk_id
            if number >= 2:
                continue
            request = UpdateRequest(chunk, **_LESSON, promote=False, by="soak")  # type: ignore[arg-type]
            scratch = workspace.home.staging / f"template-{number}"
            done = update_cycle.update(workspace, request, scratch=scratch, progress=lambda _: None)
            require(done.release, done.sentence)
            going_live.promote(workspace, str(done.release), why="soak", by="soak", force=True)


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
