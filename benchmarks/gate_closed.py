"""Chunks of known worth by the hundred: heads in closed form on the homes of `gate_small.py`, judged by the real gate.

    python benchmarks/gate_closed.py DATA --work FOLDER

A trained head takes a minute a copy on a busy machine, a head in closed form a tenth of a second: ridge regression of a
domain's trunk features onto what its captions' vectors are beyond those its pictures have, the mean added back, its
strength chosen on the chunk's validation pairs; then a step away from the mean of the old captions. Folds, galleries
and rules are the product's. `pushing` chunks are clean, and their pictures take no such step, or one the other way.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from gate_small import EMOJI, KINDS, SIZES, Trial, World, _id, _seed_of
from numpy.typing import NDArray

from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.routes import stated_routes
from model_updates.encoder import unit
from model_updates.evaluation import IntArray, SliceResult, View, caption_ranks
from model_updates.features import image_features, text_features, trunk_features
from model_updates.gate.examined import FOLDS, CrossFitted
from model_updates.gate.report import GateReport, Policy
from model_updates.gate.rules import judge, judge_small
from model_updates.recalls import RECALL_DEPTHS

Rows = NDArray[np.float32]
WORLDS = (("photographs", "en"), ("photographs", "de"), ("photographs", "fr"), ("photographs", "pt"),
          ("noto", "en"), ("fluent3d", "en"), ("noto", "de"), ("fluent3d", "fr"))  # fmt: skip
STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
OLD_TEST, OLD_TRAINED = 150, 200
PUSHED, ASIDE = (0.0, 0.1, 0.3), -0.2  # how far pictures are drawn towards the mean of the old captions


def trials(draws: int) -> Iterator[Trial]:
    """Yields so many chunks of each kind and size."""
    for draw in range(draws):
        for size in SIZES:
            for kind in KINDS:
                domain, language = WORLDS[(draw + SIZES.index(size)) % len(WORLDS)]
                yield Trial(domain, language, size, draw, kind)


def main() -> None:
    """Runs what is not finished yet."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("data", type=Path, help="folder of the evaluation data")
    parser.add_argument(
        "--work", type=Path, default=Path("gate-small-work"), help="homes and finished trials"
    )
    parser.add_argument("--draws", type=int, default=16, help="chunks of each kind and size")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    results = arguments.work / "closed"
    results.mkdir(parents=True, exist_ok=True)
    world, homes = World(arguments.data, arguments.work), {}
    for trial in sorted(trials(arguments.draws), key=lambda one: (one.draw, one.knows_photographs)):
        path = results / f"{trial.name}.json"
        if path.exists():
            continue
        if trial.knows_photographs not in homes:
            homes[trial.knows_photographs] = Vectors(world, knows_photographs=trial.knows_photographs)
        began = time.monotonic()
        values = run(homes[trial.knows_photographs], trial) | {"trial": vars(trial)}
        path.write_text(json.dumps(values), encoding="utf-8")
        print(f"{trial.name}: {values['verdict']}, truly {values['gain']:+.1f}, old {values['lost']:+.1f}, "
              f"{time.monotonic() - began:.1f} s", flush=True)  # fmt: skip


class Vectors:
    """One home's gallery and captions as vectors."""

    def __init__(self, world: World, *, knows_photographs: bool) -> None:
        self._world, self._rows = world, {}
        self._texts: dict[tuple[str, str], Rows] = {}
        self.old = "photographs" if knows_photographs else "noto"
        settings = world.settings(f"knows-{self.old}")
        world.template(knows_photographs=knows_photographs)
        self.workspace = Workspace.open(settings)
        record = going_live.live_release(self.workspace)[1]
        self.encoder = self.workspace.open_encoder(record.version)
        ids = self.workspace.catalog.gallery_ids()
        load, cache = self.workspace.load_image, self.workspace.features
        routes = stated_routes(self.workspace, self.encoder, ids)
        self.trunk = trunk_features(self.encoder, ids, load, cache).astype(np.float64)
        self.live = unit(image_features(self.encoder, ids, load, cache, routes=routes))
        self.place = {image_id: n for n, image_id in enumerate(ids)}
        known = self.workspace.catalog.images(ids)
        self.domains = np.asarray([known[image_id].domain for image_id in ids])

    def pairs(self, domain: str, language: str) -> tuple[IntArray, Rows]:
        """Returns the place in the gallery and the text vector of each picture's caption, those of no chunk last."""
        key = (domain, language)
        if key not in self._texts:
            rows = self._world.rows(domain, language)
            texts = [row.caption for row in rows]
            self._texts[key] = unit(text_features(self.encoder, texts, language, self.workspace.features))
            self._rows[key] = np.asarray([self.place[_id(row.picture)] for row in rows], dtype=np.int64)
        return self._rows[key], self._texts[key]


@dataclass(frozen=True)
class Head:
    """What is added to the vectors that pictures have without it."""

    weights: NDArray[np.float64]
    centre: NDArray[np.float64]
    mean: NDArray[np.float64]

    def vectors(self, trunk: NDArray[np.float64], base: Rows) -> Rows:
        """Returns (n, dim) unit vectors of pictures, given as trunk features and as vectors of the base route."""
        return unit((base + (trunk - self.centre) @ self.weights + self.mean).astype(np.float32))


Taught = tuple[NDArray[np.float64], Rows, Rows]
"""Trunk features, vectors of the base route and vectors of the captions, of some pairs."""


def fitted(taught: Taught, validation: Taught) -> Head:
    """Fits a head for each strength, and returns the one that finds most of the validation pairs soonest."""
    trunk, base, texts = taught
    missing = (texts - base).astype(np.float64)
    centre, mean = trunk.mean(axis=0), missing.mean(axis=0)
    rows, wanted = trunk - centre, missing - mean
    inner = rows @ rows.T
    scale, values, vectors = np.trace(inner) / len(rows), *np.linalg.eigh(inner)
    best: tuple[float, Head] | None = None
    for strength in STRENGTHS:
        solved = vectors @ ((vectors.T @ wanted) / (values + strength * scale)[:, None])
        head = Head(rows.T @ solved, centre, mean)
        found = head.vectors(validation[0], validation[1])
        ranks = caption_ranks(validation[2] @ found.T, np.arange(len(found)))
        lost = float(np.log1p(ranks).mean())
        if best is None or lost < best[0]:
            best = lost, head
    assert best is not None  # noqa: S101 - there are strengths
    return best[1]


def run(home: Vectors, trial: Trial) -> dict[str, Any]:
    """Fits, judges and measures one chunk."""
    random = np.random.default_rng(_seed_of(trial))
    places, texts = home.pairs(trial.domain, trial.language)
    old_places, old_texts = home.pairs(home.old, "en")
    apart = 400 if trial.domain not in EMOJI else 200
    distinct = np.unique(places[:-apart], return_index=True)[1]  # some emoji share a picture
    chosen = random.permutation(np.sort(distinct))[: trial.pairs]
    mine, said = places[chosen], texts[chosen]
    if trial.kind == "useless":
        said = said[random.permutation(len(said))]
    if trial.kind == "harmful":
        said = old_texts[random.permutation(len(old_texts) - apart)[np.arange(len(mine)) % 700]]
    pull = PUSHED[trial.draw % len(PUSHED)] if trial.kind == "pushing" else ASIDE
    towards = unit(old_texts.mean(axis=0, keepdims=True))[0]
    in_domain = home.domains == trial.domain

    def gallery(learned: IntArray, validation: IntArray) -> Rows:
        taught, chosen_by = (
            (home.trunk[mine[rows]], home.live[mine[rows]], said[rows]) for rows in (learned, validation)
        )
        vectors = home.live.copy()
        found = fitted(taught, chosen_by).vectors(home.trunk[in_domain], home.live[in_domain])
        vectors[in_domain] = unit(found + pull * towards)
        return vectors

    order = random.permutation(len(mine))
    held, validation = order[: len(mine) * 15 // 100], order[len(mine) * 15 // 100 : len(mine) // 4]
    after = gallery(order[len(mine) // 4 :], validation)
    report = _judged(home, trial, mine, said, after, held, gallery, random)
    truth_places, truth_texts = places[-apart:], texts[-apart:]
    old = old_texts[: len(old_texts) - (400 if home.old == "photographs" else 200)]
    gain, lost = (
        [_found(sign, wanted) for sign in (home.live, after)]
        for wanted in ((truth_places, truth_texts, True), (old_places[: len(old)], old, False))
    )
    return {
        "verdict": str(report.verdict),
        "gain": gain[1] - gain[0],
        "lost": lost[0] - lost[1],
        "gate": report.to_json(),
    }


def _found(vectors: Rows, wanted: tuple[IntArray, Rows, bool]) -> float:
    places, texts, alone = wanted
    looked, own = (vectors[places], np.arange(len(places))) if alone else (vectors, places)
    ranks = caption_ranks(texts @ looked.T, own)
    return 100 * float(np.mean([np.mean(ranks < depth) for depth in RECALL_DEPTHS]))


def _judged(
    home: Vectors,
    trial: Trial,
    mine: IntArray,
    said: Rows,
    after: Rows,
    held: IntArray,
    gallery: Any,
    random: np.random.Generator,
) -> GateReport:
    """Judges by what is held out, and then by copies where no rule rejects."""
    everything = np.arange(len(home.live))
    old_places, old_texts = home.pairs(home.old, "en")
    some = random.permutation(len(old_places))[: OLD_TEST + OLD_TRAINED]
    parts = {"old": (View.MIXED, some[:OLD_TEST]), "memory": (View.MEMORY, some[OLD_TEST:])}
    before, now = {}, {}
    for vectors, found in ((home.live, before), (after, now)):
        for name, (view, rows) in parts.items():
            found[name] = _ranked(
                vectors, everything, old_places[rows], old_texts[rows], view, f"en/{home.old}"
            )
        for view, looked in ((View.OWN, mine[held]), (View.MIXED, everything)):
            found[str(view)] = _ranked(vectors, looked, mine[held], said[held], view, _named(trial))
    first = judge(
        candidate=now,
        live=before,
        new_slices={"own", "mixed"},
        taught_languages={trial.language: len(mine)},
        canaries=(),
        policy=Policy(),
    )
    if str(first.verdict) != "review" or len(held) >= 2 * first.policy.minimum_images:
        return first
    pairs: dict[View, list[tuple[SliceResult, SliceResult]]] = {View.OWN: [], View.MIXED: []}
    order = random.permutation(len(mine))
    for fold in range(FOLDS):
        asked, rest = order[fold::FOLDS], np.delete(order, slice(fold, None, FOLDS))
        few = len(rest) // 10
        copy = gallery(rest[few:], rest[:few])
        others = np.setdiff1d(everything, mine[rest])
        for view, looked in ((View.OWN, mine[asked]), (View.MIXED, others)):
            pairs[view].append(
                tuple(  # type: ignore[arg-type]
                    _ranked(vectors, looked, mine[asked], said[asked], view, _named(trial))
                    for vectors in (copy, home.live)
                )
            )
    examined = [_pooled(found, mine[order]) for found in pairs.values()]
    old = [(now[name], before[name]) for name in parts]
    return judge_small(first, examined, old, {trial.language: len(mine)})


def _named(trial: Trial) -> str:
    return f"{trial.language}/{trial.domain}"


def _ranked(
    vectors: Rows, looked: IntArray, places: IntArray, texts: Rows, view: View, name: str
) -> SliceResult:
    """Ranks captions among some places of the gallery."""
    column = {int(place): n for n, place in enumerate(looked)}
    own, nothing = np.asarray([column[int(place)] for place in places]), np.empty(0, dtype=np.int64)
    ranks = caption_ranks(texts @ vectors[looked].T, own, tolerance=1e-6)
    ids = tuple(str(place) for place in looked)
    return SliceResult(*name.split("/"), ids, own, ranks, nothing, nothing, view)  # type: ignore[misc]


def _pooled(parts: Sequence[tuple[SliceResult, SliceResult]], places: IntArray) -> CrossFitted:
    ids = tuple(str(place) for place in sorted({int(place) for place in places}))
    at = {image_id: n for n, image_id in enumerate(ids)}

    def joined(which: int) -> SliceResult:
        own = [at[one[which].image_ids[int(n)]] for one in parts for n in one[which].caption_image]
        ranks = np.concatenate([one[which].text_ranks for one in parts])
        first, nothing = parts[0][which], np.empty(0, dtype=np.int64)
        return SliceResult(
            first.language, first.domain, ids, np.asarray(own), ranks, nothing, nothing, first.view
        )

    return CrossFitted(joined(0), joined(1), min(len(one.image_ids) for one, _ in parts))


if __name__ == "__main__":
    main()
