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

A language with too few held-out captions of its own borrows from English what was measured there, lowered as far as
the same 32 sentences in that language are further from the English captions than in English: what is weak as far as
the furthest of them, what is strong as far as one in two.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections import Counter, OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from app.desk.hits import Relevance
from app.home.workspace import Workspace
from app.learning.yardstick import sampled
from app.query.parts import sample_ids, sample_of
from app.query.snapshot import Snapshot, Vectors
from ingest.pair import BASE_LANGUAGE, Pair, Split
from model_updates.encoder import unit
from model_updates.features import TEXT, text_features, text_id
from model_updates.photo.e5 import language_captions

FEWEST, MOST = 20, 200
"""Held-out captions that a language is calibrated on: with fewer, one of twenty is nobody."""
MOST_KNOWN, AT_ONCE = 4000, 1000
"""Captions that are compared with, and how many of them are embedded for that where they were not yet."""
NEAREST = 2
_SHORTEST = 4  # words of a caption that is compared with: "a man" is near to every word
_FEWEST_WORDS, _MOST_WORDS = 10, 1000
_SELDOM, _OFTEN = 3, 0.2  # captions that have a word which says something: so many, and this share at most
_KEPT = 16
_NEVER = 2.0  # no cosine is as high
# A run of letters; scripts without spaces between words are read two letters at a time.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff"
_RUN = re.compile(rf"([{_UNSPACED}]+)|[^\W{_UNSPACED}]+")

Scale = NDArray[np.float64]
"""(5,): captions as near as those of 96 in 100 and of 75 in 100; pictures as near as 99 in 100, 75 and 25."""


@dataclass(frozen=True)
class Levels:
    """The cosines from which on a hit of one query is strong, or weak, and the language that this was measured in."""

    strong: float
    weak: float
    language: str = ""

    def of(self, cosine: float) -> Relevance:
        """Returns what a hit with this cosine is worth."""
        if cosine >= self.strong:
            return Relevance.STRONG
        return Relevance.WEAK if cosine >= self.weak else Relevance.NOTHING

    def least(self, wanted: Relevance) -> float:
        """Returns the cosine that a hit worth this much has at least."""
        return {Relevance.STRONG: self.strong, Relevance.WEAK: self.weak}.get(wanted, -1.0)


@dataclass(frozen=True, eq=False)
class Gauge:
    """What was measured of one language in one release."""

    known: Vectors  # (m, dim) float32 unit rows: captions that the queries are compared with
    word: Scale  # of queries of one word
    caption: Scale  # of whole captions
    words: float  # of a whole caption
    language: str  # that it was measured in

    def near(self, queries: Vectors) -> NDArray[np.float64]:
        """Returns (n,) how near the nearest captions are to (n, dim) unit queries: a mean of cosines."""
        return nearest(queries @ self.known.T)

    def levels(self, text: str, query: Vectors) -> Levels:
        """Returns what the cosines of a query mean: its text, and its (dim,) unit vector."""
        long = float(np.clip((len(words_of(text)) - 1) / max(1.0, self.words - 1), 0, 1))
        few, much, low, high, best = ((1 - long) * self.word + long * self.caption).tolist()
        near = float(self.near(query[None])[0])
        if near < few:
            return Levels(_NEVER, best, self.language)
        return Levels(high if near >= much else _NEVER, min(low, high), self.language)


class Calibration:
    """Measures the languages of releases when they are first asked for, and keeps that in the home.

    The catalog has the captions; the home's features have their vectors, most of which a gate has computed already.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._catalog, self._features = workspace.catalog, workspace.features
        self._folder = workspace.home.captions
        self._known: OrderedDict[tuple[str, str], Gauge | None] = OrderedDict()
        self._turn = threading.RLock()

    def gauge(self, snapshot: Snapshot, language: str) -> Gauge | None:
        """Returns what is known of a language; None where neither it nor English has 20 held-out captions.

        They count where their pictures are in the gallery.
        """
        key = (snapshot.release.id, language)
        with self._turn:
            if key not in self._known:
                self._known[key] = self._kept(snapshot, language)
                while len(self._known) > _KEPT:
                    self._known.popitem(last=False)
            return self._known[key]

    def prepare(self, snapshot: Snapshot) -> None:
        """Measures all languages of a release before anybody waits for them."""
        for language in snapshot.languages:
            self.gauge(snapshot, language)

    def _kept(self, snapshot: Snapshot, language: str) -> Gauge | None:
        place = self._folder / f"relevance-{language}-{snapshot.release.id}.npz"
        with suppress(OSError, ValueError, KeyError), np.load(place, allow_pickle=False) as kept:
            known = kept["known"].astype(np.float32)
            return Gauge(known, kept["word"], kept["caption"], float(kept["words"]), language)
        measured = self._measured(snapshot, language)
        if measured is None:
            return self._borrowed(snapshot, language)
        _write(place, measured)
        return measured

    def _measured(self, snapshot: Snapshot, language: str) -> Gauge | None:
        held = [
            pair
            for split in (Split.TEST, Split.VALIDATION)
            for pair in self._pairs(snapshot, language, split)
        ]
        held = held[:: max(1, -(-len(held) // MOST))]
        texts = self._texts(snapshot, language)
        if len(held) < FEWEST or len(texts) < FEWEST:
            return None
        known = self._vectors(snapshot, texts, language).astype(np.float16).astype(np.float32)
        captions = self._vectors(snapshot, [pair.text for pair in held], language)
        pictures = snapshot.generation.vectors([pair.image_id for pair in held])
        own = np.einsum("nd,nd->n", captions, pictures)
        others = np.array([pair.image_id for pair in held])[:, None] != np.array(sample_ids(snapshot))
        caption = scale_of(nearest(captions @ known.T), own)
        caption[3] = max(caption[3], _seldom_reached((captions @ sample_of(snapshot).T)[others]))
        word = self._words(snapshot, language, texts, known)
        length = float(np.median([len(words_of(pair.text)) for pair in held]))
        return Gauge(known, caption if word is None else word, caption, length, language)

    def _words(self, snapshot: Snapshot, language: str, texts: Sequence[str], known: Vectors) -> Scale | None:
        """Returns the scale of single words; None where captions have too few in common."""
        common = common_words(texts)
        if len(common) < _FEWEST_WORDS:
            return None
        rows = self._vectors(snapshot, common, language)
        rows = rows[are_told(common, texts, rows @ known.T)]
        if len(rows) < _FEWEST_WORDS:
            return None
        return scale_of(nearest(rows @ known.T), snapshot.generation.search(rows, 1)[0][:, 0])

    def _borrowed(self, snapshot: Snapshot, language: str) -> Gauge | None:
        """Returns what was measured in English, lowered for a language that is read less well."""
        sentences = language_captions()
        if language == BASE_LANGUAGE or language not in sentences:
            return None
        base = self.gauge(snapshot, BASE_LANGUAGE)
        if base is None or base.language != BASE_LANGUAGE:
            return None
        english, own = (
            base.near(self._vectors(snapshot, sentences[tag], tag)) for tag in (BASE_LANGUAGE, language)
        )
        shares = np.clip(own / np.maximum(english, 1e-6), 0, 1)
        seldom, often = np.quantile(shares, (0.0, 0.5))
        share = np.array([seldom, often, seldom, often, often])
        word, caption = (np.minimum(scale, share * scale) for scale in (base.word, base.caption))
        return Gauge(base.known, word, caption, base.words, BASE_LANGUAGE)

    def _pairs(self, snapshot: Snapshot, language: str, split: Split) -> list[Pair]:
        shown = snapshot.generation.positions.keys() - snapshot.hidden
        return [
            pair for pair in self._catalog.pairs(language=language, split=split) if pair.image_id in shown
        ]

    def _texts(self, snapshot: Snapshot, language: str) -> list[str]:
        """Returns one caption a picture to compare with: a fixed sample, of which most have vectors already."""
        first: dict[str, str] = {}
        for pair in self._pairs(snapshot, language, Split.TRAIN):
            if len(words_of(pair.text)) >= _SHORTEST:
                first.setdefault(pair.image_id, pair.text)
        texts = {text_id(text): text for text in first.values()}
        ids = sampled(texts, len(texts))
        encoder = snapshot.encoder
        _, has = self._features.get(encoder.text_fingerprint(language), TEXT, ids, encoder.dim)
        ready = [one for one, known in zip(ids, has, strict=True) if known][:MOST_KNOWN]
        new = [one for one, known in zip(ids, has, strict=True) if not known]
        return [texts[one] for one in (*ready, *new[: min(AT_ONCE, MOST_KNOWN - len(ready))])]

    def _vectors(self, snapshot: Snapshot, texts: Sequence[str], language: str) -> Vectors:
        return unit(text_features(snapshot.encoder, texts, language, self._features))


def nearest(cosines: NDArray[np.float32]) -> NDArray[np.float64]:
    """Returns of (n, m) cosines the (n,) means of the two highest of each row."""
    count = min(NEAREST, cosines.shape[1])
    highest: NDArray[np.float64] = np.partition(cosines, -count, axis=1)[:, -count:].mean(axis=1, dtype=float)
    return highest


def scale_of(captions: NDArray[np.float64], pictures: NDArray[np.float32]) -> Scale:
    """Returns the scale that (n,) nearest captions of texts and their (n,) pictures lead to."""
    return np.concatenate([np.quantile(captions, (0.04, 0.25)), np.quantile(pictures, (0.01, 0.25, 0.75))])


def words_of(text: str) -> list[str]:
    """Returns the words of a text, small; of scripts without spaces every two letters that follow one another."""
    found: list[str] = []
    for run in _RUN.finditer(text.casefold()):
        word = run.group()
        found += [word[n : n + 2] for n in range(max(1, len(word) - 1))] if run.group(1) else [word]
    return found


def common_words(texts: Sequence[str]) -> list[str]:
    """Returns a fixed sample of the words that several captions have, but not so many that they say nothing."""
    counts = Counter(word for text in texts for word in set(words_of(text)))
    return sampled(
        (word for word, count in counts.items() if _SELDOM <= count <= _OFTEN * len(texts)), _MOST_WORDS
    )


def are_told(words: Sequence[str], texts: Sequence[str], cosines: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Returns (n,) whether the nearest captions of a word all have it, as those of words for things do.

    `cosines` are (n, m), of words and texts.
    """
    have = [set(words_of(text)) for text in texts]
    first = np.argsort(-cosines, axis=1)[:, :NEAREST]
    return np.array([all(word in have[at] for at in row) for word, row in zip(words, first, strict=True)])


def _seldom_reached(cosines: NDArray[np.float32]) -> float:
    return float(np.quantile(cosines, 0.999)) if len(cosines) else -1.0


def _write(place: Path, measured: Gauge) -> None:
    """Keeps what was measured, and the newest few beside it; a home that cannot be written to is measured again."""
    staged = place.with_name(f"{uuid.uuid4().hex}.tmp")
    with suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        with staged.open("wb") as file:
            np.savez(
                file,
                known=measured.known.astype(np.float16),
                word=measured.word,
                caption=measured.caption,
                words=measured.words,
            )
        staged.replace(place)
        kept = sorted(place.parent.glob("relevance-*.npz"), key=lambda path: path.stat().st_mtime)
        for path in kept[:-_KEPT]:
            path.unlink(missing_ok=True)
