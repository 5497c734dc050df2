"""The losses that strategies share: pure functions of tensors, shapes stated, no state and no model inside.

Similarities are cosines (`a @ b.T` of unit rows) and come without the scale; `scale` is
`s = exp(logit_scale)`, a scalar tensor when it is learned. Every function returns a scalar tensor.
"""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

LARGEST_LOG_SCALE = math.log(100)
"""Where CLIP clamps its learned inverse temperature, in log space (Radford et al., 2021, 2.5)."""


def info_nce(similarities: Tensor, scale: Tensor | float) -> Tensor:
    """Returns CLIP's contrastive loss: both directions' cross-entropies, averaged, the pair on the diagonal.

    Similarities are `(b, b)` cosines, images by texts; row i and column i belong together.

    Raises:
        ValueError: when the matrix is not square (use `multi_positive_info_nce` and name the images then).
    """
    rows, columns = similarities.shape
    if rows != columns:
        raise ValueError(
            f"info_nce pairs row i with column i, but was given {rows} rows and {columns} columns. "
            "Use multi_positive_info_nce and say which image each row and column belongs to."
        )
    logits = scale * similarities
    right = torch.arange(rows, device=similarities.device)
    return (F.cross_entropy(logits, right) + F.cross_entropy(logits.T, right)) / 2


def multi_positive_info_nce(
    similarities: Tensor, scale: Tensor | float, image_index_rows: Tensor, image_index_columns: Tensor
) -> Tensor:
    """Returns InfoNCE with soft targets, so that two captions of one image are not each other's negatives.

    `T_ij = 1[img_i = img_j] / sum_j 1[img_i = img_j]`, loss `-sum_j T_ij log softmax(sS)_ij`, averaged over
    rows, then over both directions. A row whose image is in no column adds nothing to the sum. With each
    image once it equals `info_nce`.

    Similarities are `(r, c)` cosines; the indices, `(r,)` and `(c,)` integers, are equal where the image is the same.
    """
    same_image = (image_index_rows[:, None] == image_index_columns[None, :]).to(similarities.dtype)
    logits = scale * similarities
    return (soft_cross_entropy(logits, same_image) + soft_cross_entropy(logits.T, same_image.T)) / 2


def soft_cross_entropy(logits: Tensor, right: Tensor) -> Tensor:
    """Returns the cross-entropy of rows against uniform targets over their right columns, averaged over rows.

    Logits are `(r, c)`, already scaled; a wrong column may be minus infinity, which leaves it out. `right` is `(r, c)`
    bool or 0 and 1; a row without a right column counts as 0.
    """
    targets = right.to(logits.dtype)
    targets = targets / targets.sum(dim=1, keepdim=True).clamp(min=1.0)
    # where(), not a product: 0 * -inf is NaN in the loss as in the gradient.
    shares = torch.where(targets > 0, targets * F.log_softmax(logits, dim=1), 0.0)
    return -shares.sum(dim=1).mean()


def element_mse(a: Tensor, b: Tensor, mask: Tensor | None = None) -> Tensor:
    """Returns the mean of `(a - b)**2` over all elements of the chosen rows.

    This is the form that produced CLL-CLIP's tables; the paper's printed form, half the squared distance per
    row, is `dim / 2` times larger.

    Both are `(b, dim)` raw features; `mask` `(b,)` bool chooses the rows, None all. Without a single row loss and
    gradient are 0.
    """
    if a.shape != b.shape:
        raise ValueError(
            f"element_mse compares features of one shape; found {tuple(a.shape)} and {tuple(b.shape)}."
        )
    if mask is None:
        return F.mse_loss(a, b)
    # where() before the square, not a product after it: a masked row may hold NaN (there was nothing to
    # encode), and 0 * NaN is NaN in the loss as in the gradient.
    difference = torch.where(mask[:, None], a - b, 0.0)
    return difference.square().mean(dim=1).sum() / mask.sum().clamp(min=1)


def kl_rows(teacher_logits: Tensor, student_logits: Tensor) -> Tensor:
    """Returns the mean `KL(teacher || student)` of rows of scaled `(r, c)` logits; no gradient into the teacher."""
    teacher = F.log_softmax(teacher_logits.detach(), dim=1)
    return F.kl_div(F.log_softmax(student_logits, dim=1), teacher, reduction="batchmean", log_target=True)


def ckc(h_stack: Tensor, z_stack: Tensor, scale: Tensor | float) -> Tensor:
    """Returns C-CLIP's contrastive knowledge consolidation, eq. (5) with the batch stacked along rows.

    `H` holds the projected features of the model in training, images first, then texts; `Z` the old model's
    raw features in the same order. `½[CE(s·HZᵀ, arange) + CE(s·ZHᵀ, arange)]`: a feature's positive is its
    own old self, and the paired item of the other modality is a negative. The printed sum, without the half,
    is twice this.

    Both are `(2b, dim)` and normalised here; no gradient flows into `Z`.
    """
    h = F.normalize(h_stack, dim=1)
    z = F.normalize(z_stack.detach(), dim=1)
    return info_nce(h @ z.T, scale)
