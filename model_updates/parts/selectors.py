"""Whose input is this? One autoencoder for each update: the one that rebuilds an input's feature best knows it best."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

STEPS = 300
RATE = 1e-2
HELD_OUT = 5  # one feature of so many calibrates and does not train
NOBODY = -1


class Selector(nn.Module):
    """An autoencoder of unit features with one hidden layer, and the error up to which an input counts as its own.

    Attributes:
        threshold: (), of the mean squared error; features are scaled so that an entry is 1 in the mean square.
    """

    def __init__(self, dim: int, hidden: int) -> None:
        super().__init__()
        self.squeeze, self.restore = nn.Linear(dim, hidden), nn.Linear(hidden, dim)
        self.threshold: Tensor
        self.register_buffer("threshold", torch.zeros(()))

    def errors(self, features: Tensor) -> Tensor:
        """Returns the (n,) mean squared errors of raw features (n, dim)."""
        given = normalize(features.float(), dim=-1) * math.sqrt(features.shape[1])
        rebuilt: Tensor = self.restore(self.squeeze(given).relu())
        return (rebuilt - given).square().mean(dim=1)

    def fit(self, features: Tensor, *, share: float, seed: int) -> None:
        """Learns to rebuild features, and sets the threshold where a share of held-out ones lies below it.

        Features (n, dim) are raw, of an update's pictures or texts, at least 2. The seed is of the start and of what is
        held out.
        """
        generator = torch.Generator().manual_seed(seed)
        for layer in (self.squeeze, self.restore):
            bound = 1 / math.sqrt(layer.in_features)
            with torch.no_grad():
                for parameter in layer.parameters():
                    drawn = torch.rand(parameter.shape, generator=generator) * 2 - 1
                    parameter.copy_(bound * drawn)
        order = torch.randperm(len(features), generator=generator).to(features.device)
        held = max(1, len(features) // HELD_OUT)
        self._descend(features[order[held:]])
        with torch.no_grad():
            self.threshold.copy_(self.errors(features[order[:held]]).quantile(share))

    def _descend(self, features: Tensor) -> None:
        self.requires_grad_(True)
        optimizer = torch.optim.Adam(self.parameters(), lr=RATE)
        with torch.enable_grad():
            for _ in range(STEPS):
                optimizer.zero_grad(set_to_none=True)
                self.errors(features).mean().backward()  # type: ignore[no-untyped-call]
                optimizer.step()
        self.requires_grad_(False)
        for parameter in self.parameters():
            parameter.grad = None


def selected(selectors: Sequence[nn.Module], features: Tensor) -> Tensor:
    """Returns for each feature (n, dim) the number of the selector that knows it best, `NOBODY` where none does."""
    if not selectors:
        return torch.full((len(features),), NOBODY, dtype=torch.int64, device=features.device)
    known = [selector for selector in selectors if isinstance(selector, Selector)]
    errors = torch.stack([selector.errors(features) for selector in known])
    least, best = errors.min(dim=0)
    limits = torch.stack([selector.threshold for selector in known])[best]
    return torch.where(least <= limits, best, NOBODY)
