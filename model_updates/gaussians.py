"""Which domain a picture looks like: means of domains in a space where they all are spheres, and how far each reaches.

Fitted by `model_updates.parts.router`, which says how and why; here is what a search needs of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_updates.routes import BASE

Points = NDArray[np.float64]


@dataclass(frozen=True)
class Gaussians:
    """Guesses the routes of pictures by their trunk features."""

    whitening: Points  # (trunk_dim, k)
    means: Points  # (domains, k)
    radii: Points  # (domains,) squared
    margin: float  # log-odds
    domains: Sequence[str]
    routes: Sequence[str]  # those of the domains that have a route

    def nearest(self, trunk: NDArray[np.float32]) -> list[str]:
        """Returns the domain with a route that each row of (n, trunk_dim) base trunk features is nearest to."""
        places = [list(self.domains).index(route) for route in self.routes]
        return [self.routes[n] for n in self._distances(trunk)[:, places].argmin(axis=1)]

    def guess(self, trunk: NDArray[np.float32]) -> list[str]:
        """Returns a domain for each row of (n, trunk_dim) base trunk features, `BASE` where none is likely."""
        has_route = np.isin(self.domains, self.routes)
        taken = chosen(self._distances(trunk), self.radii, self.margin, has_route)
        return [BASE if n < 0 else self.domains[n] for n in taken]

    def _distances(self, trunk: NDArray[np.float32]) -> Points:
        return distances_to(trunk.astype(np.float64) @ self.whitening, self.means)


def distances_to(whitened: Points, means: Points) -> Points:
    """Returns squared distances, (n, domains)."""
    return np.asarray(
        (whitened**2).sum(axis=1, keepdims=True) - 2 * whitened @ means.T + (means**2).sum(axis=1)
    )


def odds(distances: Points, has_route: NDArray[np.bool_]) -> Points:
    """Returns the log-odds of the nearest domain against the nearest one without a route, (n,)."""
    if has_route.all():
        return np.full(len(distances), np.inf)
    return np.asarray((distances[:, ~has_route].min(axis=1) - distances.min(axis=1)) / 2)


def chosen(
    distances: Points, radii: Points, margin: float, has_route: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Returns the number of the domain whose route each row takes, −1 for the base route."""
    nearest = distances.argmin(axis=1)
    inside = distances[np.arange(len(distances)), nearest] <= radii[nearest]
    sure = odds(distances, has_route) >= margin
    return np.where(has_route[nearest] & inside & sure, nearest, -1)
