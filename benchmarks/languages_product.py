"""The product after seven languages: what is lost when nobody says which language a query is in."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from languages_detection import FOLDS, fold_of, learned_profiles
from numpy.typing import NDArray
from real_input_data import LANGUAGES
from real_input_runs import (
    CHAINS,
    HELD_OUT,
    TRAINED,
    Bench,
    Values,
    detection_hits,
    live_encoder,
    names_hits,
    names_slice,
    run_languages,
)

from app.home.workspace import Workspace
from app.language.detection import Reading, detect, handicaps, readings
from ingest.pair import BASE_LANGUAGE
from model_updates.evaluation import caption_ranks
from model_updates.features import image_features, text_features
from model_updates.readings import background
from model_updates.search_encoder import unit

LEARNED = (BASE_LANGUAGE, *LANGUAGES)
Floats = NDArray[np.float32]
Rule = Callable[[Floats, Sequence[Reading], float], Floats]
"""Fuses the cosines of one query, (readings, pictures), to one score a picture."""


def taught_home(bench: Bench, seed: int) -> str:
    """Returns the name of the home that knows the seven languages, teaching it when there is none."""
    chain = CHAINS[0]
    name = f"{chain.name}-{seed}"
    if not bench.settings(name).home.with_suffix(".done").exists():
        run_languages(bench, chain, seed)
    return name


def product_run(bench: Bench, seed: int) -> Values:
    """Returns hits with the language told and detected, of trained and of held-out names."""
    settings = bench.settings(taught_home(bench, seed))
    with Workspace.open(settings) as workspace:
        encoder = live_encoder(workspace)
        kinds = (TRAINED, HELD_OUT)
        return {
            "languages": list(LEARNED),
            "told": {kind: names_hits(workspace, encoder, LEARNED, kind) for kind in kinds},
            "detected": {kind: detection_hits(workspace, encoder, LEARNED, kind) for kind in kinds},
        }


# ------------------------------------------------------------------------------------------- how to fuse


def likeliest(scores: Floats, _: Sequence[Reading], __: float) -> Floats:
    """Takes the likeliest reading alone."""
    first: Floats = scores[0]
    return first


def highest(scores: Floats, _: Sequence[Reading], __: float) -> Floats:
    """Takes each picture's best cosine."""
    best: Floats = scores.max(axis=0)
    return best


def standardised(beta: float) -> Rule:
    """Takes each picture's best standardised cosine plus beta times the log posterior."""

    def fuse(scores: Floats, chosen: Sequence[Reading], _: float) -> Floats:
        standard = (scores - scores.mean(axis=1, keepdims=True)) / scores.std(axis=1, keepdims=True)
        added = beta * np.log([reading.share for reading in chosen])
        return np.asarray((standard + added[:, None]).max(axis=0), dtype=np.float32)

    return fuse


def lowered(factor: float) -> Rule:
    """Takes each picture's best cosine after the handicap of less likely languages, times a factor."""

    def fuse(scores: Floats, chosen: Sequence[Reading], scale: float) -> Floats:
        by = factor * np.asarray(handicaps(chosen, scale))
        return np.asarray((scores + by[:, None]).max(axis=0), dtype=np.float32)

    return fuse


def standing_out(scores: Floats, chosen: Sequence[Reading], scale: float) -> Floats:
    """Takes what search takes: the handicap of less likely languages, and of each reading half of its tenth-best."""
    by = np.asarray(handicaps(chosen, scale)) - background(scores)
    return np.asarray((scores + by[:, None]).max(axis=0), dtype=np.float32)


RULES: dict[str, Rule] = {
    "the likeliest table alone": likeliest,
    "best cosine": highest,
    **{f"best standardised cosine + {b} log posterior": standardised(b) for b in (0.0, 0.1, 0.2, 0.4, 1.0)},
    **{f"best cosine + {f} log odds / scale": lowered(f) for f in (0.3, 1.0, 3.0)},
    "best cosine - 0.5 tenth-best + 1.0 log odds / scale": standing_out,
}


def product_rules(bench: Bench, seed: int) -> Values:
    """Compares rules of fusing on training names, each detected by profiles that have not seen it."""
    with Workspace.open(bench.settings(taught_home(bench, seed))) as workspace:
        encoder = live_encoder(workspace)
        names = {tag: names_slice(workspace, tag, TRAINED) for tag in LEARNED}
        by_language = {tag: {text: text for _, text in held.captions} for tag, held in names.items()}
        splits = {text: "train" for own in by_language.values() for text in own}
        profiles = [learned_profiles(by_language, splits, without=fold) for fold in range(FOLDS)]
        gallery = names[BASE_LANGUAGE].gallery
        images = unit(image_features(encoder, gallery, workspace.load_image, workspace.features))
        place = {image_id: n for n, image_id in enumerate(gallery)}
        hits: dict[str, dict[str, float]] = {rule: {} for rule in ("told", *RULES)}
        for tag, held in names.items():
            texts = [text for _, text in held.captions]
            own = np.asarray([place[image_id] for image_id, _ in held.captions], dtype=np.int64)
            cosines = {
                table: unit(text_features(encoder, texts, table, workspace.features)) @ images.T
                for table in LEARNED
            }
            chosen = [
                readings(detect(text, LEARNED, profiles[fold_of(text)]), encoder.text_route) for text in texts
            ]
            hits["told"][tag] = _first(cosines[tag], own)
            for name, rule in RULES.items():
                fused = np.stack(
                    [
                        rule(np.stack([cosines[r.language][n] for r in read]), read, encoder.similarity_scale)
                        for n, read in enumerate(chosen)
                    ]
                )
                hits[name][tag] = _first(fused, own)
    return {"r1": hits}


def _first(scores: Floats, own: NDArray[np.int64]) -> float:
    return float(100 * (caption_ranks(scores, own, tolerance=1e-6) < 1).mean())
