"""The loss that keeps a new domain's pictures out of the way of queries that are not theirs. Ours.

For an old text t, with P = sum exp(s cos(t, picture)) over the old pictures and N the same sum over the new pictures
that have other captions, the loss is

    -log(P / (P + N)),    N estimated from a batch of b of n new pictures as n / b times the batch's sum.

So new pictures may take nothing from what a text finds, whatever that is: a text that finds its own picture keeps it at
the first place, and one that finds another instead forbids new pictures no more than that one does. To hold every text
to its *own* picture would push new pictures away from words that find nothing yet: a third domain then learned nothing
(docs/log.md). Without n / b a batch that displaces nothing says too little of a gallery that is ten times as large.

A head on cached features has less room to step aside than a tower has. There only texts that find their picture among
ten are held, each to its own picture, against the batch alone; photographs were measured so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from model_updates.parts.domain_memory import even_weights
from model_updates.parts.domain_terms import Known

FOUND = 10  # a caption finds its picture when it is among so many


@dataclass(frozen=True)
class HeldTexts:
    """Old pairs whose texts keep what they find."""

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
    """Returns all old pairs, held to what their texts find.

    Every domain weighs as much, however few pairs it has; `crowd` is how many new pictures there are.
    """
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
