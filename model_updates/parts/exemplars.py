"""Exemplars: which pairs of a chunk stand best for all of it.

A pair's feature is the direction of its unit image and text feature together, under the encoder that the update
leaves. *Herding* (Welling, 2009; iCaRL, CVPR 2017) takes pairs one by one so that the mean of those taken follows the
mean of all. *k-means* takes the pair nearest to each centre. Both hold parts of chunks in the ratio of the chunks'
sizes.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.encoder import Encoder
from model_updates.features import caption_features
from model_updates.pair_sets import UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.replaying import MemoryOptions, ReplayMemory
from model_updates.parts.two_towers import TwoTowerOptions
from model_updates.search_encoder import IMAGE_BATCH, unit
from model_updates.strategy import State, UpdateContext

CHUNKS = "chunks"  # the key of the counts among a strategy's facts
Shares = Callable[[Sequence[int], int], list[int]]
"""How many pairs of each chunk, the oldest first, a memory of some size holds, by how many pairs each chunk had."""
Ranked = Callable[[UpdateContext, int], Sequence[TrainingPair]]
"""Up to so many pairs of an update, those that stay longest first."""


@dataclass(frozen=True)
class ExemplarOptions(MemoryOptions, TwoTowerOptions):
    """The memory's options and those of two towers."""


class ChunkedMemory(ReplayMemory):
    """A memory that knows which chunk each of its pairs is of, and keeps a part of each.

    What is kept of a chunk is chosen once, at the end of its update, best first; when later chunks need room it is cut
    from its end. `shares` says how large the parts are, `ranked` what is kept of a chunk.
    """

    def __init__(self, options: MemoryOptions, shares: Shares, ranked: Ranked) -> None:
        super().__init__(options)
        self._shares, self._ranked = shares, ranked
        self._taught: list[int] = []
        self._held: list[int] = []

    def choose(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the next memory: what it had of each chunk, cut to the chunk's part, and a part of this one."""
        self._taught.append(len(context.pairs))
        shares = self._shares(self._taught, self.capacity(sum(self._taught)))
        kept, rest = [], list(self.kept)
        for held, share in zip(self._held, shares, strict=False):
            kept.append(rest[: min(held, share)])
            rest = rest[held:]
        kept.append(list(self._ranked(context, shares[-1])))
        self._held = [len(pairs) for pairs in kept]
        return [pair for pairs in kept for pair in pairs]

    def keep(self, places: Sequence[int]) -> None:
        """Leaves out all pairs but those at these places, and counts what is left of each chunk."""
        super().keep(places)
        ends = list(accumulate(self._held))
        left = Counter(bisect_right(ends, place) for place in places)
        self._held = [left[chunk] for chunk in range(len(ends))]

    def carried(self) -> State:
        own = super().carried()
        if not self._taught:
            return own
        return State(facts={**own.facts, CHUNKS: {"taught": self._taught, "held": self._held}})

    def carry(self, state: State) -> None:
        super().carry(state)
        counts = state.facts.get(CHUNKS, {"taught": [], "held": []})
        self._taught = [int(count) for count in counts["taught"]]
        self._held = [int(count) for count in counts["held"]]


KMEANS_ITERATIONS = 100
HERDING_TRIES = 1_000
"""More picks than wanted, for picks of the same pair again; what is then lacking comes in the order of closeness."""


Order = Callable[[Tensor, int, int], list[int]]
"""The positions of so many of the unit features (n, dim), best first, by a seed."""


class Exemplars(ChunkedMemory):
    """A memory of the pairs that stand best for their chunk, parts in the ratio of the chunks' sizes."""

    def __init__(self, options: MemoryOptions, order: Order) -> None:
        super().__init__(options, proportional, self._exemplars)
        self._order = order
        self._load: Callable[[str], Image.Image] | None = None

    def take(self, data: UpdateData) -> None:
        self._load = data.load_image

    def _exemplars(self, context: UpdateContext, count: int) -> Sequence[TrainingPair]:
        load = self._load or context.load_image
        if load is None:
            raise ValueError("exemplars are chosen by pictures, and there is nothing to load them with")
        features = pair_features(context.encoder, context.pairs, load)
        places = self._order(features, min(count, len(features)), context.seed)
        return [context.pairs[place] for place in places]


def proportional(counts: Sequence[int], size: int) -> list[int]:
    """Returns parts of a size in the ratio of counts, none above its count, by the largest remainders."""
    total = sum(counts)
    if size >= total:
        return list(counts)
    parts = [count * size // total for count in counts]
    by_remainder = sorted(range(len(counts)), key=lambda n: -(counts[n] * size % total))
    for place in by_remainder[: size - sum(parts)]:
        parts[place] += 1
    return parts


def herding_order(features: Tensor, count: int, seed: int = 0) -> list[int]:
    """Returns the positions of so many exemplars in the order in which herding takes them.

    ``w <- mu``; again and again: take the largest ``w . x``, ``w <- w + mu - x``. A pair that is picked again moves w
    and is not taken twice.

    Features are (n, dim) unit rows, and `count` is at most n. Nothing is drawn, so that the seed is of no use.
    """
    rows = features.double()
    mean = rows.mean(dim=0)
    direction = mean.clone()
    taken: dict[int, None] = {}
    for _ in range(count + HERDING_TRIES):
        if len(taken) == count:
            break
        best = int((rows @ direction).argmax())
        taken.setdefault(best)
        direction = direction + mean - rows[best]
    left = [place for place in (rows @ direction).argsort(descending=True).tolist() if place not in taken]
    return [*taken, *left[: count - len(taken)]]


def kmeans_order(features: Tensor, count: int, seed: int) -> list[int]:
    """Returns for each of so many centres the nearest pair that no other has, those of the largest clusters first.

    Features are (n, dim) unit rows, and `count` is at most n; the seed is of the pairs that the centres start from.
    """
    if not count:
        return []
    rows = features.double()
    start = torch.randperm(len(rows), generator=torch.Generator().manual_seed(seed))[:count]
    centres, nearest = rows[start], torch.full((len(rows),), -1)
    for _ in range(KMEANS_ITERATIONS):
        before, nearest = nearest, torch.cdist(rows, centres).argmin(dim=1)
        if torch.equal(before, nearest):
            break
        sizes = torch.bincount(nearest, minlength=count)
        sums = torch.zeros_like(centres).index_add_(0, nearest, rows)
        centres = torch.where(sizes[:, None] > 0, sums / sizes.clamp(min=1)[:, None], centres)
    distances = torch.cdist(centres, rows)
    taken: list[int] = []
    for centre in torch.bincount(nearest, minlength=count).argsort(descending=True, stable=True).tolist():
        taken.append(int(distances[centre].argmin()))
        distances[:, taken[-1]] = torch.inf
    return taken


def pair_features(
    encoder: Encoder, pairs: Sequence[TrainingPair], load: Callable[[str], Image.Image]
) -> Tensor:
    """Returns (n, dim) unit rows: the direction of unit image and text feature together."""
    features = torch.from_numpy(unit(caption_features(encoder, pairs)))
    for domain in sorted({pair.domain for pair in pairs}):
        mine = [n for n, pair in enumerate(pairs) if pair.domain == domain]
        places = {image_id: k for k, image_id in enumerate(dict.fromkeys(pairs[n].image_id for n in mine))}
        ids = list(places)
        rows = np.concatenate(
            [
                encoder.encode_images([load(image_id) for image_id in ids[at : at + IMAGE_BATCH]], domain)
                for at in range(0, len(ids), IMAGE_BATCH)
            ]
        )
        features[mine] += torch.from_numpy(rows[[places[pairs[n].image_id] for n in mine]])
    return normalize(features, dim=-1)
