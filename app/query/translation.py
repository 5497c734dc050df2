"""Translate-then-search, fused: a query in its own language and its English translation count together.

A picture's score is (1 - eta) * foreign + eta * English, as CLL-CLIP's evaluation fuses them (Yang et al., "Embracing
Language Inclusivity and Diversity in CLIP through Continual Language Learning", AAAI 2024). How much the translation
counts is chosen for each language of each release on its validation pairs: captions of one picture in both languages
stand for query and translation. A language that the encoder reads well needs less of it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from app.desk.errors import BadQuery
from app.query.parts import Encoded, sample_ids
from app.query.reading import words
from app.query.snapshot import Snapshot
from index.feature_store import FeatureStore
from ingest.catalog import Catalog
from ingest.pair import BASE_LANGUAGE, Split
from ingest.sentence import joined, phrase
from model_updates.features import text_features
from model_updates.search_encoder import unit

FEWEST, MOST = 20, 300
"""Validation pairs that eta is chosen on."""
STEPS = tuple(n / 10 for n in range(11))
_UNKNOWN_LEARNED, _UNKNOWN = 0.5, 1.0
_KEPT = 64
_CUTS = (1, 5, 10)


@dataclass(frozen=True)
class Eta:
    """How much a translation counts, 0 … 1, and on how many validation pairs that was chosen; 0: on none."""

    value: float
    pairs: int


class Etas:
    """Chooses eta when it is first needed, and keeps it.

    The catalog has the validation pairs; `features` keeps their vectors.
    """

    def __init__(self, catalog: Catalog, features: FeatureStore) -> None:
        self._catalog, self._features = catalog, features.as_room_allows()
        # One that was chosen on no pairs holds until some come: with it stands when that was.
        self._known: OrderedDict[tuple[str, str], tuple[Eta, object]] = OrderedDict()
        self._turn = threading.Lock()

    def of(self, snapshot: Snapshot, language: str) -> Eta:
        """Returns eta of a language, learned or not."""
        key = (snapshot.release.id, language)
        with self._turn:
            eta, looked = self._known.get(key, (Eta(_UNKNOWN, 0), None))
            if not eta.pairs and looked != (state := (self._catalog.pairs_mark(), snapshot.pictures)):
                eta = self._chosen(snapshot, language)
                self._known[key] = eta, state
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            return eta

    def _chosen(self, snapshot: Snapshot, language: str) -> Eta:
        own, english, ids = self._pairs(snapshot, language)
        if len(ids) < FEWEST:
            return Eta(_UNKNOWN_LEARNED if language in snapshot.languages else _UNKNOWN, 0)
        gallery = list(dict.fromkeys([*ids, *sample_ids(snapshot)]))
        pictures = snapshot.generation.vectors(gallery).T
        foreign, translated = (
            unit(text_features(snapshot.encoder, texts, tag, self._features)) @ pictures
            for texts, tag in ((own, language), (english, BASE_LANGUAGE))
        )
        place = {image_id: n for n, image_id in enumerate(gallery)}
        right = np.array([place[image_id] for image_id in ids])
        return Eta(chosen_eta(foreign, translated, right), len(ids))

    def _pairs(self, snapshot: Snapshot, language: str) -> tuple[list[str], list[str], list[str]]:
        """Returns captions, English captions of the same pictures, and the pictures."""
        first: dict[str, str] = {}
        for pair in self._catalog.pairs(language=language, split=Split.VALIDATION):
            first.setdefault(pair.image_id, pair.text)
        first = {image_id: first[image_id] for image_id in snapshot.among(list(first))}
        english = self._catalog.captions_in(BASE_LANGUAGE, list(first))
        both = [image_id for image_id in first if image_id in english]
        both = both[:: max(1, -(-len(both) // MOST))]
        return [first[one] for one in both], [english[one][0] for one in both], both


def chosen_eta(foreign: NDArray[np.float32], english: NDArray[np.float32], right: NDArray[np.int64]) -> float:
    """Returns the eta with the best mean of R@1, R@5 and R@10; of equal ones the middle one.

    Args:
        foreign: (n, g) float32 cosines of queries and the pictures of a gallery.
        english: (n, g) float32, those of their translations.
        right: (n,) the column of each query's picture.
    """
    recalls = []
    for eta in STEPS:
        scores = (1 - eta) * foreign + eta * english
        ahead = (scores > scores[np.arange(len(right)), right][:, None]).sum(axis=1)
        recalls.append(float(np.mean([(ahead < cut).mean() for cut in _CUTS])))
    best = [eta for eta, recall in zip(STEPS, recalls, strict=True) if recall >= max(recalls) - 1e-9]
    return best[len(best) // 2]


def fused(snapshot: Snapshot, encoded: Encoded, translation: str, eta: Eta) -> Encoded:
    """Returns a query of one text with its English translation.

    Of the query's readings the likeliest counts, and the translation as much as `eta` says.

    Raises:
        BadQuery: the release has not learned English, or there is no translation.
    """
    if BASE_LANGUAGE not in snapshot.languages:
        raise BadQuery("This release has not learned English, so no translation can be read. Search without.")
    english = snapshot.encoder.encode_texts([words(translation)], BASE_LANGUAGE)[0]
    summed = (1 - eta.value) * encoded.vectors[0] + eta.value * english
    length = float(np.linalg.norm(summed))
    if not np.isfinite(length) or length == 0:
        raise BadQuery(
            phrase("The query and its translation cancel each other out; nothing is left to look for.")
        )
    before = joined((encoded.note, "" if encoded.note.endswith(".") else "."), "") if encoded.note else ""
    why = (
        phrase("chosen on {pairs} validation pairs", pairs=eta.pairs)
        if eta.pairs
        else phrase("there are no validation pairs to choose it on")
    )
    return replace(
        encoded,
        vectors=(summed / length)[None].astype(np.float32),
        readings=encoded.readings[:1],
        scale=length,
        note=joined(
            (
                before,
                phrase("The translation counts {share} % ({why}).", share=f"{100 * eta.value:.0f}", why=why),
            )
        ),
    )
