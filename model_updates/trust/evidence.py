"""What is known of a chunk's pairs, made into witnesses: blocks, likenesses, and scores for any order of the captions.

Witnesses, each used where there is what it needs:

* `words`: a trusted caption in a known language beside the picture foretells the words of this one, and `words_back`
  the other way round; `letters`: names and loan words look alike in both; `length`: what takes many words in one
  language takes many in another;
* `pictures`: pictures that look alike have captions with the same words; `meaning`: and with the same meaning, where
  the encoder knows the language;
* `encoder`: the caption's vector is near the picture's, where the encoder knows language and domain.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from model_updates.trust.agreement import HIGHEST, LOWEST, Agreement, agreement, heard, same_in, strength
from model_updates.trust.cross_fit import Block, CrossFit, Kernel, as_one, blocks_of
from model_updates.trust.word_agreement import likeness, sequences_of, words_of

WORDS, WORDS_BACK, LETTERS, LENGTH = "words", "words_back", "letters", "length"
PICTURES, MEANING, ENCODER = "pictures", "meaning", "encoder"
# Learned from the chunk itself, so that wrong captions weaken what they find; ENCODER alone does not depend on them.
SEQUENCES_SHARE = 0.3  # how much letter sequences count beside whole words in the captions that stand beside
ENOUGH_BESIDE = 0.5  # of the pictures must have a trusted caption for words to be asked
LEAST_BELIEF = 0.05


@dataclass(frozen=True)
class UploadedPairs:
    """Pairs of one language and one domain, in the order they were uploaded."""

    texts: Sequence[str]  # (n,) captions
    images: Sequence[str]  # (n,) which picture each belongs to; several captions of a picture name it again
    # (n,) which thing a picture shows, such as its near copies; the picture itself where nothing is known
    groups: Sequence[Hashable]
    # (n,) a trusted caption of the picture in a known language, "" where there is none
    beside: Sequence[str] = ()
    # (n, d) trunk features of the pictures, raw; None when they say nothing
    pictures: NDArray[np.float32] | None = None
    # (n, e) what the encoder makes of the pictures; None when it does not know the language
    picture_vectors: NDArray[np.float32] | None = None
    text_vectors: NDArray[np.float32] | None = None  # (n, e) what it makes of the captions

    def __len__(self) -> int:
        return len(self.texts)

    def part(self, at: NDArray[np.intp]) -> UploadedPairs:
        """Returns the pairs at some positions."""

        def rows(values: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
            return None if values is None else values[at]

        return UploadedPairs(
            [self.texts[i] for i in at],
            [self.images[i] for i in at],
            [self.groups[i] for i in at],
            [self.beside[i] for i in at] if self.beside else (),
            rows(self.pictures),
            rows(self.picture_vectors),
            rows(self.text_vectors),
        )


class Evidence:
    """The witnesses of one set of pairs, prepared once; captions may then be heard in any order."""

    def __init__(
        self,
        pairs: UploadedPairs,
        *,
        only: Sequence[str] | None = None,
        blocks: Sequence[NDArray[np.intp]] | None = None,
        seed: int = 0,
    ) -> None:
        """Prepares what every hearing shares.

        There are at least 40 pairs, else no block is large enough to say what mismatched pairs look like. All witnesses
        that can be asked are asked when `only` is None. `blocks` part the positions of the pairs; when None they are
        drawn by the seed, groups kept whole.
        """
        self.pairs = pairs
        has_words = pairs.beside and sum(map(bool, pairs.beside)) >= ENOUGH_BESIDE * len(pairs)
        # Captions tie nothing: a wrong one would tie two things together, and enough wrong ones everything.
        self.groups = as_one(pairs.groups, pairs.images)
        self.blocks = blocks_of(self.groups, seed=seed) if blocks is None else list(blocks)
        self._only = only
        self._believed: NDArray[np.float64] | None = None
        self._words: Kernel | None = _words_kernel(pairs.beside) if has_words else None
        self._pictures: Kernel | None = None if pairs.pictures is None else _cosines(pairs.pictures)
        self._meaning: Kernel | None = None if pairs.text_vectors is None else _cosines(pairs.text_vectors)
        self._fixed = self._fixed_scores()
        self._fits: dict[str, CrossFit] = {}

    @cached_property
    def _captions(self) -> Kernel:
        return likeness([sequences_of(text) for text in self.pairs.texts])

    @property
    def names(self) -> tuple[str, ...]:
        """The witnesses that can be asked."""
        found = list(self._fixed)
        if self._words is not None:
            found += [WORDS, WORDS_BACK]
        if self._pictures is not None:
            found += [PICTURES] + ([MEANING] if self._meaning is not None else [])
        return tuple(name for name in found if self._only is None or name in self._only)

    def believe(self, chances: NDArray[np.float64] | None) -> None:
        """Lets pairs that are likely mismatched teach less: (n,) chances that a pair belongs together."""
        self._believed = None if chances is None else np.clip(chances, LEAST_BELIEF, 1.0)
        self._fits.clear()

    def hear(self) -> Agreement:
        """Asks all witnesses about the captions as they were uploaded."""
        return agreement(*self._said(None))

    def strength(self, order: NDArray[np.intp]) -> float:
        """Returns how strong the agreement is in another order (n,): which caption stands at each picture."""
        return strength(*self._said(order))

    def compared(self, order: NDArray[np.intp]) -> list[NDArray[np.float64]]:
        """Returns per block (b, b) deviations, each picture with the captions that stand there in an order (n,).

        Extremes are cut, as they are wherever scores are added up.
        """
        witnesses, _, _, same = self._said(order)
        return [np.clip(values, LOWEST, HIGHEST) for values in heard(witnesses, same)[0]]

    def _said(
        self, order: NDArray[np.intp] | None
    ) -> tuple[dict[str, list[Block]], list[NDArray[np.intp]], NDArray[np.intp], list[NDArray[np.bool_]]]:
        names = [name for name in self.names if order is None or name != WORDS_BACK]
        witnesses = {name: self._scores(name, order) for name in names}
        texts = list(self.pairs.texts) if order is None else [self.pairs.texts[int(at)] for at in order]
        labels = [self.groups.tolist(), texts] + (
            [list(self.pairs.beside)] if self._words is not None else []
        )
        return witnesses, self.blocks, self.groups, [same_in(block, *labels) for block in self.blocks]

    def _scores(self, name: str, order: NDArray[np.intp] | None) -> list[Block]:
        if name in self._fixed:
            values = self._fixed[name]
            return [values[np.ix_(block, block if order is None else order[block])] for block in self.blocks]
        if name == WORDS_BACK:
            assert self._words is not None  # noqa: S101 - `names` offers it only then
            return [block.T for block in self._fit(name, self._captions).scores(self._words)]
        learned_from = self._words if name == WORDS else self._pictures
        captions = self._meaning if name == MEANING else self._captions
        assert learned_from is not None  # noqa: S101
        assert captions is not None  # noqa: S101
        return self._fit(WORDS if name == WORDS else PICTURES, learned_from).scores(captions, order)

    def _fit(self, name: str, kernel: Kernel) -> CrossFit:
        if name not in self._fits:
            self._fits[name] = CrossFit(kernel, self.blocks, weights=self._believed)
        return self._fits[name]

    def _fixed_scores(self) -> dict[str, NDArray[np.float32]]:
        """Returns (n, n) scores, pictures by captions, that nothing is learned for."""
        pairs, found = self.pairs, dict[str, NDArray[np.float32]]()
        if pairs.text_vectors is not None and pairs.picture_vectors is not None:
            found[ENCODER] = unit_rows(pairs.picture_vectors) @ unit_rows(pairs.text_vectors).T
        if self._words is not None:
            both = likeness([sequences_of(_plain(text)) for text in [*pairs.beside, *pairs.texts]])
            found[LETTERS] = both[: len(pairs), len(pairs) :]
            found[LENGTH] = _length_scores(pairs.beside, pairs.texts)
        return found


def in_parts(pairs: UploadedPairs, most: int, seed: int = 0) -> list[NDArray[np.intp]]:
    """Returns positions that part a large set into sets of at most about `most`, groups kept together."""
    if len(pairs) <= most:
        return [np.arange(len(pairs))]
    count = -(-len(pairs) // most)
    groups = as_one(pairs.groups, pairs.images)
    of = np.random.default_rng(seed).permutation(int(groups.max()) + 1)[groups] % count
    return [np.flatnonzero(of == number) for number in range(count)]


def _words_kernel(beside: Sequence[str]) -> Kernel:
    whole = likeness([words_of(text) for text in beside], seen_in=1)
    return whole + np.float32(SEQUENCES_SHARE) * likeness([sequences_of(text) for text in beside])


def _length_scores(beside: Sequence[str], texts: Sequence[str]) -> NDArray[np.float32]:
    """Returns how well lengths go together: the log-likelihood of normal scores that correlate as these do."""
    theirs, ours = (_normal_scores([len(text) for text in side]) for side in (beside, texts))
    correlation = max(0.0, float(np.corrcoef(theirs, ours)[0, 1]))
    return -((ours[None, :] - correlation * theirs[:, None]) ** 2).astype(np.float32)


def _normal_scores(values: Sequence[int]) -> NDArray[np.float64]:
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    quantile: Callable[[float], float] = NormalDist().inv_cdf
    return np.asarray([quantile((rank + 0.5) / len(values)) for rank in ranks.tolist()])


def _plain(text: str) -> str:
    """Returns a text without accents."""
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


def _cosines(rows: NDArray[np.float32]) -> Kernel:
    centred = unit_rows(rows - rows.mean(axis=0))
    return np.asarray(centred @ centred.T, dtype=np.float32)


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns (n, d) rows of length one; a row of zeros stays."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)
