"""Does a pair's caption agree with its picture, as far as all other pairs can tell?

Idea: what goes with what is learned from the chunk itself. A ridge regression from the likeness of pictures (by the
words of a trusted caption, by features, by both) predicts what a picture's caption looks like; a caption that the other
pairs would not predict is out of place. Every prediction comes from pairs of other groups (cross-fitting), so that no
pair vouches for itself or for its twin, and the predictions for one picture and the captions of all others are what
mismatched pairs look like.

Formula: with the pictures' kernel K, G = (K + ridge I)^-1 and captions Y, the predictions for block B from all pairs
outside B are Y_B - G_BB^-1 (G Y)_B, exactly (the block form of the leave-one-out formula for linear smoothers; Cook and
Weisberg, Residuals and Influence in Regression, 1982). Only products Y Y^T are needed, which are the captions' kernel.
"""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

Kernel = NDArray[np.float32]
Block = NDArray[np.float32]
"""(b, b) scores of the pictures of one block (rows) with its captions (columns); own pairs on the diagonal."""

RIDGE = 1.5
BLOCKS = 10
SMALLEST_BLOCK = 20


def as_one(*labels: Sequence[Hashable | None]) -> NDArray[np.intp]:
    """Returns a number for each pair, equal where pairs hang together by any of the labels.

    Each label is (n,); equal values tie two pairs, None ties nothing. A label that would tie more than a tenth of all
    pairs together is a class and not an identity, and ties nothing.
    """
    n = len(labels[0])
    parent = list(range(n))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = parent[parent[at]]
            at = parent[at]
        return at

    for label in labels:
        counts: dict[Hashable, int] = {}
        for value in label:
            if value is not None:
                counts[value] = counts.get(value, 0) + 1
        first: dict[Hashable, int] = {}
        for at, value in enumerate(label):
            if value is not None and counts[value] <= max(2, n // 10):
                parent[root(at)] = root(first.setdefault(value, at))
    _, numbers = np.unique([root(at) for at in range(n)], return_inverse=True)
    return np.asarray(numbers, dtype=np.intp)


def blocks_of(groups: NDArray[np.intp], *, seed: int = 0) -> list[NDArray[np.intp]]:
    """Returns the positions of up to ten blocks of about equal size; a group is in one block whole."""
    n = len(groups)
    count = max(2, min(BLOCKS, n // SMALLEST_BLOCK))
    names, sizes = np.unique(groups, return_counts=True)
    order = np.random.default_rng(seed).permutation(len(names))
    filled = np.zeros(count, dtype=np.intp)
    block = np.zeros(len(names), dtype=np.intp)
    for at in order[np.argsort(-sizes[order], kind="stable")]:
        emptiest = int(filled.argmin())
        block[at] = emptiest
        filled[emptiest] += sizes[at]
    of = block[np.searchsorted(names, groups)]
    return [np.flatnonzero(of == number) for number in range(count)]


class CrossFit:
    """A picture kernel made ready: any captions can then be scored against its pictures."""

    def __init__(
        self,
        pictures: Kernel,
        blocks: Sequence[NDArray[np.intp]],
        *,
        weights: NDArray[np.float64] | None = None,
    ) -> None:
        """Inverts once what every scoring needs.

        The likeness of the pictures is (n, n), scaled so that a picture's with itself is about 1. Blocks are positions
        that are predicted from all others; they part the n pairs. `weights` (n,) in (0, 1] is how far each pair is
        believed; all of them when None.
        """
        self.blocks = [np.asarray(block) for block in blocks]
        scale = float(np.mean(np.diagonal(pictures))) or 1.0
        doubt = np.ones(len(pictures)) if weights is None else 1 / np.clip(weights, 1e-3, 1.0)
        regular = np.asarray(pictures, dtype=np.float32) / np.float32(scale)
        regular = regular + np.diag((RIDGE * doubt).astype(np.float32))
        self._inverse = np.linalg.inv(regular)
        self._own = [np.linalg.inv(self._inverse[np.ix_(block, block)]) for block in self.blocks]

    def scores(self, captions: Kernel, order: NDArray[np.intp] | None = None) -> list[Block]:
        """Returns how well each caption of a block fits what is predicted for each picture of it.

        The likeness of the captions is (n, n); `order` (n,) says which caption stands at each picture, its own when
        None.
        """
        found = []
        for block, own in zip(self.blocks, self._own, strict=True):
            at = block if order is None else order[block]
            towards = captions[:, at] if order is None else captions[np.ix_(order, at)]
            predicted = captions[np.ix_(at, at)] - own @ (self._inverse[block] @ towards)
            found.append(np.asarray(predicted, dtype=np.float32))
        return found
