"""The losses that teach a domain's adapter: learn the new pictures, and be seen beside the old ones.

Features of texts and of old pictures are frozen, so that a gradient reaches the new pictures alone. Both terms are
cross-entropies over cosines times an inverse temperature s:

*contrast*: each new picture finds its text among all texts of the chunk, and each text its picture in the batch.
*visibility*: each new text finds its picture among the batch's pictures *and* old pictures with other captions. Without
it a new domain is ordered within itself and stays invisible in a gallery of all.

Where no picture has two texts and no text two pictures, *contrast* is CLIP's loss with more negatives. *Visibility* is
ours; `docs/log.md` has what it is worth. What new pictures may not displace: `parts.domain_displacement`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.losses import soft_cross_entropy
from model_updates.pairs import PairSet, TrainingPair

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
