"""RanPAC: one head on random features, from sums that add up; how far it is held back is chosen on pairs apart.

Idea: the sum of the features' products and the sum of features with targets, one prototype a class in the paper, are
all that ridge regression needs. They add up over chunks, so that nothing is forgotten and no old pair is kept. A fifth
of the pictures is summed apart and tells which strength serves best.

Formula: with random features h and targets t, over all pairs so far,

    W = (G + strength I)^-1 C,   G = sum h h',   C = sum h t'   (both centred: `parts.ridge`)

and the strength is the power of ten by which W of four fifths errs least on the fifth.
Source: McDonnell et al., *RanPAC: Random Projections and Pre-trained Models for Continual Learning*, NeurIPS 2023,
equations 5 to 7. Differences: targets are the captions' vectors in each space of the texts instead of classes; the
fifth is chosen by the pictures' names and its sums are kept, too, so that the order of chunks does not matter (in the
paper each task chooses by its own pairs); the paper's training of adapters on the first task is left out; its 10,000
features are 2,000 here; a sample of what the encoder knows stands beside the first chunk.

Kept between updates: the sums of each space of the texts, those of the fifth beside them; 64 MB at the default width.
"""

import zlib
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from model_updates.pair_sets import PairSet
from model_updates.parts.random_head import OneHead, RandomHead, RandomHeadOptions
from model_updates.parts.ridge import Fit, Sums, by_name, captioned_in, named

STRENGTHS = tuple(10.0**power for power in range(7))
_APART = 5  # every so many-th picture


@dataclass(frozen=True)
class RanpacOptions(RandomHeadOptions):
    """Options of `ranpac`."""


class Ranpac(OneHead):
    """Ridge regression over sums of all chunks."""

    name = "ranpac"
    summary = (
        "Solves one head on random features for all pictures from sums over all chunks, in any order, without an old "
        "pair; every picture moves."
    )
    paper = "RanPAC, NeurIPS 2023"
    keeps = "sums of the features' products and of features with texts"
    options: RanpacOptions

    def learn(self, head: RandomHead, pairs: PairSet, kept: Mapping[str, Tensor]) -> dict[str, Tensor]:
        sums = by_name(kept)
        for apart in (False, True):
            rows = [n for n, pair in enumerate(pairs.pairs) if is_apart(pair.image_id) == apart]
            for n, said in enumerate(captioned_in(pairs.select(rows), head.widths, head.expanded)):
                name, own = f"{n}/{'apart' if apart else 'taught'}", Sums.of(*said)
                sums[name] = sums[name] + own if name in sums else own
        fits = [solved(sums[f"{n}/taught"], sums[f"{n}/apart"]) for n in range(len(head.widths))]
        head.weight.copy_(torch.cat([fit.weight for fit in fits], dim=1))
        head.bias.copy_(torch.cat([fit.bias for fit in fits]))
        return named(sums)


def is_apart(image_id: str) -> bool:
    """Whether a picture is of the fifth that chooses the strength."""
    return zlib.crc32(image_id.encode()) % _APART == 0


def solved(taught: Sums, apart: Sums) -> Fit:
    """Returns the regression of all pairs, by the strength with which that of the taught ones errs least apart."""
    tried = zip(STRENGTHS, taught.solved_for(STRENGTHS), strict=True)
    best = min(tried, key=lambda one: missed(one[1], apart))[0]
    return (taught + apart).solved(best)


def missed(fit: Fit, on: Sums) -> float:
    """Returns the squared error of a fit over the pairs behind some sums."""
    weight, bias = fit.weight.double(), fit.bias.double()
    squares = (weight * (on.gram @ weight)).sum() + on.count * bias @ bias + 2 * (on.features @ weight) @ bias
    return float(squares - 2 * (weight * on.cross).sum() - 2 * bias @ on.targets + on.spread.trace())
