"""The geodesic flow between the subspaces that old and new features span, and similarity along it.

Two sets of features of the same inputs span two subspaces; the geodesic between them on the Grassmannian is a path of
subspaces from one to the other. ``G``, the integral of the projections on it, measures features along the whole path
(Simon et al., CVPR 2021, after Gong et al., CVPR 2012).

With P the old and Q the new basis (d x n), R of the complement of P: ``P^T Q = U1 cos(theta) V^T`` and ``R^T Q = -U2
sin(theta) V^T``. The path is ``Phi(t) = P U1 cos(t theta) - R U2 sin(t theta)``, and ``G`` the integral of ``Phi
Phi^T`` from 0 to 1. R itself is not needed: ``R U2 sin(theta) = P P^T Q V - Q V``.
"""

import torch
from torch import Tensor
from torch.nn.functional import normalize

SMALLEST_ANGLE = 1e-6
"""Below it a direction has not turned: the limits of the factors are 1, 0 and 0."""
SMALLEST_LENGTH = 1e-8


def geodesic_loss(new: Tensor, old: Tensor) -> Tensor:
    """Returns the mean ``1 - z^T G z' / sqrt(z^T G z * z'^T G z')`` of (b, d) rows, z old, z' new; no gradient to G."""
    now, before = normalize(new, dim=-1), normalize(old.detach(), dim=-1)
    seen = geodesic_kernel(now.detach(), before)
    return (1 - cosine_under(seen, before, now)).mean()


def geodesic_kernel(now: Tensor, before: Tensor) -> Tensor:
    """Returns G, (d, d), symmetric and positive semi-definite, of (b, d) unit rows."""
    rank = max(1, min(now.shape) - 2)
    old_basis, new_basis = _basis(before, rank), _basis(now, rank)
    left, cosines, right = torch.linalg.svd(old_basis.T @ new_basis)
    start, end = old_basis @ left, new_basis @ right.T  # matched directions of both subspaces
    turned = old_basis @ (old_basis.T @ end) - end
    sines = turned.norm(dim=0)
    angles = torch.atan2(sines, cosines)
    moved = sines > SMALLEST_ANGLE
    aside = torch.where(moved, turned / sines.clamp(min=SMALLEST_ANGLE), 0.0)
    first, mixed, second = flow_factors(angles)
    crossed = (start * mixed) @ aside.T
    kernel: Tensor = (start * first) @ start.T + crossed + crossed.T + (aside * second) @ aside.T
    return kernel


def flow_factors(angles: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Returns the integrals of cos^2, -cos sin and sin^2 of ``t theta`` over t from 0 to 1."""
    double = (2 * angles).clamp(min=SMALLEST_ANGLE)
    still = angles < SMALLEST_ANGLE
    sine, cosine = double.sin() / double, (double.cos() - 1) / double
    first, mixed, second = (1 + sine) / 2, cosine / 2, (1 - sine) / 2
    return first.where(~still, 1.0), mixed.where(~still, 0.0), second.where(~still, 0.0)


def cosine_under(kernel: Tensor, one: Tensor, other: Tensor) -> Tensor:
    """Returns the cosines of rows under a kernel, (b,)."""
    one_seen, other_seen = one @ kernel, other @ kernel
    lengths = (one_seen * one).sum(dim=1) * (other_seen * other).sum(dim=1)
    return (one_seen * other).sum(dim=1) / lengths.clamp(min=SMALLEST_LENGTH).sqrt()


def _basis(rows: Tensor, rank: int) -> Tensor:
    """Returns (d, rank): the directions in which rows (b, d) differ most from their mean."""
    centred = (rows - rows.mean(dim=0)).T
    left: Tensor = torch.linalg.svd(centred, full_matrices=False).U
    return left[:, :rank]
