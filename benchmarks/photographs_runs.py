"""The cells of the photograph benchmark: each drives the product as a user would and returns plain values."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from photographs_data import DOMAIN, KNOWN, NEW, SHOP, photo_rows, shop_rows, test_captions
from real_input_runs import Bench, add, live_encoder, outcome_values, run_update

from app.desk.jobs import UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import beginning, going_live, training
from app.learning.lessons import choose_strategy
from ingest.pair import Split
from model_updates import trainer
from model_updates.embedded import base_languages
from model_updates.encoder import Encoder
from model_updates.evaluation import caption_ranks
from model_updates.features import image_features, text_features
from model_updates.gate.report import Policy
from model_updates.search_encoder import unit
from model_updates.trainer import TrainingReport

MODEL = "perennial-photo"
STEPS = ("en", SHOP, *NEW)
ENGLISH = "en"

Values = dict[str, Any]


@dataclass(frozen=True)
class Photographs:
    """What every cell needs.

    Attributes:
        bench: data, work folder, and how to say a line.
        photos: training photographs; None takes all.
    """

    bench: Bench
    photos: int | None

    def settings(self, name: str) -> Settings:
        """Returns the settings of one of the benchmark's homes, with the default gate."""
        return Settings(home=self.bench.work / "homes" / name, device="cpu", gate=Policy())


def template(cell: Photographs) -> Values:
    """Makes a home with all chunks taken in and their pictures embedded, and says what it took; nothing is taught."""
    settings = cell.settings("template")
    shutil.rmtree(settings.home, ignore_errors=True)
    started = time.monotonic()
    beginning.initialise(settings, model=MODEL)
    values: Values = {"init_seconds": time.monotonic() - started, "chunks": {}}
    with Workspace.open(settings) as workspace:
        for step in STEPS:
            started = time.monotonic()
            rows = (
                shop_rows(cell.bench.data) if step == SHOP else photo_rows(cell.bench.data, step, cell.photos)
            )
            values["chunks"][step] = add(cell.bench, workspace, step, rows)
            values[f"{step}_seconds"] = time.monotonic() - started
        started = time.monotonic()
        encoder = live_encoder(workspace)
        pairs = workspace.catalog.pairs(chunk=values["chunks"][ENGLISH])
        text_features(encoder, [pair.text for pair in pairs], ENGLISH, workspace.features)
        values |= {"text_seconds": time.monotonic() - started, "texts": len(pairs)}
        values["before"] = measured(cell, workspace, encoder)
    return values


def teach(cell: Photographs, step: str, seed: int, chunk: str) -> Values:
    """Teaches one chunk by the default strategy under the default gate, on the home that the last step left."""
    settings = cell.settings(f"seed-{seed}")
    if step == STEPS[0]:
        shutil.rmtree(settings.home, ignore_errors=True)
        shutil.copytree(cell.settings("template").home, settings.home)
    with Workspace.open(settings) as workspace:
        name, why = choose_strategy(workspace, chunk)
        old = live_encoder(workspace)
        prints = fingerprints(old)
        with _clocked() as learned:
            outcome = run_update(workspace, UpdateRequest(chunk=chunk, seed=seed, by="benchmark"))
        candidate = workspace.open_encoder(outcome.version)
        now = fingerprints(candidate)
        values = {
            "default": name,
            "why": why,
            **outcome_values(outcome),
            "learning_processor_seconds": learned[0],
            "changed": sorted(key for key in prints if now.get(key) != prints[key]),
            "new": sorted(now.keys() - prints.keys()),
            "after": measured(cell, workspace, candidate),
            "version_bytes": sum(file.stat().st_size for file in _files(workspace, outcome.version)),
        }
        if (
            outcome.release is not None and outcome.commit is None
        ):  # the chain goes on; the verdict is reported
            going_live.promote(workspace, outcome.release, why="benchmark", by="benchmark", force=True)
    cell.bench.say(f"seed {seed} {step} ({name}): {outcome.verdict}; {outcome.sentence}")
    return values


@contextmanager
def _clocked() -> Iterator[list[float]]:
    """Notes the processor seconds of each training inside the block, the candidate's first.

    What the candidate learns from is read and computed in them, too.
    """
    seconds: list[float] = []
    own = trainer.run_update

    def timed(*given: Any, **named: Any) -> TrainingReport:
        started = time.process_time()
        report = own(*given, **named)
        seconds.append(round(time.process_time() - started, 1))
        return report

    with patch.object(training, "run_update", timed):
        yield seconds


def fingerprints(encoder: Encoder) -> dict[str, str]:
    """Returns what makes the vectors of each route: pictures by domain, texts by language."""
    pictures = {f"pictures:{route or 'base'}": encoder.image_fingerprint(route) for route in _routes(encoder)}
    languages = dict.fromkeys([*base_languages(MODEL), *NEW])
    return pictures | {f"texts:{tag}": encoder.text_fingerprint(tag) for tag in languages}


def _routes(encoder: Encoder) -> Sequence[str]:
    return ("", *encoder.image_routes)


def measured(cell: Photographs, workspace: Workspace, encoder: Encoder) -> Values:
    """Returns recalls of test captions among the 243 test photographs, and among those and the shop's pictures."""
    load, cache = workspace.load_image, workspace.features
    photos, place = _test_photos(cell.bench.data, workspace)
    shop = workspace.catalog.pairs(domain=SHOP, language=ENGLISH, split=Split.TEST)
    taught = workspace.catalog.pairs(domain=SHOP, language=ENGLISH, split=Split.TRAIN)
    shown = list(dict.fromkeys(pair.image_id for pair in (*shop, *taught)))
    held_out = list(dict.fromkeys(pair.image_id for pair in shop))
    routes = dict.fromkeys(photos, encoder.image_route(DOMAIN)) | dict.fromkeys(
        shown, encoder.image_route(SHOP)
    )

    def embed(ids: Sequence[str]) -> np.ndarray[Any, np.dtype[np.float32]]:
        return unit(image_features(encoder, ids, load, cache, routes=routes))

    def recall(texts: Sequence[str], language: str, own: Sequence[int], pictures: Any) -> list[float]:
        similar = unit(text_features(encoder, texts, language, cache)) @ pictures.T
        ranks = caption_ranks(similar, np.asarray(own, dtype=np.int64), tolerance=1e-6)
        return [round(float(100 * np.mean(ranks < depth)), 2) for depth in (1, 5, 10)]

    own_gallery, mixed = embed(photos), embed([*photos, *shown])
    values: Values = {"photographs": {}, "mixed": {}}
    for language, captions in sorted(test_captions(cell.bench.data).items()):
        if language not in (ENGLISH, *KNOWN, *NEW):
            continue
        texts, own = [text for _, text in captions], [place[name] for name, _ in captions]
        values["photographs"][language] = recall(texts, language, own, own_gallery)
        values["mixed"][language] = recall(texts, language, own, mixed)
    at = {image: len(photos) + number for number, image in enumerate(shown)}
    for name, pairs in (("held-out", shop), ("trained", taught)):
        texts, ids = [pair.text for pair in pairs], [pair.image_id for pair in pairs]
        alone = held_out if name == "held-out" else shown
        within = {image: number for number, image in enumerate(alone)}
        values[f"shop {name}"] = recall(texts, ENGLISH, [within[i] for i in ids], embed(alone))
        values[f"shop {name}, mixed"] = recall(texts, ENGLISH, [at[i] for i in ids], mixed)
    return values


def _test_photos(data: Path, workspace: Workspace) -> tuple[list[str], dict[str, int]]:
    """Returns the ids of the test photographs, and the place of each file name among them."""
    names = sorted({name for name, _ in test_captions(data)[ENGLISH]})
    ids = [hashlib.sha256((data / "flickr8k" / "images" / name).read_bytes()).hexdigest() for name in names]
    return ids, {name: number for number, name in enumerate(names)}


def _files(workspace: Workspace, version: str) -> list[Path]:
    return [path for path in (workspace.home.versions / version).rglob("*") if path.is_file()]


Work = Callable[[], Values]
