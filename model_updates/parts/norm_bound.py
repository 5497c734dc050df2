"""A bound on the length of weight matrices: training from nothing, step by step, makes them ever longer.

Of each matrix or kernel W that grows beyond ``gamma`` times its length at the start, the length is brought back and
the direction kept (IncCLIP, ECCV 2022, 3.3). Biases, norms, the temperature and embeddings are left alone.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

BOUNDED_FROM = 2  # dimensions of what counts as a matrix or kernel


def lengths(model: nn.Module) -> dict[str, float]:
    """Returns the Frobenius norm of each weight matrix and kernel, by name."""
    return {
        name: float(parameter.detach().norm())
        for name, parameter in model.named_parameters()
        if parameter.ndim >= BOUNDED_FROM and "embedding" not in name
    }


def hold_lengths(parameters: Mapping[str, Tensor], bounds: Mapping[str, float]) -> None:
    """Shortens parameters that are longer than their bound to it, in place."""
    with torch.no_grad():
        for name, bound in bounds.items():
            length = float(parameters[name].norm())
            if length > bound:
                parameters[name].mul_(bound / length)
