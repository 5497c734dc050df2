"""How search reads a text that nobody told the language of: one rule, for searching and for measuring.

Reading ten thousand held-out captions takes longer than ranking them, and every update asks again how the versions
before it read them. So readings are kept beside the features, under what decides them.
"""

import hashlib
from collections.abc import Sequence
from functools import cache

import numpy as np

from app.language.detection import (
    MOST_TABLES,
    UNDETERMINED,
    Guess,
    Reading,
    added_up,
    detect_all,
    handicaps,
    readings,
    widened,
    written_apart,
)
from model_updates.features import FeatureCache, text_id
from model_updates.measurement import ReadAs
from model_updates.search_encoder import SearchEncoder

KIND = "readings"
RULES = "3"  # raise it when texts are read by other rules than before, so that no reading of before is used


def read(
    text: str, learned: Sequence[str], encoder: SearchEncoder
) -> tuple[tuple[Reading, ...], tuple[Guess, ...]]:
    """Returns which languages' tables read a text, and the guesses behind that.

    A text that is in no learned language is read in one that the encoder knows untaught, or as the first one, which
    also reads words it does not know.
    """
    return read_all([text], learned, encoder)[0]


def read_all(
    texts: Sequence[str], learned: Sequence[str], encoder: SearchEncoder
) -> list[tuple[tuple[Reading, ...], tuple[Guess, ...]]]:
    """Returns what `read` returns of each text; many cost little more than one.

    Words in other letters are judged by themselves, so that a query which mixes two languages so is read in both.
    """
    apart = [written_apart(text) for text in texts]
    parts = [part for one in apart for part, _ in one]
    found = (
        widened(part, guesses, encoder.profiles, encoder.readable)
        for part, guesses in zip(parts, detect_all(parts, learned, encoder.profiles), strict=True)
    )
    all_guesses = [added_up([(next(found), share) for _, share in one]) for one in apart]
    route = cache(encoder.text_route)
    return [
        ((Reading(learned[0], 1.0),), guesses)
        if guesses[0][0] == UNDETERMINED
        else (readings(guesses, route), guesses)
        for guesses in all_guesses
    ]


class Reader:
    """Reads texts as search with one version does, each text once."""

    def __init__(self, encoder: SearchEncoder, learned: Sequence[str], cache: FeatureCache) -> None:
        self._encoder, self._learned, self._cache = encoder, tuple(learned), cache
        # Rows name languages by their place: the learned ones, then those that are read untaught.
        self._places = [*learned, *sorted(encoder.readable.keys() - set(learned))]
        self._known: dict[str, ReadAs] = {}
        self._digest = _digest(encoder, self._learned, self._places)

    def __call__(self, texts: Sequence[str]) -> list[ReadAs]:
        """Returns how each text is read."""
        unique = [text for text in dict.fromkeys(texts) if text not in self._known]
        if unique:
            ids = [text_id(text) for text in unique]
            kept, found = self._cache.get(self._digest, KIND, ids, 2 * MOST_TABLES)
            rows = np.zeros((len(unique), 2 * MOST_TABLES), dtype=np.float32)
            rows[found] = kept
            fresh = np.flatnonzero(~found)
            if len(fresh):
                rows[fresh] = [self._row(chosen) for chosen in self._read([unique[int(n)] for n in fresh])]
                self._cache.put(self._digest, KIND, [ids[int(n)] for n in fresh], rows[fresh])
            # What was computed now is rounded as what was kept: a text is read alike today and tomorrow.
            self._known |= zip(unique, map(self._read_as, rows.tolist()), strict=True)
        return [self._known[text] for text in texts]

    def _read(self, texts: Sequence[str]) -> list[tuple[Reading, ...]]:
        if len({self._encoder.text_route(tag) for tag in self._places}) == 1:
            only = (Reading(self._learned[0], 1.0),)  # one table reads all, whatever they are in
            return [only] * len(texts)
        return [chosen for chosen, _ in read_all(texts, self._learned, self._encoder)]

    def _row(self, chosen: Sequence[Reading]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
        """Returns (12,) float32: the number of each reading's language, from 1, and how much it is lowered."""
        row = np.zeros((MOST_TABLES, 2), dtype=np.float32)
        lowered = handicaps(chosen, self._encoder.similarity_scale)
        for n, (reading, value) in enumerate(zip(chosen, lowered, strict=True)):
            row[n] = self._places.index(reading.language) + 1, value
        return row.ravel()

    def _read_as(self, row: list[float]) -> ReadAs:
        pairs = zip(row[::2], row[1::2], strict=True)
        return tuple((self._places[int(number) - 1], lowered) for number, lowered in pairs if number)


def _digest(encoder: SearchEncoder, learned: Sequence[str], places: Sequence[str]) -> str:
    """Returns the sha256 (hex) of what decides how a text is read."""
    routes = [encoder.text_route(tag) for tag in places]
    facts = repr((RULES, list(learned), list(places), routes, round(encoder.similarity_scale, 6)))
    digest = hashlib.sha256(facts.encode())
    for tag in sorted(encoder.profiles):
        profile = encoder.profiles[tag]
        digest.update(tag.encode())
        for array in (profile.alphabet, profile.keys, profile.counts):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()
