"""Relevance: what a cosine means in one language of one release, in words.

Cosines mean different things in each release and language, so no fixed cut-off can work. What they mean is measured on
held-out captions, which nothing was trained on: how near they are to their own pictures, and how near to others of the
gallery, the background. A hit is

- *strong* where at least three of four held-out captions are so near to their own picture or nearer, and at most one in
  a thousand other pictures is;
- *weak* where it is as near as one of twenty captions is to its own picture, or three quarters of the way from the
  background's middle to that of the matches: short queries are somewhat further from their pictures than captions are;
- else there is probably *nothing* here that fits.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.desk.hits import Relevance
from app.query.parts import sample_ids, sample_of
from app.query.snapshot import Snapshot
from index.feature_store import FeatureStore
from ingest.catalog import Catalog
from ingest.pair import Pair, Split
from model_updates.encoder import unit
from model_updates.features import text_features

FEWEST, MOST = 20, 200
"""Captions that a language is calibrated on: with fewer, one of twenty is nobody."""
_KEPT = 64
_RARE = 0.999
_STRONG, _WEAK = 0.25, 0.05
_WAY = 0.75


@dataclass(frozen=True)
class Levels:
    """The cosines from which on a hit of one release and language is strong, or weak."""

    strong: float
    weak: float

    def of(self, cosine: float) -> Relevance:
        """Returns what a hit with this cosine is worth."""
        if cosine >= self.strong:
            return Relevance.STRONG
        return Relevance.WEAK if cosine >= self.weak else Relevance.NOTHING

    def least(self, wanted: Relevance) -> float:
        """Returns the cosine that a hit worth this much has at least."""
        return {Relevance.STRONG: self.strong, Relevance.WEAK: self.weak}.get(wanted, -1.0)


def levels_of(matches: NDArray[np.float32], background: NDArray[np.float32]) -> Levels:
    """Returns the levels that two samples of cosines lead to.

    Args:
        matches: (n,) of captions and their own pictures.
        background: (m,) of captions and other pictures.
    """
    middle = float(np.median(background))
    way = middle + _WAY * (float(np.median(matches)) - middle)
    strong = max(float(np.quantile(matches, _STRONG)), float(np.quantile(background, _RARE)))
    weak = min(float(np.quantile(matches, _WEAK)), way)
    return Levels(strong, min(weak, strong))


class Calibration:
    """Measures the levels of releases and languages when they are first asked for, and keeps them.

    The catalog has the held-out captions; `features` keeps their vectors, most of which a gate has computed already.
    """

    def __init__(self, catalog: Catalog, features: FeatureStore) -> None:
        self._catalog, self._features = catalog, features
        self._known: OrderedDict[tuple[str, str], Levels | None] = OrderedDict()
        self._turn = threading.Lock()

    def levels(self, snapshot: Snapshot, language: str) -> Levels | None:
        """Returns the levels of a language; None where fewer than 20 held-out captions are of gallery pictures."""
        key = (snapshot.release.id, language)
        with self._turn:
            if key not in self._known:
                self._known[key] = self._measured(snapshot, language)
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            return self._known[key]

    def prepare(self, snapshot: Snapshot) -> None:
        """Measures all languages of a release before anybody waits for them."""
        for language in snapshot.languages:
            self.levels(snapshot, language)

    def _measured(self, snapshot: Snapshot, language: str) -> Levels | None:
        pairs = _spread(self._held_out(snapshot, language))
        if len(pairs) < FEWEST:
            return None
        texts = text_features(snapshot.encoder, [pair.text for pair in pairs], language, self._features)
        captions = unit(texts)
        pictures = snapshot.generation.vectors([pair.image_id for pair in pairs])
        matches = np.einsum("nd,nd->n", captions, pictures)
        others = np.array([pair.image_id for pair in pairs])[:, None] != np.array(sample_ids(snapshot))
        background = (captions @ sample_of(snapshot).T)[others]
        return levels_of(matches, background) if len(background) else None

    def _held_out(self, snapshot: Snapshot, language: str) -> list[Pair]:
        positions = snapshot.generation.positions
        return [
            pair
            for split in (Split.TEST, Split.VALIDATION)
            for pair in self._catalog.pairs(language=language, split=split)
            if pair.image_id in positions and pair.image_id not in snapshot.hidden
        ]


def _spread(pairs: Sequence[Pair]) -> list[Pair]:
    """Returns at most 200 pairs, from all over."""
    step = max(1, -(-len(pairs) // MOST))
    return list(pairs[::step])
