"""The losses that teach a domain's adapter: learn the new pictures, be seen beside the old ones, displace none.

Features of texts and of old pictures are frozen, so that a gradient reaches the new pictures alone. All three terms are
cross-entropies over cosines times the model's own scale s:

*contrast*: each new picture finds its text among all texts of the chunk, and each text its picture in the batch.
*visibility*: each new text finds its picture among the batch's pictures *and* old pictures with other captions. Without
it a new domain is ordered within itself and stays invisible in a gallery of all.
*displacement*: each old text that finds its picture prefers it to every new one, so that the new pictures step out of
the way of queries that are not theirs.

Where no picture has two texts and no text two pictures, *contrast* is CLIP's loss with more negatives. The other two
are ours; `docs/log.md` has what each is worth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, normalize

from model_updates.losses import soft_cross_entropy
from model_updates.pairs import PairSet, TrainingPair

MOST_TEXTS = 4096  # texts of the chunk that a picture is contrasted with
FOUND = 10  # a caption finds its picture when it is among so many


@dataclass(frozen=True)
class Known:
    """Pairs with frozen unit features.

    Attributes:
        texts: (n, dim) unit text features.
        pictures: (n, dim) unit picture features as they are before this update.
        caption: (n,) int64, equal where two pairs say the same.
        picture: (n,) int64, equal where two pairs show the same picture.
    """

    texts: Tensor
    pictures: Tensor
    caption: Tensor
    picture: Tensor

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

    Args:
        pictures: (b, dim) unit features of the batch's pictures, with gradients.
        batch: the batch's pairs.
        taught: the texts to tell apart; the batch's own are among them.
        scale: the inverse temperature.
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


def displacement(
    pictures: Tensor, batch: Known, old: Known, scale: Tensor | float, weights: Tensor | None = None
) -> Tensor:
    """Returns old text → its own old picture against the batch's new pictures that have other captions.

    A new picture with the same caption is as right as the old one: it displaces nothing.

    Args:
        pictures: (b, dim) unit features of the batch's pictures, with gradients.
        batch: the batch's pairs.
        old: the pairs that nothing new may displace.
        scale: the inverse temperature.
        weights: (n,) how much each old pair counts; they add up to 1. None: all the same.
    """
    own = (old.texts * old.pictures).sum(dim=1, keepdim=True)
    same = old.caption[:, None] == batch.caption[None, :]
    new = (old.texts @ pictures.T).masked_fill(same, -torch.inf)
    logits = scale * torch.cat([own, new], dim=1)
    own_first = torch.zeros(len(logits), dtype=torch.int64, device=logits.device)
    if weights is None:
        return cross_entropy(logits, own_first)
    return (weights * cross_entropy(logits, own_first, reduction="none")).sum()


def still_found(old: Known) -> Tensor:
    """Returns the rows (f,) whose caption has its own picture among the ten nearest of the old pictures.

    Only what people find can be displaced. To keep the order of a domain that nobody finds yet, new pictures would
    have to avoid words that are theirs as well: on photographs beside untaught drawn objects that cost 5 points.
    """
    _, number = old.picture.unique(return_inverse=True)  # type: ignore[no-untyped-call]
    places = torch.arange(len(old), device=number.device)
    first = torch.zeros(int(number.max()) + 1 if len(old) else 0, dtype=torch.int64, device=number.device)
    first[number.flip(0)] = places.flip(0)
    own = (old.texts * old.pictures).sum(dim=1, keepdim=True)
    nearer = (old.texts @ old.pictures[first].T > own) & (old.picture[:, None] != old.picture[first][None, :])
    return (nearer.sum(dim=1) < FOUND).nonzero()[:, 0]


def belongs(rows: Known, columns: Known) -> Tensor:
    """Returns (r, c) bool: same picture, or the same caption."""
    same_picture = rows.picture[:, None] == columns.picture[None, :]
    return same_picture | (rows.caption[:, None] == columns.caption[None, :])
