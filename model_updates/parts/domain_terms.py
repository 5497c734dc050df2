"""The losses that teach a domain's adapter: learn the new pictures, be seen beside the old ones, displace none.

Features of texts and of old pictures are frozen, so that a gradient reaches the new pictures alone. Both terms are
cross-entropies over cosines times an inverse temperature s:

*contrast*: each new picture finds its text among all texts of the chunk, and each text its picture in the batch.
*visibility*: each new text finds its picture among the batch's pictures *and* old pictures with other captions. Without
it a new domain is ordered within itself and stays invisible in a gallery of all.

Where no picture has two texts and no text two pictures, *contrast* is CLIP's loss with more negatives. *Visibility* is
ours; `docs/log.md` has what it is worth. So is *displacement*, what new pictures may not take from old texts
(`HeldTexts`).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from model_updates.losses import soft_cross_entropy
from model_updates.pair_sets import PairSet
from model_updates.pairs import TrainingPair

MOST_TEXTS = 4096  # texts of the chunk that a picture is contrasted with


@dataclass(frozen=True)
class Known:
    """Pairs with frozen unit features."""

    texts: Tensor  # (n, dim) unit text features
    pictures: Tensor  # (n, dim) unit picture features as they are before this update
    caption: Tensor  # (n,) int64, equal where two pairs say the same
    picture: Tensor  # (n,) int64, equal where two pairs show the same picture

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, chosen: Tensor) -> Known:
        """Returns some pairs."""
        return Known(self.texts[chosen], self.pictures[chosen], self.caption[chosen], self.picture[chosen])

    def to(self, device: torch.device) -> Known:
        """Returns the pairs on a device."""
        return Known(
            *(tensor.to(device) for tensor in (self.texts, self.pictures, self.caption, self.picture))
        )


def known(pairs: PairSet, captions: Tensor) -> Known:
    """Returns a set's frozen features as unit rows.

    Raises:
        ValueError: the set was gathered without text features.
    """
    if pairs.text_features is None:
        raise ValueError("a domain is taught with text features; the strategy must ask for them")
    return Known(
        normalize(pairs.text_features, dim=-1),
        normalize(pairs.image_features, dim=-1),
        captions,
        pairs.image_index,
    )


def joined(parts: Sequence[Known]) -> Known:
    """Returns the pairs of all parts, one after another."""
    return Known(
        torch.cat([part.texts for part in parts]),
        torch.cat([part.pictures for part in parts]),
        torch.cat([part.caption for part in parts]),
        torch.cat([part.picture for part in parts]),
    )


def caption_numbers(*sets: Sequence[TrainingPair]) -> list[Tensor]:
    """Returns a number for each pair of some sets, equal where they say the same: by the English caption if known."""
    numbers: dict[str, int] = {}
    return [
        torch.tensor(
            [
                numbers.setdefault(" ".join((p.english or p.text).casefold().split()), len(numbers))
                for p in pairs
            ],
            dtype=torch.int64,
        )
        for pairs in sets
    ]


def contrast(pictures: Tensor, batch: Known, taught: Known, scale: Tensor | float) -> Tensor:
    """Returns the mean of picture → text among `taught` and text → picture in the batch.

    Pictures (b, dim) are unit features of the batch's, with gradients; the batch's own texts are among `taught`.
    """
    found = soft_cross_entropy(scale * pictures @ taught.texts.T, belongs(batch, taught))
    return (found + soft_cross_entropy(scale * batch.texts @ pictures.T, belongs(batch, batch))) / 2


def visibility(pictures: Tensor, batch: Known, old: Known, scale: Tensor | float) -> Tensor:
    """Returns text → picture over the batch's pictures and the old pictures that have other captions."""
    new = scale * batch.texts @ pictures.T
    others = scale * batch.texts @ old.pictures.T
    same = batch.caption[:, None] == old.caption[None, :]
    logits = torch.cat([new, others.masked_fill(same, -torch.inf)], dim=1)
    right = torch.cat([belongs(batch, batch), torch.zeros_like(same)], dim=1)
    return soft_cross_entropy(logits, right)


def belongs(rows: Known, columns: Known) -> Tensor:
    """Returns (r, c) bool: same picture, or the same caption."""
    same_picture = rows.picture[:, None] == columns.picture[None, :]
    return same_picture | (rows.caption[:, None] == columns.caption[None, :])


FOUND = 10  # a caption finds its picture when it is among so many


@dataclass(frozen=True)
class HeldTexts:
    """Old pairs whose texts keep what they find.

    For an old text t, with P = sum exp(s cos(t, picture)) over the old pictures and N the same sum over the new
    pictures that have other captions, the loss is

        -log(P / (P + N)),    N estimated from a batch of b of n new pictures as n / b times the batch's sum.

    So new pictures may take nothing from what a text finds, whatever that is: a text that finds its own picture keeps
    it at the first place, and one that finds another instead forbids new pictures no more than that one does. To hold
    every text to its *own* picture would push new pictures away from words that find nothing yet: a third domain then
    learned nothing (docs/log.md). Without n / b a batch that displaces nothing says too little of a gallery that is ten
    times as large.

    A head on cached features has less room to step aside than a tower has. There only texts that find their picture
    among ten are held, each to its own picture, against the batch alone; photographs were measured so.
    """

    old: Known  # (n pairs)
    place: Tensor  # (n,) the logit that new pictures stand against
    weights: Tensor | None = None  # (n,) how much each text counts; they add up to 1. None: all the same
    crowd: int = 0  # how many new pictures a batch stands for; 0: itself alone

    def __len__(self) -> int:
        return len(self.old)

    def displacement(self, pictures: Tensor, batch: Known, scale: Tensor | float) -> Tensor:
        """Returns the mean of -log of the share that the new pictures leave each old text.

        A new picture with the same caption is as right as the old one: it displaces nothing.

        Pictures (b, dim) are unit features of the batch's, with gradients; `scale` is the inverse temperature that
        `place` was made with.
        """
        same = self.old.caption[:, None] == batch.caption[None, :]
        new = (self.old.texts @ pictures.T).masked_fill(same, -torch.inf)
        times = max(1.0, self.crowd / len(pictures))
        logits = torch.cat([self.place[:, None], scale * new + math.log(times)], dim=1)
        kept = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
        if self.weights is None:
            return cross_entropy(logits, kept)
        return (self.weights * cross_entropy(logits, kept, reduction="none")).sum()


def all_held(old: Known, domains: Sequence[str], scale: Tensor | float, *, crowd: int) -> HeldTexts:
    """Returns all old pairs, held to what their texts find among `crowd` new pictures; every domain weighs as much."""
    pictures = old.pictures[first_of_each(old.picture)]
    place = torch.logsumexp(scale * old.texts @ pictures.T, dim=1) if len(old) else old.texts.new_zeros(0)
    return HeldTexts(old, place, even_weights(domains).to(place.device), crowd)


def found_held(old: Known, scale: Tensor | float) -> HeldTexts:
    """Returns the pairs whose text finds its picture, held to that picture."""
    found = old.rows(still_found(old))
    return HeldTexts(found, scale * (found.texts * found.pictures).sum(dim=1))


def still_found(old: Known) -> Tensor:
    """Returns the rows (f,) whose caption has its own picture among the ten nearest of the old pictures.

    To keep the order of a domain that nobody finds yet, new pictures would have to avoid words that are theirs as well:
    on photographs beside untaught drawn objects that cost 5 points.
    """
    first = first_of_each(old.picture)
    own = (old.texts * old.pictures).sum(dim=1, keepdim=True)
    nearer = (old.texts @ old.pictures[first].T > own) & (old.picture[:, None] != old.picture[first][None, :])
    return (nearer.sum(dim=1) < FOUND).nonzero()[:, 0]


def first_of_each(picture: Tensor) -> Tensor:
    """Returns (p,) the first row of each of p pictures, in the order of their numbers."""
    numbers, number = picture.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    rows = torch.arange(len(picture), device=picture.device)
    return torch.full_like(numbers, len(picture)).scatter_reduce(0, number, rows, "amin")


def even_weights(domains: Sequence[str]) -> Tensor:
    """Returns (n,) float32 weights that add up to 1, as much for each domain, however few pairs it has."""
    counts = Counter(domains)
    return torch.tensor([1.0 / (len(counts) * counts[domain]) for domain in domains])
