"""Teaches small chunks of known worth through the product, and counts which the gate lets live.

    python benchmarks/gate_small.py DATA --work FOLDER

A home with `perennial-photo` has 1,500 photographs and two emoji styles in its gallery. Chunks of 100 to 800 pairs are
taught by the default strategy: clean ones (*good*), ones whose captions were all exchanged (*useless*), ones that take
the captions of old pictures (*harmful*), and clean ones (*pushing*); the last two without the term that makes new
pictures step aside. What each truly gains is measured on pictures that no chunk has, what old captions truly lose on
all of them. Each finished trial leaves a JSON file; `--report docs/results/gate.md` writes the table from those there
are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gate_small_report import write_small
from real_input_data import UploadRow, emoji_rows, emoji_splits, read_tsv, write_upload

from app.desk.jobs import UpdateRequest
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning import adding, beginning, going_live, update_cycle
from app.learning.cross_fitting import examine
from app.learning.judging import Taught, judge_taught
from app.learning.lessons import plan
from app.learning.outcomes import say_nothing
from app.learning.routes import stated_routes
from app.learning.training import learn
from ingest.intake import IntakeOptions, ingest_source
from model_updates.encoder import Encoder
from model_updates.evaluation import caption_ranks
from model_updates.features import Overlay, image_features, text_features
from model_updates.gate.report import GateReport, Policy
from model_updates.parts import router
from model_updates.recalls import RECALL_DEPTHS
from model_updates.search_encoder import unit

PHOTOS, APART = 1_500, 400
"""Photographs in the gallery, and how many of them no chunk has: what a chunk truly gains is measured there."""
SIZES = (200, 400, 100, 800)
ROUNDS = 11
EMOJI = ("noto", "fluent3d")
WORLDS = (("photographs", "en"), ("noto", "en"), ("photographs", "hi"), ("photographs", "de"), ("fluent3d", "en"),
          ("photographs", "cs"), ("noto", "de"), ("photographs", "uk"), ("photographs", "fr"))  # fmt: skip
NEW = ("hi", "cs", "uk")  # languages that the encoder cannot read; the photographs are known then
KINDS = ("good", "useless", "harmful", "pushing")
Values = dict[str, Any]


@dataclass(frozen=True)
class Trial:
    """One chunk: what it is of, how many pairs, which draw, and what was done to it."""

    domain: str
    language: str
    pairs: int
    draw: int
    kind: str

    @property
    def name(self) -> str:
        """Of its file."""
        return f"{self.kind}.{self.domain}.{self.language}.{self.pairs}.{self.draw}"

    @property
    def knows_photographs(self) -> bool:
        """Whether the home was taught photographs before; else emoji."""
        return self.domain != "photographs" or self.language in NEW


def trials() -> Iterator[Trial]:
    """Yields all trials, each size, kind and world early."""
    for draw in range(ROUNDS):
        for place, pairs in enumerate(SIZES):
            for kind in (*KINDS[:2], KINDS[2 + draw % 2]):
                # A new language cannot displace: it moves no picture.
                worlds = [w for w in WORLDS if kind not in KINDS[2:] or w[1] not in NEW]
                domain, language = worlds[(draw * len(SIZES) + place) % len(worlds)]
                yield Trial(domain, language, pairs, draw, kind)


def main() -> None:
    """Runs what is not finished yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("data", type=Path, help="folder of the evaluation data")
    parser.add_argument(
        "--work", type=Path, default=Path("gate-small-work"), help="homes and finished trials"
    )
    parser.add_argument("--turn", type=int, default=0, help="which of --turns processes this is, from 0")
    parser.add_argument("--turns", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no trial after so long")
    parser.add_argument(
        "--report", type=Path, help="write the section of this page instead of running anything"
    )
    arguments = parser.parse_args()
    if arguments.report is not None:
        write_small(arguments.work, arguments.report)
        return
    torch.set_num_threads(1)
    # Every picture's domain is stated here, so that nobody asks the router: it is not fitted, which saves a quarter.
    router.fitted = lambda *_: None
    (arguments.work / "results").mkdir(parents=True, exist_ok=True)
    started, world = time.monotonic(), World(arguments.data, arguments.work)
    for number, trial in enumerate(trials()):
        path = arguments.work / "results" / f"{trial.name}.json"
        if path.exists() or number % arguments.turns != arguments.turn:
            continue
        if time.monotonic() - started > arguments.seconds:
            break
        began = time.monotonic()
        values = world.run(trial, f"trial-{arguments.turn}")
        values |= {"seconds": round(time.monotonic() - began, 1), "trial": vars(trial)}
        path.write_text(json.dumps(values), encoding="utf-8")
        print(f"{trial.name}: {values['verdict']}, truly {values['gain']:+.1f}, old {values['lost']:+.1f}, "
              f"{values['seconds']:.0f} s; {values['sentence'][:240]}", flush=True)  # fmt: skip


@dataclass(frozen=True)
class World:
    """The homes, made once, and what is uploaded to copies of them."""

    data: Path
    work: Path

    def settings(self, name: str) -> Settings:
        """Returns the settings of a home, with the default gate."""
        return Settings(home=self.work / "homes" / name, device="cpu", gate=Policy())

    def rows(self, domain: str, language: str) -> list[UploadRow]:
        """Returns a caption for each picture of a domain, in an order by hash, those of no chunk last."""
        if domain in EMOJI:
            found = emoji_rows(self.data, emoji_splits(self.data), language, (domain,))
            kept, apart = ([r for r in found if (r.split == "test") is held] for held in (False, True))
            return [replace(row, split="") for row in (*sorted(kept, key=_hash), *apart)]
        captions: dict[str, str] = {}
        for row in read_tsv(self.data / "flickr8k" / "captions.tsv"):
            if row["lang"] == language and row["split"] == "train":
                captions.setdefault(row["image"], row["text"])
        folder, names = self.data / "flickr8k" / "images", sorted(captions, key=_name_hash)[:PHOTOS]
        return [UploadRow(folder / name, captions[name], language, domain, "", name) for name in names]

    def split(self, domain: str, language: str) -> tuple[list[UploadRow], list[UploadRow]]:
        """Returns what chunks are drawn from, and what measures the truth."""
        rows = self.rows(domain, language)
        apart = APART if domain not in EMOJI else 200
        return rows[:-apart], rows[-apart:]

    def template(self, *, knows_photographs: bool) -> Path:
        """Returns a home that was taught English captions of photographs, or else of one emoji style."""
        known = "photographs" if knows_photographs else "noto"
        settings = self.settings(f"knows-{known}")
        done = settings.home.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(settings.home, ignore_errors=True)
            shutil.copytree(self._untaught(), settings.home)
            with Workspace.open(settings) as workspace:
                chunk = self.add(workspace, self.split(known, "en")[0])
                scratch = Path(tempfile.mkdtemp(dir=workspace.home.staging))
                request = UpdateRequest(chunk=chunk, by="benchmark")
                release = update_cycle.update(
                    workspace, request, scratch=scratch, progress=say_nothing
                ).release
                if release is not None and going_live.live_release(workspace)[1].id != release:
                    going_live.promote(workspace, release, why="benchmark", by="benchmark", force=True)
            done.touch()
        return settings.home

    def _untaught(self) -> Path:
        settings = self.settings("untaught")
        done = settings.home.with_suffix(".done")
        if not done.exists():
            shutil.rmtree(settings.home, ignore_errors=True)
            beginning.initialise(settings, model="perennial-photo")
            with Workspace.open(settings) as workspace:
                for domain in ("photographs", *EMOJI):
                    with tempfile.TemporaryDirectory(dir=self.work) as folder:
                        for row in self.rows(domain, "en"):
                            shutil.copy(row.picture, Path(folder) / row.picture.name)
                        options = IntakeOptions(domain=domain, name=domain)
                        adding.add_chunk(workspace, Path(folder), options, by="benchmark")
            done.touch()
        return settings.home

    def add(self, workspace: Workspace, rows: Sequence[UploadRow]) -> str:
        """Takes pairs of known pictures in and returns the chunk; its checks are not asked, for the gate is tried."""
        with tempfile.TemporaryDirectory(dir=self.work) as place:
            source = write_upload(Path(place) / "upload", rows)
            return ingest_source(source, catalog=workspace.catalog, blobs=workspace.blobs).chunk_id

    def judge(self, workspace: Workspace, request: UpdateRequest) -> tuple[Encoder, GateReport]:
        """Teaches and judges as an update does; no gallery is embedded, and nothing goes live."""
        record = going_live.live_release(workspace)[1]
        lesson = plan(workspace, request, record)
        scratch = Path(tempfile.mkdtemp(dir=workspace.home.staging))
        candidate = learn(workspace, lesson, scratch=scratch, progress=say_nothing).encoder
        told = Taught(lesson.chunk, lesson.taught, tuple(lesson.languages_after))
        report, _ = judge_taught(
            workspace,
            told,
            candidate,
            record,
            workspace.settings.gate,
            examine=lambda: examine(workspace, lesson, say_nothing),
        )
        return candidate, report

    def run(self, trial: Trial, place: str) -> Values:
        """Teaches one chunk on a copy of a home, and measures what it was worth."""
        settings = self.settings(place)
        shutil.rmtree(settings.home, ignore_errors=True)
        shutil.copytree(self.template(knows_photographs=trial.knows_photographs), settings.home)
        with Workspace.open(settings) as workspace:
            old = "photographs" if trial.knows_photographs else "noto"
            rows = self._chunk(trial, old)
            how: Values = {}
            if trial.kind in KINDS[2:]:
                how = {"strategy": "domain-adapters", "options": {"displacement": 0.0}}
            live = workspace.open_encoder(going_live.live_release(workspace)[1].version)
            chunk = self.add(workspace, rows)
            candidate, report = self.judge(workspace, UpdateRequest(chunk=chunk, seed=trial.draw, **how))
            before, after = (self._truth(workspace, one, trial, old) for one in (live, candidate))
        gain, lost = after[0] - before[0], before[1] - after[1]
        return {
            "verdict": str(report.verdict),
            "gain": gain,
            "lost": lost,
            "before": before,
            "sentence": report.first_reason,
            "gate": report.to_json(),
        }

    def _chunk(self, trial: Trial, old: str) -> list[UploadRow]:
        pool, _ = self.split(trial.domain, trial.language)
        number = _seed_of(trial)
        random = np.random.default_rng(number)
        rows = [pool[int(n)] for n in random.permutation(len(pool))[: trial.pairs]]
        said = [row.caption for row in rows]
        if trial.kind == "harmful":
            said = [row.caption for row in self.split(old, "en")[0]][: len(rows)]
            said *= -(-len(rows) // len(said))
        if trial.kind in ("useless", "harmful"):
            order = random.permutation(len(rows))
            rows = [replace(row, caption=said[int(n)]) for row, n in zip(rows, order, strict=True)]
        return [replace(row, language="en") for row in rows] if trial.kind == "harmful" else rows

    def _truth(self, workspace: Workspace, encoder: Encoder, trial: Trial, old: str) -> tuple[float, float]:
        """Returns R of pictures that no chunk has, alone, and of all old captions among the whole gallery."""
        cache, gallery = Overlay(workspace.features), workspace.catalog.gallery_ids()
        routes = stated_routes(workspace, encoder, gallery)
        images = unit(image_features(encoder, gallery, workspace.load_image, cache, routes=routes))
        place = {image_id: n for n, image_id in enumerate(gallery)}

        def found(rows: Sequence[UploadRow], language: str, *, alone: bool) -> float:
            own = np.asarray([place[_id(row.picture)] for row in rows])
            texts = unit(text_features(encoder, [row.caption for row in rows], language, cache))
            looked = images[own] if alone else images
            right = np.arange(len(rows)) if alone else own
            ranks = caption_ranks(texts @ looked.T, right, tolerance=1e-6)
            return 100 * float(np.mean([np.mean(ranks < depth) for depth in RECALL_DEPTHS]))

        _, apart = self.split(trial.domain, trial.language)
        return found(apart, trial.language, alone=True), found(self.split(old, "en")[0], "en", alone=False)


def _seed_of(trial: Trial) -> int:
    """Returns the seed of a trial's draws."""
    return int.from_bytes(hashlib.sha256(trial.name.encode()).digest()[:4], "big")


def _id(picture: Path) -> str:
    return hashlib.sha256(picture.read_bytes()).hexdigest()


def _hash(row: UploadRow) -> str:
    return _name_hash(row.group)


def _name_hash(name: str) -> str:
    return hashlib.sha256(f"gate-small {name}".encode()).hexdigest()


if __name__ == "__main__":
    main()
