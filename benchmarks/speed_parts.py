"""Speed of queries, of bulk embedding and of the command line, as ratios of times taken in one run on one machine."""

from __future__ import annotations

import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file
from speed_timing import Measured, in_turn, photo, timed

from app.home.manifest import ReleaseManifest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import going_live, update_cycle
from app.query.grammar import parse
from app.query.question import Question
from app.server.security import ANYONE
from app.server.served import Served
from app.server.serving import Serving
from index.vectors import unit_rows
from index.writing import write_generation
from ingest.images import decode
from ingest.limits import DEFAULT_LIMITS
from model_updates.features import NoCache, image_features
from model_updates.opening import build_model, wrap
from model_updates.search_encoder import IMAGE_BATCH

ARCHITECTURE = "ViT-B-32"
QUERIES = (
    "two dogs run along a beach",
    "a red boat under the moon",
    "children playing football in a park",
    "an old man sits on a bench and reads a newspaper",
    "snow",
)


def text_query(work: Path, *, vectors: int, rounds: int) -> Measured:
    """Times a text query inside the server against the bare encoder call plus the bare FAISS call."""
    with Workspace.open(random_home(work, "query-home")) as workspace:
        publish_gallery(workspace, vectors)
        serving = Serving(workspace)
        serving.start()
        desk, snapshot = Served(serving, ANYONE), serving.snapshot()
        encoder, index = snapshot.encoder, snapshot.generation.portions[0].segment.index
        tokens = [encoder.tokenize([query]) for query in QUERIES]

        def bare(n: int) -> None:
            with torch.inference_mode():
                features = encoder.forward_tokens(tokens[n % len(QUERIES)]).numpy()
            index.search(features, 20)

        def served(n: int) -> None:
            desk.find(Question(parse(QUERIES[n % len(QUERIES)]), k=20))

        # Taken in turn, so that whatever else the machine does meets both alike.
        times: dict[str, list[float]] = {"bare": [], "served": []}
        for n in range(rounds + 5):
            for name, call in (("bare", bare), ("served", served)):
                seconds = timed(lambda c=call, i=n: c(i))  # type: ignore[misc]
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


def random_home(work: Path, name: str) -> Settings:
    """Makes a home whose encoder has random weights and 512 dimensions."""
    settings = Settings(home=work / name, device="cpu", poll_seconds=3600)
    weights = work / "random.safetensors"
    torch.manual_seed(0)
    model = build_model(ARCHITECTURE)
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, weights)
    update_cycle.initialise(settings, model=ARCHITECTURE, pretrained=str(weights))
    weights.unlink()
    return settings


def publish_gallery(workspace: Workspace, vectors: int) -> None:
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


def bulk_embedding(*, pictures: int, rounds: int) -> Measured:
    """Times embedding pictures from their files against the model alone on the same batches."""
    torch.manual_seed(0)
    encoder = wrap(build_model(ARCHITECTURE), ARCHITECTURE)
    files = {f"{n}": photo(n) for n in range(pictures)}

    def load(image_id: str) -> Image.Image:
        return decode(files[image_id], DEFAULT_LIMITS).image

    prepared = encoder.prepare_images([load(image_id) for image_id in files])

    def model_only() -> None:
        with torch.inference_mode():
            for start in range(0, pictures, IMAGE_BATCH):
                encoder.forward_images(prepared[start : start + IMAGE_BATCH])

    def product() -> None:
        image_features(encoder, list(files), load, NoCache())

    model_seconds, product_seconds = in_turn([model_only, product], rounds)
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


def help_seconds(rounds: int) -> Measured:
    """Times `perennial --help` in a new process."""
    command = [sys.executable, "-m", "perennial", "--help"]

    def call() -> None:
        subprocess.run(command, check=True, capture_output=True)

    call()
    seconds = [timed(call) for _ in range(rounds)]
    middle = statistics.median(seconds)
    return Measured(
        "`perennial --help`",
        f"{middle:.2f} s",
        "< 1 s",
        middle < 1,
        f"median of {rounds} new processes, after one to warm the file cache",
    )
