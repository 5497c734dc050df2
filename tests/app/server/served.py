"""A small real home and a real server on loopback, for the tests of REST, security and screens."""

from __future__ import annotations

import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import torch
import uvicorn
from fastapi import FastAPI

from app.desk.errors import TooBusy
from app.desk.slices import SliceSummary
from app.home.manifest import ReleaseManifest
from app.home.releases import ReleaseRecord
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.jobs import worker
from app.jobs.job_runner import run_job
from app.learning import gallery
from app.server.api import create_api
from app.server.handing import server_options
from app.server.places import Places
from app.server.security import Passwords
from app.server.serving import Serving
from app.ui.start import start_gradio
from app.web import create_app
from ingest.intake import IntakeOptions, ingest_source
from ingest.records import JobRecord
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from model_updates.encoder import Encoder
from model_updates.gate.report import GateReport, Policy, RuleResult, Verdict
from model_updates.opening import open_encoder
from model_updates.versions import write_version

PICTURES = 10
_LEFT: list[int] = []


def sample_upload(
    path: Path, *, first: int = 0, count: int = PICTURES, languages: tuple[str, ...] = ("en", "de")
) -> Path:
    """A zip of drawn scenes."""
    every = list(all_scenes())
    chosen = [every[(first + n) * 37 % len(every)] for n in range(count)]
    write_chunk(
        path, scenes=[(scene, "flat", n) for n, scene in enumerate(chosen)], languages=list(languages)
    )
    return path


@cache
def _template() -> Path:
    """A home with three releases: r1 is live, r2 knows German too, r3 waits for a review."""
    root = Path(tempfile.mkdtemp(prefix="served-"))
    settings = Settings(home=root / "home")
    with Workspace.create(settings) as workspace:
        ingest_source(
            sample_upload(root / "scenes.zip"),
            catalog=workspace.catalog,
            blobs=workspace.blobs,
            options=IntakeOptions(),
        )
        encoder = open_encoder()
        first = _release(workspace, encoder, languages=["en"], parent=None, recall=40.0, gate=None)
        workspace.releases.commit(first.id, parent=None, reason="init", why="tests", by="tests")
        changed = _changed(encoder)
        second = _release(
            workspace,
            changed,
            languages=["en", "de"],
            parent=first.id,
            recall=60.0,
            gate=_gate(Verdict.PROMOTE),
        )
        _release(
            workspace,
            changed,
            languages=["en", "de"],
            parent=second.id,
            recall=50.0,
            gate=_gate(Verdict.REVIEW),
        )
    return root / "home"


def make_home(folder: Path, **differs: Any) -> Settings:
    """A copy of the template home, whose jobs run in a thread of ours (see `served`) unless it says otherwise."""
    shutil.copytree(_template(), folder / "home")
    return Settings(home=folder / "home", poll_seconds=0.1, jobs="elsewhere").model_copy(update=differs)


def add_held_out(workspace: Workspace, folder: Path, *, count: int = 30) -> str:
    """Takes in pictures of which some are held out, as measuring material; returns the chunk's id."""
    done = ingest_source(
        sample_upload(folder / "held-out.zip", first=50, count=count),
        catalog=workspace.catalog,
        blobs=workspace.blobs,
        options=IntakeOptions(),
    )
    workspace.catalog.set_standing(done.chunk_id, "accepted", by="tests", why="tests", measures=True)
    return done.chunk_id


@contextmanager
def full(places: Places) -> Iterator[None]:
    """Takes every place and every place to wait for one."""
    taken = []
    try:
        with suppress(TooBusy):
            while True:
                taken.append(places._ask())
        yield
    finally:
        for one in taken:
            places._leave(one)


@dataclass
class Served:
    """A running server."""

    url: str
    settings: Settings
    serving: Serving
    app: FastAPI

    def client(self, **options: Any) -> httpx.Client:
        # Reading the certificates of all authorities takes longer than most tests do.
        return httpx.Client(base_url=self.url, timeout=60, verify=False, **options)

    def ended(self, job_id: str) -> JobRecord:
        """Waits for a job, and returns it."""
        return worker.wait(self.settings, job_id, threading.Event())


@cache
def _uploads() -> Path:
    """One folder for all servers of this process: Gradio asks the environment for it whenever a file comes."""
    return Path(tempfile.mkdtemp(prefix="served-uploads-"))


@contextmanager
def _listener() -> Iterator[socket.socket]:
    """An address that an earlier server has left, if there is one: a browser knows the scripts that lie there."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", _LEFT.pop() if _LEFT else 0))
        except OSError:  # somebody has taken it since
            listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        yield listener
    _LEFT.append(port)


@contextmanager
def _jobs_done(serving: Serving) -> Iterator[None]:
    """Runs what a server queues as it comes, in a thread of this process and one by one.

    A process for each job would load torch and open_clip for seconds. None of these can be cancelled: the signal would
    end the tests.
    """
    settings, catalog = serving.workspace.settings, serving.workspace.catalog
    stopping = threading.Event()

    def run() -> None:
        while not stopping.wait(0.05):
            followed = serving.work.followed
            for job in catalog.jobs(state="queued")[::-1] if followed else ():
                if job.id in followed:
                    (settings.home / "staging" / job.id).mkdir(exist_ok=True)
                    run_job(settings, job.id)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    yield
    stopping.set()
    thread.join(timeout=60)
    assert not thread.is_alive()


@contextmanager
def served(
    settings: Settings,
    passwords: Passwords | None = None,
    *,
    with_pages: bool = False,
    with_jobs: bool = True,
) -> Iterator[Served]:
    """Runs the real server in a thread of this process, and beside it the jobs that it leaves to others.

    Building the pages takes longer than all else that starts.
    """
    start_gradio(_uploads())
    with Workspace.open(settings) as workspace, _listener() as listener, ThreadPoolExecutor(1) as elsewhere:
        serving = Serving(workspace)
        build = create_app if with_pages else create_api
        # A test's own thread may have a loop that runs, its browser's, and Gradio needs another.
        app = elsewhere.submit(build, serving, passwords).result()
        server = uvicorn.Server(server_options(app, settings))
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        deadline = time.monotonic() + 60
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            assert time.monotonic() < deadline, "the server took too long to start"
            time.sleep(0.02)
        is_beside = with_jobs and settings.jobs == "elsewhere"
        try:
            with _jobs_done(serving) if is_beside else nullcontext():
                yield Served(url, settings, serving, app)
        finally:
            server.should_exit = True
            thread.join(timeout=20)
            assert not thread.is_alive()


def search(client: httpx.Client, **body: Any) -> dict[str, Any]:
    """What a server answers to a red boat."""
    answer = client.post("/v1/search", json={"text": "a red boat", **body})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def refusal(answer: httpx.Response) -> tuple[int, str]:
    """Status and code with which something was refused, in a sentence."""
    said = answer.json()
    assert said["error"], answer.text
    assert "Traceback" not in answer.text
    return answer.status_code, said["code"]


def _release(
    workspace: Workspace,
    encoder: Encoder,
    *,
    languages: list[str],
    parent: str | None,
    recall: float,
    gate: GateReport | None,
) -> ReleaseRecord:
    staged = workspace.home.staging / "version"
    write_version(
        staged, encoder, {"languages": languages, "parent": parent, "recall": recall}, {}, portable=True
    )
    version = workspace.releases.publish_version(staged)
    embedded = gallery.embed_gallery(workspace, encoder, previous=None)
    recalls = {f"{way}_r{k}": recall + k for way in ("t2i", "i2t") for k in (1, 5, 10)}
    release = workspace.releases.publish_release(
        ReleaseManifest(
            version=version,
            generation=embedded.generation,
            languages=tuple(languages),
            parent=parent,
            strategy="language-tables" if parent else None,
            mode=embedded.mode,
            images_embedded=embedded.images_embedded,
            gate=gate.to_json() if gate else None,
            slices=tuple(SliceSummary(tag, "scenes", 4, 4, recalls) for tag in languages),
            created="2026-01-02T03:04:05+00:00",
        )
    )
    return workspace.releases.release(release)


def _changed(encoder: Encoder) -> Encoder:
    """The same image tower under another text tower, so that answers differ."""
    changed = encoder.copy()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        table = changed.model.token_embedding.weight  # type: ignore[union-attr]
        table.add_(float(np.std(table.numpy())) * torch.randn(table.shape, generator=generator))  # type: ignore[operator,arg-type]
    changed.forget_fingerprints()
    return changed


def _gate(verdict: Verdict) -> GateReport:
    return GateReport(Policy(), (RuleResult("kept", verdict, ("de/scenes has 4 held-out images.",)),), ())
