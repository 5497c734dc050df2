"""Topology preservation: how the pairs of a batch lie to each other stays as it was before the update.

The similarities of each row to all others, softened, are a distribution; the new model's must stay close to the old
one's (CTP, ICCV 2023, eq. 6 to 9). Features may turn and move together at no cost. The paper prints cross-entropies;
KL, as in its code, has the same gradient and is zero where nothing changed.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.losses import kl_rows

SUPPRESSED = -1000.0
"""What stands in the place of a row's similarity to itself, before the temperature."""


def cross_modal_topology(
    new: tuple[Tensor, Tensor], old: tuple[Tensor, Tensor], scale: Tensor | float
) -> Tensor:
    """Returns ``½ [KL(old i2t, new i2t) + KL(old t2i, new t2i)]`` of (b, dim) features, mean over rows (eq. 7)."""
    before, now = scale * _cosines(*old).detach(), scale * _cosines(*new)
    return (kl_rows(before, now) + kl_rows(before.T, now.T)) / 2


def same_modal_topology(
    new: tuple[Tensor, Tensor],
    old: tuple[Tensor, Tensor],
    scale: Tensor | float,
    *,
    image_index: Tensor | None = None,
    suppress: bool = True,
) -> Tensor:
    """Returns ``½ [KL over image to image + KL over text to text]``, mean over rows (eq. 9).

    A row is as similar to itself as can be under any model, and would drown all others: its place counts for nothing.

    Features are as above. `image_index` (b,) is equal where rows show the same picture: their image features are equal
    as well. `suppress=False` leaves the diagonal as it is, for the paper's ablation.
    """
    diagonal = torch.eye(len(new[0]), dtype=torch.bool, device=new[0].device)
    equal_images = diagonal if image_index is None else image_index[:, None] == image_index[None, :]
    places = (equal_images, diagonal) if suppress else (None, None)
    parts = [
        row_divergence(_cosines(before, before), _cosines(now, now), scale, without)
        for before, now, without in zip(old, new, places, strict=True)
    ]
    return (parts[0] + parts[1]) / 2


def row_divergence(before: Tensor, now: Tensor, scale: Tensor | float, suppressed: Tensor | None) -> Tensor:
    """Returns the KL between rows of two (b, b) similarity matrices, (b, b) bool places left out of both."""
    if suppressed is not None:
        before, now = (rows.masked_fill(suppressed, SUPPRESSED) for rows in (before, now))
    return kl_rows(scale * before, scale * now)


def _cosines(rows: Tensor, columns: Tensor) -> Tensor:
    return normalize(rows, dim=-1) @ normalize(columns, dim=-1).T
