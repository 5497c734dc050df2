"""Which epoch of an update is kept: its score on the chunk's validation pairs, and the rule of one standard error.

A chunk of 500 pictures leaves some thirty for validation, and the best of so few epochs is mostly luck; one that luck
chose early has learned less (docs/log.md has the figures). So of all epochs within one standard error of the best the
latest is kept, in the manner of the one-standard-error rule (Breiman et al., *Classification and Regression Trees*,
1984, 3.4.3), with the longer training in the place of the simpler model. A strategy may tolerate more
(`Schedule.tolerance`).

Where what is known can move, a sample of it is looked up beside the chunk's pairs, all among all their pictures; the
score is the mean of the two, and the best epoch is kept. (The latest of several good ones forgets most; the one that
forgets least has learned nothing yet. Among the few pictures of a small chunk alone, everything is found at once.)
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_updates.encoder import Encoder
from model_updates.evaluation import rank_slice
from model_updates.features import LoadImage, caption_features
from model_updates.pair_sets import PairSet
from model_updates.recalls import RECALL_DEPTHS
from model_updates.search_encoder import Rows, unit
from model_updates.strategy import Strategy, Tolerance

VALIDATION_IMAGES = 1000  # enough to choose an epoch; more would only cost time


@dataclass(frozen=True)
class Score:
    """A validation score in percent, its standard error, clustered by picture, and what one picture is of it."""

    mean: float
    error: float
    picture: float = 0.0


def better(best: Score | None, score: Score) -> Score:
    """Returns the higher of two scores, the earlier one when they are equal."""
    return score if best is None or score.mean > best.mean else best


def near(score: Score, best: Score, tolerance: Tolerance) -> bool:
    """Says whether a score is no further below the best than is tolerated."""
    return score.mean >= best.mean - max(tolerance.errors * best.error, tolerance.pictures * best.picture)


def together(new: Score, known: Score) -> Score:
    """Returns the mean of two scores of different pictures, with its standard error."""
    return Score((new.mean + known.mean) / 2, math.hypot(new.error, known.error) / 2)


def validation_scores(
    encoder: Encoder, pairs: PairSet, known: PairSet | None, strategy: Strategy, load_image: LoadImage
) -> tuple[Score | None, Score | None]:
    """Returns the mean of text-to-image R@1, 5 and 10 on validation pairs and on known ones, among all their pictures.

    None for pairs that there are none of; without validation pairs nothing is looked up.
    """
    if not pairs.pairs:
        return None, None
    encoder.train(False)
    shown = set(list(dict.fromkeys(pair.image_id for pair in pairs.pairs))[:VALIDATION_IMAGES])
    pairs = pairs.select([n for n, pair in enumerate(pairs.pairs) if pair.image_id in shown])
    everything = pairs if known is None else pairs.followed_by(known)
    first: dict[str, int] = {}
    for n, pair in enumerate(everything.pairs):
        first.setdefault(pair.image_id, n)
    place = {image_id: n for n, image_id in enumerate(first)}
    images = _images(encoder, everything, list(first.values()), strategy, load_image)
    kept = None if "text" in strategy.touches else everything.text_features
    texts = caption_features(encoder, everything.pairs) if kept is None else kept.numpy()
    caption_image = np.asarray([place[pair.image_id] for pair in everything.pairs])
    ranks = rank_slice(unit(images), unit(texts), caption_image)[0]
    hits = np.mean([100.0 * (ranks < k) for k in RECALL_DEPTHS], axis=0)
    new = _score(hits[: len(pairs)], caption_image[: len(pairs)])
    return new, None if known is None else _score(hits[len(pairs) :], caption_image[len(pairs) :])


def _score(hits: NDArray[np.float64], caption_image: NDArray[np.int64]) -> Score:
    return Score(float(hits.mean()), _error(hits, caption_image), 100.0 / len(np.unique(caption_image)))


def _images(
    encoder: Encoder, pairs: PairSet, rows: list[int], strategy: Strategy, load_image: LoadImage
) -> Rows:
    """The pictures of some rows under the candidate, each on its domain's route; cached features where they hold."""
    if "image" not in strategy.touches:
        return pairs.pictures.features[pairs.image_index[rows]].numpy()
    images = np.empty((len(rows), encoder.dim), dtype=np.float32)
    for domain in sorted({pairs.pairs[n].domain for n in rows}):
        places = [k for k, n in enumerate(rows) if pairs.pairs[n].domain == domain]
        mine = [rows[k] for k in places]
        if strategy.reads_pictures:
            pictures = [load_image(pairs.pairs[n].image_id) for n in mine]
            images[places] = encoder.image_features(pictures, domain)
        else:
            images[places] = encoder.projected(pairs.pictures.trunk[pairs.image_index[mine]].numpy(), domain)
    return images


def _error(hits: NDArray[np.float64], caption_image: NDArray[np.int64]) -> float:
    """The standard error of the mean over captions, clustered by picture: captions of one picture fail together."""
    pictures = np.bincount(caption_image, minlength=int(caption_image.max()) + 1)
    strayed = np.bincount(caption_image, weights=hits - hits.mean(), minlength=len(pictures))
    return math.sqrt(float((strayed**2).sum())) / len(hits)
