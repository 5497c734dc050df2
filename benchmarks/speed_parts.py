"""Speed of queries, of bulk embedding and of the command line, as ratios of times taken in one run on one machine."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from interface_home import make_home
from PIL import Image
from safetensors.torch import save_file
from speed_timing import Measured, in_turn, photo, require, timed
from sqlalchemy import func, insert, select

from app.home.manifest import ReleaseManifest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import beginning, going_live
from app.query.grammar import parse
from app.query.question import Question
from app.server.security import ANYONE
from app.server.served import Served
from app.server.serving import Serving
from index.kinds import AUTO
from index.vectors import unit_rows
from index.writing import write_generation
from ingest.checks import DEFAULT_DOMAIN
from ingest.engines import writing
from ingest.images import decode
from ingest.limits import DEFAULT_LIMITS
from ingest.schema import chunks, images
from model_updates.features import NoCache, image_features
from model_updates.kept_tensors import KeptTensors
from model_updates.onnx_sessions import session
from model_updates.opening import build_model, wrap
from model_updates.portable_encoder import FACTS, PortableEncoder, lacks
from model_updates.search_encoder import IMAGE_BATCH
from model_updates.vocabulary import SHARED

ARCHITECTURE = "ViT-B-32"
QUERIES = (
    "two dogs run along a beach",
    "a red boat under the moon",
    "children playing football in a park",
    "an old man sits on a bench and reads a newspaper",
    "snow",
)


def text_query(work: Path, *, vectors: int, rounds: int) -> Measured:
    """Times a text query inside the server against the bare text tower plus the bare FAISS call, as it runs them."""
    weights = _random_weights(work)
    ratios, said = [], []
    for name, pretrained in ((ARCHITECTURE, str(weights)), ("perennial-tiny", None)):
        home = make_home(work / f"query-{name}", vectors, model=name, pretrained=pretrained)
        with Workspace.open(Settings(home=home, device="cpu", poll_seconds=3600)) as workspace:
            live, record = going_live.live_release(workspace)
            four = record.manifest.successor(record.id, languages=("en", "de", "fr", "ja"))
            release = workspace.releases.publish_release(four)
            workspace.releases.commit(
                release, parent=live.number, reason="ingest", why="benchmark", by="benchmark"
            )
            bare, served = _query_times(workspace, rounds)
        (bare_p50, bare_p95), (served_p50, served_p95) = (
            np.quantile(one, (0.5, 0.95)) for one in (bare, served)
        )
        ratios.append(served_p50 / bare_p50)
        said.append(
            f"{name}: {served_p50:.1f} ms against {bare_p50:.1f} ms, p95 {served_p95:.1f} against {bare_p95:.1f}"
        )
    return Measured(
        f"text query in the server, {vectors:,} vectors, p50, with a large and a small text tower",
        f"{' and '.join(f'{ratio:.2f}x' for ratio in ratios)} the bare tower in onnxruntime plus the bare FAISS call",
        "<= 1.3x",
        bool(max(ratios) <= 1.3),
        f"{'; '.join(said)}; {rounds} queries each, taken in turn, no text asked twice; four languages learned, so the "
        "language is detected too",
    )


def _query_times(workspace: Workspace, rounds: int) -> tuple[list[float], list[float]]:
    """Returns the milliseconds of bare and of served queries, taken in turn: what else runs meets both alike."""
    serving = Serving(workspace)
    serving.start()
    desk, snapshot = Served(serving, ANYONE), serving.snapshot()
    index = snapshot.generation.portions[0].segment.index
    folder = workspace.home.versions / going_live.live_release(workspace)[1].version
    opened = PortableEncoder(folder)
    weights = KeptTensors(folder.glob("weights*"))
    names = lacks(json.loads((folder / FACTS).read_text()), "search-text.onnx")
    numbers = {name: weights.array(name.partition(".")[2]) for name in names}
    tower, rows = session(folder / "search-text.onnx", numbers), weights.rows("token_embedding.weight")

    def bare(text: str) -> None:
        tokens = opened.tokens([text], [SHARED])
        ends = (tokens == opened.vocabulary.end_row).argmax(axis=1)  # type: ignore[union-attr]
        features = tower.run(None, {"embedded": rows[tokens[:, : ends[0] + 1]], "ends": ends})[0]
        index.search(unit_rows(features), 20)

    def served(text: str) -> None:
        require(desk.find(Question(parse(text), k=20)).hits, "no hits")

    times: dict[Callable[[str], None], list[float]] = {bare: [], served: []}
    for n in range(rounds + 5):
        for call, kept in times.items():
            text = f"{QUERIES[n % len(QUERIES)]} {n}"
            kept.append(1000 * timed(partial(call, text)))
    serving.stop()
    return times[bare][5:], times[served][5:]


def random_home(work: Path, name: str) -> Settings:
    """Makes a home whose encoder has random weights and 512 dimensions."""
    settings = Settings(home=work / name, device="cpu", poll_seconds=3600)
    weights = _random_weights(work)
    beginning.initialise(settings, model=ARCHITECTURE, pretrained=str(weights))
    weights.unlink()
    return settings


def _random_weights(work: Path) -> Path:
    torch.manual_seed(0)
    model, place = build_model(ARCHITECTURE), work / "random.safetensors"
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, place)
    return place


def publish_gallery(workspace: Workspace, vectors: int) -> None:
    """Makes a release live whose generation holds random vectors, with four learned languages."""
    live, record = going_live.live_release(workspace)
    encoder = workspace.open_encoder(record.version)
    rows = np.random.default_rng(0).standard_normal((vectors, encoder.dim), dtype=np.float32)
    staged = workspace.home.staging / "speed-generation"
    ids = [f"{n:064x}" for n in range(vectors)]
    known_pictures(workspace, ids)
    write_generation(
        staged,
        fingerprint=encoder.image_fingerprint(),
        ids=ids,
        vectors=unit_rows(rows),
        mode="full",
        factory=AUTO,
    )
    generation = workspace.releases.publish_generation(staged)
    facts = ReleaseManifest(record.version, generation, languages=("en", "de", "fr", "ja"))
    release = workspace.releases.publish_release(facts)
    workspace.releases.commit(release, parent=live.number, reason="ingest", why="benchmark", by="benchmark")


def known_pictures(workspace: Workspace, ids: Sequence[str]) -> None:
    """Has the catalog know pictures of a gallery: what an index holds beside them is hidden."""
    with writing(workspace.catalog._engine) as connection:
        chunk = connection.execute(select(func.max(chunks.c.seq))).scalar_one()
        facts = {"domain": DEFAULT_DOMAIN, "split": "train", "width": 9, "height": 9, "format": "JPEG"}
        rows = [{"id": one, "in_gallery": True, "chunk": chunk, "sketch": b"", **facts} for one in ids]
        connection.execute(insert(images), rows)


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
