"""The measurements of benchmarks/speed.py; each returns ratios of times taken in one run on one machine."""

from __future__ import annotations

import io
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from app.learning import going_live, update_cycle
from app.learning.outcomes import Stage, UpdateRequest
from app.releases.manifest import ReleaseManifest
from app.search import Answer
from app.server.serving import Serving
from app.settings import GateSettings, Settings
from app.workspace import Workspace
from index.generation import write_generation
from index.vectors import unit_rows
from ingest.images import decode
from ingest.intake import IntakeOptions
from ingest.limits import DEFAULT_LIMITS
from ingest.samples import scenes
from ingest.samples.chunks import write_chunk
from model_updates.batches import gather
from model_updates.encoder import IMAGE_BATCH, Encoder
from model_updates.features import NoCache, image_features
from model_updates.opening import build_model, open_encoder, wrap
from model_updates.options import options_of
from model_updates.pairs import Batch, TrainingPair
from model_updates.strategies.language_tables import LanguageTables
from model_updates.strategy import Strategy, UpdateContext
from model_updates.towers import token_table
from model_updates.trainer import TrainingReport, run_update

ARCHITECTURE = "ViT-B-32"
# Between swaps, so that several queries meet each release at 20 a second.
SWAP_PAUSE_SECONDS = 0.25
QUERIES = (
    "two dogs run along a beach",
    "a red boat under the moon",
    "children playing football in a park",
    "an old man sits on a bench and reads a newspaper",
    "snow",
)


@dataclass(frozen=True)
class Measured:
    """One line of the report: what was measured, what came out, and whether the bar holds."""

    what: str
    figure: str
    bar: str
    holds: bool
    details: str


# ------------------------------------------------------------------------------------------------- queries


def text_query(work: Path, *, vectors: int, rounds: int) -> Measured:
    """Times a text query inside the server against the bare encoder call plus the bare FAISS call."""
    settings = Settings(home=work / "query-home", device="cpu", poll_seconds=3600)
    weights = work / "random.safetensors"
    torch.manual_seed(0)
    model = build_model(ARCHITECTURE)
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, weights)
    update_cycle.initialise(settings, model=ARCHITECTURE, pretrained=str(weights))
    weights.unlink()
    with Workspace.open(settings) as workspace:
        _publish_gallery(workspace, vectors)
        serving = Serving(workspace)
        serving.start()
        snapshot = serving.snapshot()
        encoder, index = snapshot.encoder, snapshot.generation.index
        tokens = [encoder.tokenize([query]) for query in QUERIES]

        def bare(n: int) -> None:
            with torch.inference_mode():
                features = encoder.forward_tokens(tokens[n % len(QUERIES)]).numpy()
            index.search(features, 20)

        def served(n: int) -> None:
            serving.search(QUERIES[n % len(QUERIES)], k=20)

        # Taken in turn, so that whatever else the machine does meets both alike.
        times: dict[str, list[float]] = {"bare": [], "served": []}
        for n in range(rounds + 5):
            for name, call in (("bare", bare), ("served", served)):
                seconds = _timed(lambda c=call, i=n: c(i))  # type: ignore[misc]
                if n >= 5:
                    times[name].append(seconds)
        serving.stop()
    bare_p50, served_p50 = (1000 * statistics.median(times[name]) for name in ("bare", "served"))
    ratio = served_p50 / bare_p50
    return Measured(
        f"text query in the server, {vectors:,} vectors of 512, p50",
        f"{ratio:.2f}x the bare encoder call plus the bare FAISS call",
        "<= 1.3x",
        ratio <= 1.3,
        f"{served_p50:.1f} ms against {bare_p50:.1f} ms, {rounds} queries each, taken in turn; "
        "four languages learned, so the language is detected too; p95 "
        f"{1000 * np.quantile(times['served'], 0.95):.1f} against {1000 * np.quantile(times['bare'], 0.95):.1f} ms",
    )


def _publish_gallery(workspace: Workspace, vectors: int) -> None:
    """Makes a release live whose generation holds random vectors, with four learned languages."""
    live, record = going_live.live_release(workspace)
    encoder = workspace.open_encoder(record.version)
    rows = np.random.default_rng(0).standard_normal((vectors, encoder.dim), dtype=np.float32)
    staged = workspace.home.staging / "speed-generation"
    ids = [f"{n:064x}" for n in range(vectors)]
    write_generation(
        staged, fingerprint=encoder.image_fingerprint(), ids=ids, vectors=unit_rows(rows), mode="full"
    )
    generation = workspace.releases.publish_generation(staged)
    facts = ReleaseManifest(record.version, generation, languages=("en", "de", "fr", "ja"))
    release = workspace.releases.publish_release(facts)
    workspace.releases.commit(release, parent=live.number, reason="ingest", why="benchmark", by="benchmark")


# ------------------------------------------------------------------------------------------- bulk embedding


def bulk_embedding(*, pictures: int, rounds: int) -> Measured:
    """Times embedding pictures from their files against the model alone on the same batches."""
    torch.manual_seed(0)
    encoder = wrap(build_model(ARCHITECTURE), ARCHITECTURE)
    files = {f"{n}": _photo(n) for n in range(pictures)}

    def load(image_id: str) -> Image.Image:
        return decode(files[image_id], DEFAULT_LIMITS).image

    prepared = encoder.prepare_images([load(image_id) for image_id in files])

    def model_only() -> None:
        with torch.inference_mode():
            for start in range(0, pictures, IMAGE_BATCH):
                encoder.forward_images(prepared[start : start + IMAGE_BATCH])

    def product() -> None:
        image_features(encoder, list(files), load, NoCache())

    model_seconds, product_seconds = _in_turn([model_only, product], rounds)
    ratio = model_seconds / product_seconds
    return Measured(
        f"bulk embedding, {ARCHITECTURE} shapes",
        f"{ratio:.2f}x the model-only throughput",
        ">= 0.9x",
        ratio >= 0.9,
        f"{pictures / product_seconds:.1f} pictures/s decoded, prepared and embedded against "
        f"{pictures / model_seconds:.1f} through the model alone; {pictures} JPEG pictures of 500 x 375, "
        f"batches of {IMAGE_BATCH}",
    )


def _photo(seed: int) -> bytes:
    """Returns a JPEG of the size that photographs on the web have, smooth enough to compress like one."""
    noise = np.random.default_rng(seed).integers(0, 256, (12, 16, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(noise).resize((500, 375), Image.Resampling.BICUBIC).save(buffer, "JPEG", quality=85)
    return buffer.getvalue()


# ---------------------------------------------------------------------------------------- text-only update


class WithImageForwards(LanguageTables):
    """What a text-only update would cost without cached features: each step runs the frozen image tower."""

    name = "language-tables"

    @property
    def touches_image(self) -> bool:
        """Asks the trainer for pictures."""
        return True

    def terms(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Computes the picture features of the batch anew."""
        if batch.images is None:
            raise ValueError("pictures are missing from the batch")
        with torch.no_grad():
            self._encoder.forward_images(batch.images)
        return super().terms(batch)


def text_only_update(*, pairs: int) -> Measured:
    """Compares an epoch without image forwards to one with them, and to what the towers' own times allow."""
    drawn = list(scenes.all_scenes())[:pairs]
    pictures = {str(n): scenes.draw(scene, style="flat", seed=n) for n, scene in enumerate(drawn)}
    lesson = tuple(
        TrainingPair(str(n), scenes.caption(scene, "de"), "de", "drawn", scenes.caption(scene, "en"))
        for n, scene in enumerate(drawn)
    )
    text_only = _epoch_seconds(LanguageTables, lesson, pictures)
    with_images = _epoch_seconds(WithImageForwards, lesson, pictures)
    image_seconds, text_seconds = _tower_seconds(text_only.encoder, lesson, pictures)
    reached = with_images.seconds / text_only.seconds
    allowed = (image_seconds + text_seconds) / text_seconds
    share = reached / allowed
    return Measured(
        "text-only update",
        f"{share:.2f} of the speed-up that the towers' own times allow, {text_only.image_forwards} image forwards",
        ">= 0.85, 0 image forwards",
        share >= 0.85 and text_only.image_forwards == 0,
        f"an epoch of {pairs} pairs takes {text_only.seconds:.2f} s against {with_images.seconds:.2f} s with image "
        f"forwards: {reached:.2f}x; the towers alone take {image_seconds:.2f} s (image forward) and "
        f"{text_seconds:.2f} s (text forward and backward) for the same batches: {allowed:.2f}x",
    )


@dataclass(frozen=True)
class _Epoch:
    seconds: float
    image_forwards: int
    encoder: Encoder


def _epoch_seconds(
    kind: type[Strategy], lesson: tuple[TrainingPair, ...], pictures: dict[str, Image.Image]
) -> _Epoch:
    """Returns the cost of one epoch: a run of three epochs less a run of one, so that preparing drops out."""
    (one, _), (three, encoder) = (_train(kind, lesson, pictures, epochs) for epochs in (1, 3))
    return _Epoch((three.seconds - one.seconds) / 2, three.image_forwards, encoder)


def _train(
    kind: type[Strategy], lesson: tuple[TrainingPair, ...], pictures: dict[str, Image.Image], epochs: int
) -> tuple[TrainingReport, Encoder]:
    base, candidate = open_encoder(), open_encoder()
    strategy = kind(options_of(kind, {"epochs": epochs}))
    context = UpdateContext(
        encoder=candidate,
        pairs=lesson,
        learned_languages=frozenset({"en"}),
        open_anchor=lambda: base,
        open_previous=lambda: base,
        seed=0,
        update_number=1,
    )
    cache = NoCache()
    report = run_update(
        strategy,
        context,
        lambda: gather(
            lesson, (), strategy=strategy, context=context, load_image=pictures.__getitem__, cache=cache
        ),
    )
    return report, candidate


def _tower_seconds(
    encoder: Encoder, lesson: tuple[TrainingPair, ...], pictures: dict[str, Image.Image]
) -> tuple[float, float]:
    """Times the towers alone on an epoch's batches, read with the vocabulary that the update has grown."""
    table = token_table(encoder.model)
    if table is None:
        raise ValueError("the encoder has no token table")
    encoder.model.requires_grad_(False)
    table.requires_grad_(True)
    size = 128
    batches = [lesson[start : start + size] for start in range(0, len(lesson), size)]
    prepared = [encoder.prepare_images([pictures[pair.image_id] for pair in batch]) for batch in batches]
    tokens = [encoder.tokenize([pair.text for pair in batch], "de") for batch in batches]

    def image() -> None:
        with torch.no_grad():
            for batch in prepared:
                encoder.forward_images(batch)

    def text() -> None:
        for batch in tokens:
            encoder.forward_tokens(batch).sum().backward()  # type: ignore[no-untyped-call]

    image_seconds, text_seconds = _in_turn([image, text], 3)
    return image_seconds, text_seconds


# --------------------------------------------------------------------------------------------------- swaps


def swaps_under_load(work: Path, *, swaps: int, rate: float) -> Measured:
    """Swaps between two releases with different towers and galleries while queries come in at a steady rate."""
    gate = GateSettings(minimum_images=10**6, pooled_drop=100.0, slice_drop=100.0, samples=100)
    settings = Settings(home=work / "swap-home", device="cpu", poll_seconds=0.05, gate=gate)
    update_cycle.initialise(settings)
    with Workspace.open(settings) as workspace:
        releases = _two_releases(workspace, work)
        serving = Serving(workspace)
        serving.start()
        queries = [scenes.caption(scene, "en") for scene in list(scenes.all_scenes())[::97]]
        expected = {
            (release, query): _found(serving.search(query, language="en", release=release))
            for release in releases
            for query in queries
        }
        load = _Load(serving, queries, expected, rate)
        load.start()
        seen: list[str] = [serving.snapshot().release.id]
        for n in range(swaps):
            other = releases[n % 2] if seen[-1] != releases[n % 2] else releases[(n + 1) % 2]
            going_live.promote(workspace, other, why="benchmark", by="benchmark", force=True)
            while serving.snapshot().release.id != other:
                time.sleep(0.005)
            seen.append(other)
            time.sleep(SWAP_PAUSE_SECONDS)
        load.stop()
        serving.stop()
    made = len(seen) - 1
    return Measured(
        f"{made} swaps under {rate:.0f} queries a second",
        f"{load.failed} failed, {load.torn} torn of {load.asked} queries",
        "0 failed, 0 torn",
        load.failed == 0 and load.torn == 0 and made == swaps,
        f"the two releases differ in both towers and in their vectors; an answer is torn when it is not the one that "
        f"its own release gives; answers came from {len(load.releases)} releases; slowest "
        f"query {1000 * load.slowest:.0f} ms",
    )


def _two_releases(workspace: Workspace, work: Path) -> tuple[str, str]:
    source = work / "swap.zip"
    drawn = [(scene, "flat", n) for n, scene in enumerate(list(scenes.all_scenes())[:200])]
    write_chunk(source, scenes=drawn, languages=["en"])
    added = update_cycle.add_chunk(workspace, source, IntakeOptions(), by="benchmark")
    first = going_live.live_release(workspace)[1].id
    request = UpdateRequest(
        chunk=added.report.chunk_id, strategy="finetune", options={"epochs": 1}, by="benchmark"
    )

    def ignore(_: Stage) -> None:
        """Nobody watches."""

    outcome = update_cycle.update(
        workspace, request, scratch=workspace.home.staging / "speed", progress=ignore
    )
    if outcome.release is None:
        raise RuntimeError(f"the second release was not made: {outcome.sentence}")
    return first, outcome.release


class _Load:
    """Asks at a steady rate from several threads and keeps count."""

    threads = 4

    def __init__(
        self,
        serving: Serving,
        queries: Sequence[str],
        expected: dict[tuple[str, str], list[str]],
        rate: float,
    ) -> None:
        self._serving, self._queries, self._expected = serving, queries, expected
        self._pause = self.threads / rate
        self._done = threading.Event()
        self._lock = threading.Lock()
        self.asked = self.failed = self.torn = 0
        self.slowest = 0.0
        self.releases: set[str] = set()
        self._workers = [threading.Thread(target=self._ask, args=(n,)) for n in range(self.threads)]

    def start(self) -> None:
        for worker in self._workers:
            worker.start()

    def stop(self) -> None:
        self._done.set()
        for worker in self._workers:
            worker.join()

    def _ask(self, number: int) -> None:
        turn = number
        due = time.monotonic() + number * self._pause / self.threads
        while not self._done.wait(max(0.0, due - time.monotonic())):
            due += self._pause
            turn += 1
            query = self._queries[turn % len(self._queries)]
            started = time.monotonic()
            try:
                answer = self._serving.search(query, language="en")
            except Exception:  # noqa: BLE001  whatever it is, the query failed, and that is the count
                with self._lock:
                    self.asked, self.failed = self.asked + 1, self.failed + 1
                continue
            torn = _found(answer) != self._expected[answer.release, query]
            with self._lock:
                self.asked += 1
                self.torn += torn
                self.slowest = max(self.slowest, time.monotonic() - started)
                self.releases.add(answer.release)


def _found(answer: Answer) -> list[str]:
    return [hit.image_id for hit in answer.hits]


# ---------------------------------------------------------------------------------------------------- help


def help_seconds(rounds: int) -> Measured:
    """Times `python -m app --help` in a new process."""
    command = [sys.executable, "-m", "app", "--help"]

    def call() -> None:
        subprocess.run(command, check=True, capture_output=True)

    call()
    seconds = [_timed(call) for _ in range(rounds)]
    middle = statistics.median(seconds)
    return Measured(
        "`python -m app --help`",
        f"{middle:.2f} s",
        "< 1 s",
        middle < 1,
        f"median of {rounds} new processes, after one to warm the file cache",
    )


# -------------------------------------------------------------------------------------------------- timing


def _timed(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def _in_turn(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """Returns the median seconds of each call, after one to warm up, taken in turn."""
    for call in calls:
        call()
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, kept in zip(calls, times, strict=True):
            kept.append(_timed(call))
    return [statistics.median(kept) for kept in times]
