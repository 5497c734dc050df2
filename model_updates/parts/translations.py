"""Where the rows of a new language start: at the English words that stand beside them in captions of one picture.

IBM model 1 (Brown et al., *The Mathematics of Statistical Machine Translation*, 1993) says how likely an English token
is the translation of a foreign one, from pairs of sentences alone. A new row starts as the mean of the English rows
weighted by that. It takes a second or two for ten thousand pairs; on photographs it is most of what training would do,
and names of drawings that train nowhere are found a twelfth to a fifth more often (docs/log.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

ROUNDS = 6
MOST_CELLS = 6_000_000  # foreign times English tokens over all pairs: bounds time and memory

Rows = Sequence[Sequence[int]]


@dataclass(frozen=True)
class Translations:
    """Which rows may stand for which: `share` of foreign row `foreign` is the row `english`, (m,) each."""

    foreign: NDArray[np.int64]
    english: NDArray[np.int64]
    share: NDArray[np.float64]


def translations(foreign: Rows, english: Rows, *, rounds: int = ROUNDS) -> Translations:
    """Learns which English tokens translate a foreign one.

    Each caption's rows in the new language stand beside those of its English caption; `rounds` are of expectation
    maximisation. The shares add up to 1 for each foreign row that occurs. Of very many captions an even sample is read,
    so the captions of two languages go in apart: an even sample of a table that alternates is one language alone.
    """
    pairs = _within(
        [(tuple(set(f)), tuple(set(e))) for f, e in zip(foreign, english, strict=True) if f and e]
    )
    if not pairs:
        empty = np.empty(0, dtype=np.int64)
        return Translations(empty, empty, np.empty(0))
    # One cell for each foreign and English token of a pair; -1 is the empty word, for what nothing else explains.
    sources = np.concatenate([np.tile(np.array((*f, -1)), len(e)) for f, e in pairs])
    targets = np.concatenate([np.repeat(np.array(e), len(f) + 1) for f, e in pairs])
    sizes = np.concatenate([np.full(len(e), len(f) + 1) for f, e in pairs])
    slot = np.repeat(np.arange(len(sizes)), sizes)
    span = int(targets.max()) + 1
    unique, cell = np.unique((sources + 1) * span + targets, return_inverse=True)
    source, target = unique // span - 1, unique % span
    likely: NDArray[np.float64] = np.ones(len(unique))
    for _ in range(rounds):
        weight = likely[cell]
        weight /= np.bincount(slot, weights=weight)[slot]
        counts = np.bincount(cell, weights=weight, minlength=len(unique))
        likely = counts / np.bincount(source + 1, weights=counts)[source + 1]
    known = source >= 0
    return Translations(source[known], target[known], likely[known])


def start_from_translations(table: Tensor, new_rows: NDArray[np.int64], found: Translations) -> int:
    """Starts the new rows that have translations at their weighted mean, in place; returns how many had any."""
    wanted = np.isin(found.foreign, new_rows)
    foreign, english, share = found.foreign[wanted], found.english[wanted], found.share[wanted]
    rows, place = np.unique(foreign, return_inverse=True)
    with torch.no_grad():
        sums = torch.zeros(len(rows), table.shape[1], dtype=table.dtype, device=table.device)
        for start in range(0, len(place), 1 << 16):
            part = slice(start, start + (1 << 16))
            weighted = (
                table[torch.from_numpy(english[part])] * torch.from_numpy(share[part]).to(table)[:, None]
            )
            sums.index_add_(0, torch.from_numpy(place[part]).to(table.device), weighted)
        table[torch.from_numpy(rows)] = sums
    return len(rows)


def _within(
    pairs: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    cells = sum((len(f) + 1) * len(e) for f, e in pairs)
    step = max(1, -(-cells // MOST_CELLS))
    return pairs[::step]
