"""What is done to a clean chunk, and which sentence should say so."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from bad_chunks_worlds import Material
from numpy.typing import NDArray

from app.learning.chunk_findings import (
    EXCHANGE,
    HELD_OUT,
    LANGUAGE,
    MATCH,
    MIXTURE,
    REPETITION,
    SHIFT,
    ChunkSlice,
)
from ingest.pair import SliceKey, Split
from model_updates.trust.evidence import UploadedPairs
from model_updates.trust.row_shift import moved
from model_updates.trust.word_agreement import words_of

COPIES_OF = 3  # things in a stuffed held-out part


@dataclass(frozen=True)
class Damaged:
    """A chunk after the damage.

    Attributes:
        chunk: to be judged.
        wrong: (n,) pairs whose caption belongs to another picture.
        right: checks whose finding names the damage; empty where nothing should be held.
    """

    chunk: ChunkSlice
    wrong: NDArray[np.bool_]
    right: frozenset[str]


Damage = Callable[[Material, np.random.Generator], Damaged | None]


def _slice(material: Material, pairs: UploadedPairs, tag: str = "") -> ChunkSlice:
    splits = [Split.TEST if held else Split.TRAIN for held in material.held_out]
    key = SliceKey(tag or material.language, material.world.collection)
    return ChunkSlice(key, pairs, splits[: len(pairs)], material.reference)


def _with(
    material: Material, texts: list[str], right: set[str], wrong: NDArray[np.bool_] | None = None
) -> Damaged:
    vectors = None if material.vectors is None else material.vectors(texts)
    pairs = replace(material.pairs, texts=texts, text_vectors=vectors)
    own = material.pairs.texts
    changed = np.asarray([a != b for a, b in zip(texts, own, strict=True)]) if wrong is None else wrong
    return Damaged(_slice(material, pairs), changed, frozenset(right))


def _ordered(material: Material, order: NDArray[np.intp], right: set[str]) -> Damaged:
    return _with(material, [material.pairs.texts[int(at)] for at in order], right)


def clean(material: Material, _random: np.random.Generator) -> Damaged:
    """Nothing is wrong."""
    return _with(material, list(material.pairs.texts), set())


def shuffled(share: float) -> Damage:
    """The captions of a share of the pairs are exchanged among themselves."""

    def damage(material: Material, random: np.random.Generator) -> Damaged:
        size = len(material.pairs)
        chosen = random.permutation(size)[: round(share * size)]
        order = np.arange(size)
        order[chosen] = np.roll(chosen, 1)
        return _ordered(material, order, {MATCH} if share >= 0.3 else set())

    return damage


def slipped(rows: int, *, training: bool) -> Damage:
    """Every caption is some rows further down, in the whole upload or among its training rows."""

    def damage(material: Material, _random: np.random.Generator) -> Damaged:
        size = len(material.pairs)
        at = np.flatnonzero(~material.held_out) if training else np.arange(size)
        return _ordered(material, moved(size, at, -rows), {SHIFT})

    return damage


def in_order(material: Material) -> Material:
    """The same upload sorted by its captions, so that neighbours look alike."""
    order = np.argsort(np.asarray(material.pairs.texts), kind="stable")
    foreign = {tag: [texts[int(at)] for at in order] for tag, texts in material.foreign.items()}
    return replace(
        material, pairs=material.pairs.part(order), held_out=material.held_out[order], foreign=foreign
    )


def sorted_table(material: Material, random: np.random.Generator) -> Damaged:
    """Nothing is wrong with a sorted upload."""
    return clean(in_order(material), random)


def slipped_between(first: float, last: float, rows: int, *, is_sorted: bool = False) -> Damage:
    """From a share of the upload on to another, captions are some rows further down."""

    def damage(material: Material, _random: np.random.Generator) -> Damaged:
        table = in_order(material) if is_sorted else material
        size = len(table.pairs)
        return _ordered(
            table, moved(size, np.arange(round(first * size), round(last * size)), -rows), {SHIFT}
        )

    return damage


def mixed(share: float) -> Damage:
    """A share of the captions is in English, or in French or German where the upload is English."""

    def damage(material: Material, random: np.random.Generator) -> Damaged | None:
        others = [tag for tag in ("en", "fr", "de") if tag != material.language and tag in material.foreign]
        size = len(material.pairs)
        chosen = set(random.permutation(size)[: round(share * size)].tolist())
        theirs = material.foreign[others[0]]
        texts = [theirs[at] if at in chosen else text for at, text in enumerate(material.pairs.texts)]
        return _with(material, texts, {MIXTURE, LANGUAGE}, np.zeros(size, dtype=np.bool_))

    return damage


def wrong_names_in_training(material: Material, random: np.random.Generator) -> Damaged:
    """All training captions are shuffled; what is held out is in place."""
    order = np.arange(len(material.pairs))
    at = np.flatnonzero(~material.held_out)
    order[at] = np.roll(random.permutation(at), 1)[np.argsort(random.permutation(len(at)))]
    return _ordered(material, order, {MATCH})


def exchanged_words(material: Material, random: np.random.Generator) -> Damaged | None:
    """Two frequent words are exchanged in all captions; None where no two are frequent enough."""
    bags = [set(words_of(text)) for text in material.pairs.texts]
    counts = Counter(word for bag in bags for word in bag if len(word) > 2)
    often = [
        word
        for word, n in counts.most_common(40)
        if 0.03 * len(bags) <= n <= 0.3 * len(bags) and word not in _EMPTY
    ]
    couples = [
        (a, b)
        for n, a in enumerate(often)
        for b in often[:n]
        if sum({a, b} <= bag for bag in bags) <= 0.1 * min(counts[a], counts[b])
    ]
    if not couples:
        return None
    one, other = couples[int(random.integers(len(couples)))]
    swap = {one: other, other: one}
    pattern = re.compile(rf"\b({re.escape(one)}|{re.escape(other)})\b", re.IGNORECASE)
    texts = [pattern.sub(lambda m: swap[m[0].casefold()], text) for text in material.pairs.texts]
    return _with(material, texts, {EXCHANGE, MATCH})


# Words of English and German captions that no picture shows.
_EMPTY = frozenset(
    [
        "the",
        "and",
        "with",
        "for",
        "are",
        "its",
        "his",
        "her",
        "der",
        "die",
        "das",
        "ein",
        "eine",
        "einem",
        "einer",
    ]
    + ["und", "mit", "auf", "von", "ist"]
)


def tagged(tag: str, language: str) -> Damage:
    """Captions of one language under the tag of another; None where they are in it or there are none."""

    def damage(material: Material, _random: np.random.Generator) -> Damaged | None:
        spoken = language or material.language
        if spoken == tag or spoken not in material.foreign:
            return None
        texts = material.foreign[spoken]
        pairs = replace(material.pairs, texts=texts, picture_vectors=None, text_vectors=None)
        chunk = _slice(material, pairs, tag)
        return Damaged(chunk, np.zeros(len(texts), dtype=np.bool_), frozenset({LANGUAGE}))

    return damage


def one_caption(material: Material, _random: np.random.Generator) -> Damaged:
    """All pictures have the first one's caption."""
    return _with(material, [material.pairs.texts[0]] * len(material.pairs), {REPETITION})


def stuffed(material: Material, _random: np.random.Generator) -> Damaged:
    """The held-out pictures are near-copies of three things, as intake's groups would say."""
    count = 0
    groups = []
    for group, held in zip(material.pairs.groups, material.held_out, strict=True):
        groups.append(f"copy of {count % COPIES_OF}" if held else group)
        count += bool(held)
    pairs = replace(material.pairs, groups=groups)
    return Damaged(_slice(material, pairs), np.zeros(len(groups), dtype=np.bool_), frozenset({HELD_OUT}))


def twelve(material: Material, _random: np.random.Generator) -> Damaged:
    """The first twelve pairs alone."""
    pairs = material.pairs.part(np.arange(12))
    return Damaged(_slice(material, pairs), np.zeros(12, dtype=np.bool_), frozenset())


MATCH_DAMAGES: dict[str, Damage] = {
    "clean": clean,
    "shuffled 5 %": shuffled(0.05),
    "shuffled 10 %": shuffled(0.1),
    "shuffled 15 %": shuffled(0.15),
    "shuffled 30 %": shuffled(0.3),
    "shuffled 60 %": shuffled(0.6),
    "shuffled 100 %": shuffled(1.0),
    "rows moved by 1": slipped(1, training=False),
    "rows moved by 3": slipped(3, training=False),
    "training rows moved by 1": slipped(1, training=True),
    "training rows moved by 3": slipped(3, training=True),
    "last 62 % of the rows moved by 1": slipped_between(0.38, 1.0, 1),
    "rows from 30 to 70 % moved by 2": slipped_between(0.3, 0.7, 2),
    "sorted table": sorted_table,
    "sorted table, last 62 % moved by 1": slipped_between(0.38, 1.0, 1, is_sorted=True),
    "sorted table, last 75 % moved by 2": slipped_between(0.25, 1.0, 2, is_sorted=True),
    "wrong names in training": wrong_names_in_training,
    "two words exchanged": exchanged_words,
}
"""Damages that only the pictures can show."""
COUNTED_DAMAGES: dict[str, Damage] = {
    "English under a foreign tag (learned)": tagged("de", "en"),
    "English under a foreign tag (not learned)": tagged("qu", "en"),
    "another language under a learned tag": tagged("en", "hi"),
    "a near language under a tag": tagged("nl", "de"),
    "10 % in another language": mixed(0.1),
    "30 % in another language": mixed(0.3),
    "one caption for all": one_caption,
    "held-out near copies": stuffed,
    "12 pairs": twelve,
}
"""Damages that captions and counts show by themselves."""
