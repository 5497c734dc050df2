"""Pairs that need no picture: things with attributes, features that show them, captions that name them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from model_updates.trust.evidence import UploadedPairs

ENGLISH = (
    "red blue green white black brown",
    "dog cat boat house tree horse bird car",
    "runs sits waits turns",
)
FOREIGN = (
    "makovi senatu dorilo vuspa kerin todla",
    "hafnir milou gerbat sontu wexil parno dulki ostep",
    "zim eko ral ubo",
)
WIDTH = 24


def pair_set(
    size: int,
    *,
    seed: int = 0,
    beside: bool = False,
    knows: bool = False,
    sees: float = 1.0,
    foreign: bool = True,
) -> UploadedPairs:
    """Captions of made-up things.

    Args:
        size: pairs, one a picture.
        seed: of the things and the noise.
        beside: whether an English caption stands beside.
        knows: whether the encoder has vectors of pictures and captions.
        sees: how much of the things shows in the pictures' features, against noise of size one.
        foreign: whether captions are in a language nobody knows.
    """
    random = np.random.default_rng(seed)
    axes = np.random.default_rng(99).normal(size=(3, 8, WIDTH))
    english, other = ([line.split() for line in lines] for lines in (ENGLISH, FOREIGN))
    things = [[int(random.integers(len(words))) for words in english] for _ in range(size)]
    shown = np.asarray([sum(axes[a, which] for a, which in enumerate(thing)) for thing in things])
    features = sees * shown + 2 * random.normal(size=(size, WIDTH))

    def say(words: list[list[str]], thing: list[int]) -> str:
        return " ".join(words[a][which] for a, which in enumerate(thing))

    said = [say(other if foreign else english, thing) for thing in things]
    names = [f"picture {n}" for n in range(size)]
    return UploadedPairs(
        texts=said,
        images=names,
        groups=names,
        beside=[say(english, thing) for thing in things] if beside else (),
        pictures=features.astype(np.float32),
        picture_vectors=features.astype(np.float32) if knows else None,
        text_vectors=(shown + random.normal(size=shown.shape)).astype(np.float32) if knows else None,
    )


def with_captions(pairs: UploadedPairs, order: NDArray[np.intp]) -> UploadedPairs:
    """The same pictures, each with the caption (and its vector) that `order` names."""
    vectors = None if pairs.text_vectors is None else pairs.text_vectors[order]
    return replace(pairs, texts=[pairs.texts[int(at)] for at in order], text_vectors=vectors)


def shuffled(pairs: UploadedPairs, share: float, seed: int = 1) -> tuple[UploadedPairs, NDArray[np.bool_]]:
    """Exchanges the captions of a share of the pairs among themselves; says which pairs are wrong now."""
    size = len(pairs)
    chosen = np.random.default_rng(seed).permutation(size)[: round(share * size)]
    order = np.arange(size)
    order[chosen] = np.roll(chosen, 1)
    wrong = np.asarray([pairs.texts[int(order[n])] != pairs.texts[n] for n in range(size)])
    return with_captions(pairs, order), wrong
