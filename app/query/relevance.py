"""Relevance: what a query and a cosine mean in one language of one release, in words.

Whether there is anything to find is seldom told by cosines with pictures: of the concepts that are not in a gallery,
some picture is always near. It is told by the captions that are known: of what is here, some speak. So two things are
measured, on captions and words that are here (docs/results/relevance.md has what each tells):

- how near the two *nearest captions* of other pictures are to a held-out caption, and to a word that both have;
- how near the picture is: that caption's own one, or the best one for that word.

A query whose nearest captions are further away than those of 96 in 100 finds *nothing*, unless a picture is as near as
the nearest quarter; nor does a picture that is further away than 99 in 100. A hit is *strong* where captions and
picture are both as near as those of three in four, and no more than one in a thousand pictures of something else is.
Between a word and a whole caption a query's number of words decides.

All this is measured for each domain by itself, since photographs have sentences and drawn things have names: a query
finds what it finds in the domain that has most to say to it.

A language with too few held-out captions of its own borrows from English what was measured there. What is weak there
is measured on the English captions as that language would read them: 32 sentences are known in both, and what reading
one of them in that language changes is done to each caption, and more of it, since what people write differs more from
language to language than these sentences. What is strong is lowered as far as one in two of them are further away.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from app.home.workspace import Workspace
from app.learning.sampling import sampled
from app.query.caption_scales import (
    TURNS,
    Scale,
    are_told,
    common_words,
    nearest,
    read_as,
    scale_of,
    seldom_reached,
    words_of,
)
from app.query.gauges import Gauge, Gauges, read, write
from app.query.parts import sample_ids, sample_of
from app.query.snapshot import Snapshot, Vectors
from ingest.pair import BASE_LANGUAGE, Pair, Split
from model_updates.features import TEXT, text_features, text_id
from model_updates.photo.e5 import language_captions
from model_updates.search_encoder import unit

FEWEST, MOST = 20, 200
"""Held-out captions that a language is calibrated on: with fewer, one of twenty is nobody."""
MOST_KNOWN, AT_ONCE = 4000, 1000
"""Captions that are compared with, and how many of them are embedded for that where they were not yet."""
# words of a caption that is compared with: "a man" is near to every word. Not where most captions are names
_SHORTEST = 4
_FEWEST_WORDS = 10
_PATIENCE = 5.0  # seconds that a query waits for its language to be measured
LOOK_AGAIN_SECONDS = 1.0  # between two looks whether a language of which nothing is known has got pairs
_KEPT = 3  # releases that are in memory: the live one, one in its shadow, and one that is compared


class _Looked(NamedTuple):
    """What is known of a language, on what it rests, and when that was looked at."""

    found: Gauges | None
    state: object
    when: float


_NEVER = _Looked(None, None, -LOOK_AGAIN_SECONDS)


class Calibration:
    """Measures the languages of releases when they are first asked for, and keeps that in the home.

    The catalog has the captions; the home's features have their vectors, most of which a gate has computed already.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._catalog, self._features = workspace.catalog, workspace.features.as_room_allows()
        self._folder = workspace.home.captions
        # By release and language. Nothing is known of one as long as no pairs have come.
        self._known: OrderedDict[str, tuple[dict[str, _Looked], dict[str, threading.Lock]]] = OrderedDict()
        self._base: tuple[object, dict[str, tuple[list[Pair], list[str]]]] | None = None  # what was lent last
        self._turn = threading.Lock()  # of what is known; each language is measured in its own

    def gauge(self, snapshot: Snapshot, language: str) -> Gauges | None:
        """Returns what is known of a language; None where neither it nor English has 20 held-out captions.

        They count where their pictures are in the gallery. None as well where another thread is measuring it and takes
        more than a moment: an answer waits for no captions to be read.
        """
        with self._turn:
            known, turns = self._known.setdefault(snapshot.release.id, ({}, defaultdict(threading.Lock)))
            self._known.move_to_end(snapshot.release.id)
            # Whole releases go: what is borrowed has the captions of the language that it is borrowed from.
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
            looked, turn = known.get(language, _NEVER), turns[language]
        is_new = time.monotonic() - looked.when < LOOK_AGAIN_SECONDS
        if looked.found is not None or is_new or not turn.acquire(timeout=_PATIENCE):
            return looked.found
        try:
            found, before, _ = known.get(language, _NEVER)
            if found is None:
                state = self._catalog.pairs_mark(), snapshot.pictures
                found = self._kept(snapshot, language) if state != before else None
                known[language] = _Looked(found, state, time.monotonic())
            return found
        finally:
            turn.release()

    def prepare(self, snapshot: Snapshot) -> None:
        """Measures all languages of a release before anybody waits for them."""
        for language in snapshot.languages:
            self.gauge(snapshot, language)

    def _kept(self, snapshot: Snapshot, language: str) -> Gauges | None:
        place = self._folder / f"relevance-{language}-{snapshot.release.id}.npz"
        found = read(place, language)
        if found is not None:
            return found
        pairs = self._by_domain(snapshot, language)
        if pairs:
            chunks = snapshot.release.manifest.chunks
            learned = {domain for chunk in chunks for domain in self._catalog.chunk(chunk).domains}
            measured = (
                replace(
                    self._measured(snapshot, language, domain, *both),
                    learned=not learned or domain in learned,
                )
                for domain, both in pairs.items()
            )
            found = Gauges(tuple(measured))
            write(place, found)
            return found
        base = None if language == BASE_LANGUAGE else self.gauge(snapshot, BASE_LANGUAGE)
        if base is None or base.language != BASE_LANGUAGE:
            return None
        place = self._folder / f"relevance-{language}-as-{BASE_LANGUAGE}-{snapshot.release.id}.npz"
        found = read(place, language, base)
        if found is None:
            found = self._borrowed(snapshot, language, base)
            if found is not None:
                write(place, found, base)
        return found

    def _by_domain(self, snapshot: Snapshot, language: str) -> dict[str, tuple[list[Pair], list[str]]]:
        """Returns held-out captions, and those to compare with; domains that have too few join the largest."""
        held = defaultdict[str, list[Pair]](list)
        for split in (Split.TEST, Split.VALIDATION):
            for pair in self._pairs(snapshot, language, split):
                held[pair.domain].append(pair)
        if sum(map(len, held.values())) < FEWEST:
            return {}
        known = self._texts(snapshot, language)
        enough = [one for one in held if min(len(held[one]), len(known.get(one, ()))) >= FEWEST]
        largest = max(enough, key=lambda one: len(known[one]), default="")
        together: dict[str, tuple[list[Pair], list[str]]] = {}
        for one in sorted({*held, *known}):
            pairs, texts = together.setdefault(one if one in enough else largest, ([], []))
            pairs += held.get(one, [])
            texts += known.get(one, [])
        return {one: both for one, both in together.items() if min(len(both[0]), len(both[1])) >= FEWEST}

    def _measured(
        self, snapshot: Snapshot, language: str, domain: str, held: Sequence[Pair], texts: Sequence[str]
    ) -> Gauge:
        known = self._vectors(snapshot, texts, language).astype(np.float16).astype(np.float32)
        held, captions, pictures = self._asked(snapshot, language, held)
        own = np.einsum("nd,nd->n", captions, pictures)
        others = np.array([pair.image_id for pair in held])[:, None] != np.array(sample_ids(snapshot))
        caption = scale_of(nearest(captions @ known.T), own)
        caption[3] = max(caption[3], seldom_reached((captions @ sample_of(snapshot).T)[others]))
        word = self._words(snapshot, language, texts, known, {pair.domain for pair in held})
        length = float(np.median([len(words_of(pair.text)) for pair in held]))
        return Gauge(known, caption if word is None else word, caption, length, language, domain)

    def _asked(
        self, snapshot: Snapshot, language: str, held: Sequence[Pair]
    ) -> tuple[Sequence[Pair], Vectors, Vectors]:
        """Returns a sample of held-out pairs, and the (n, dim) vectors of their texts and of their pictures."""
        some = held[:: max(1, -(-len(held) // MOST))]
        texts = self._vectors(snapshot, [pair.text for pair in some], language)
        return some, texts, snapshot.generation.vectors([pair.image_id for pair in some])

    def _words(
        self,
        snapshot: Snapshot,
        language: str,
        texts: Sequence[str],
        known: Vectors,
        domains: Collection[str],
    ) -> Scale | None:
        """Returns the scale of single words in domains; None where captions have too few in common."""
        common = common_words(texts)
        if len(common) < _FEWEST_WORDS:
            return None
        rows = self._vectors(snapshot, common, language)
        rows = rows[are_told(common, texts, rows @ known.T)]
        if len(rows) < _FEWEST_WORDS:
            return None
        shown = snapshot.holding(self._catalog.packed_ids_where(domains=domains))
        best = snapshot.generation.search(rows, 1, allowed=shown)[0][:, 0]
        return scale_of(nearest(rows @ known.T), best)

    def _borrowed(self, snapshot: Snapshot, language: str, base: Gauges) -> Gauges | None:
        """Returns what was measured in English, lowered for a language that is read less well."""
        sentences = language_captions()
        if language not in sentences:
            return None
        english, own = (self._vectors(snapshot, sentences[tag], tag) for tag in (BASE_LANGUAGE, language))
        found = []
        pairs = self._lent(snapshot)
        for gauge in base.each:
            # Captions may have gone since it was measured; then nothing is.
            held = pairs.get(gauge.domain, ([], []))[0]
            if not held:
                return None
            _, captions, pictures = self._asked(snapshot, BASE_LANGUAGE, held)
            often = np.median(np.clip(gauge.near(own) / np.maximum(gauge.near(english), 1e-6), 0, 1))
            read = read_as(captions, english, own, snapshot.encoder.tower_dim)
            there = np.einsum("nd,nd->n", read, np.tile(pictures, (TURNS, 1)))
            weak = scale_of(gauge.near(read), there)
            scales = []
            for scale in (gauge.word, gauge.caption):
                few = scale[0] * weak[0] / max(gauge.caption[0], 1e-6)
                low = scale[2] + weak[2] - gauge.caption[2]
                scales.append(np.minimum(scale, [few, often * scale[1], low, *(often * scale[3:])]))
            found.append(replace(gauge, word=scales[0], caption=scales[1]))
        return Gauges(tuple(found))

    def _lent(self, snapshot: Snapshot) -> dict[str, tuple[list[Pair], list[str]]]:
        """Returns English captions by domain; they are read once for all languages that borrow."""
        catalog = self._catalog
        state = snapshot.release.id, snapshot.pictures, catalog.pairs_mark(), catalog.outside_mark()
        base = self._base  # that of another release may come meanwhile
        if base is None or base[0] != state:
            self._base = base = state, self._by_domain(snapshot, BASE_LANGUAGE)
        return base[1]

    def _pairs(self, snapshot: Snapshot, language: str, split: Split) -> list[Pair]:
        every = self._catalog.pairs(language=language, split=split)
        shown = set(snapshot.among(list({pair.image_id for pair in every})))
        return [pair for pair in every if pair.image_id in shown]

    def _texts(self, snapshot: Snapshot, language: str) -> dict[str, list[str]]:
        """Returns by domain one caption a picture to compare with: a fixed sample, most of which have vectors."""
        first = defaultdict[str, dict[str, str]](dict)
        for pair in self._pairs(snapshot, language, Split.TRAIN):
            first[pair.domain].setdefault(pair.image_id, pair.text)
        found = {}
        for domain, captions in first.items():
            long = {one for one in captions.values() if len(words_of(one)) >= _SHORTEST}
            found[domain] = self._sample(
                snapshot, language, long if 2 * len(long) >= len(captions) else captions.values()
            )
        return found

    def _sample(self, snapshot: Snapshot, language: str, some: Iterable[str]) -> list[str]:
        texts = {text_id(text): text for text in some}
        ids = sampled(texts, len(texts))
        encoder = snapshot.encoder
        fingerprint = encoder.text_fingerprint(language)
        ready: list[str] = []
        new: list[str] = []
        # In parts, and no further than need be: the vectors of a million captions take gigabytes.
        for start in range(0, len(ids), MOST_KNOWN):
            part = ids[start : start + MOST_KNOWN]
            _, has = self._features.get(fingerprint, TEXT, part, encoder.dim)
            for one, known in zip(part, has, strict=True):
                (ready if known else new).append(one)
            if len(ready) >= MOST_KNOWN:
                break
        some = new[: max(0, min(AT_ONCE, MOST_KNOWN - len(ready)))]
        return [texts[one] for one in (*ready[:MOST_KNOWN], *some)]

    def _vectors(self, snapshot: Snapshot, texts: Sequence[str], language: str) -> Vectors:
        return unit(text_features(snapshot.encoder, texts, language, self._features))
