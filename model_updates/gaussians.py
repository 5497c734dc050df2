"""Which domain a picture looks like: means of domains in a space where they all are spheres, and how far each reaches.

Fitted by `model_updates.parts.router`, which says how and why; here is what a search needs of it.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from model_updates.routes import BASE

Points = NDArray[np.float64]

MOST_DIMENSIONS = 256
SHRINKAGE = 1e-3  # of the covariance towards a sphere
INSIDE = 0.975  # share of a domain's pictures within its radius
ASTRAY = 0.02  # share of other pictures that may be sent to a route
FOLDS = 5
MOST_PICTURES = 2000  # of a domain; more change nothing
FEWEST_PICTURES = 10  # of a domain, for a Gaussian of its own
_LEAST_SPREAD = 1e-6  # of the mean square of a feature; blank pages do not differ at all
_DISTINCT = 1e-9  # share of the largest eigenvalue under which one may be rounding alone


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


def fit(pictures: Mapping[str, NDArray[np.float32]], routes: Collection[str]) -> Gaussians | None:
    """Fits to the trunk features of the pictures of each domain.

    Base trunk features are (n, trunk_dim) by domain; those with fewer than ten rows are left out. None when none
    of them that is left has a route. Numbers are rounded as a version keeps them.
    """
    points: dict[str, Points] = {
        domain: _some(rows).astype(np.float64)
        for domain, rows in sorted(pictures.items())
        if len(rows) >= FEWEST_PICTURES
    }
    domains = list(points)
    if not set(domains) & set(routes):
        return None
    has_route = np.asarray([domain in routes for domain in domains])
    radii, margin = _calibrated(list(points.values()), has_route)
    whitening, means = _gaussians(list(points.values()))
    whitening, means, radii = (one.astype(np.float32).astype(np.float64) for one in (whitening, means, radii))
    return Gaussians(
        whitening, means, radii, float(np.float32(margin)), domains, sorted(set(domains) & set(routes))
    )


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


def _gaussians(points: list[Points]) -> tuple[Points, Points]:
    """Returns what turns features into a space where every domain is a unit sphere, and the means there."""
    centres = np.stack([rows.mean(axis=0) for rows in points])
    everything = np.concatenate(points)
    axes = np.eye(everything.shape[1])
    if len(axes) > MOST_DIMENSIONS:
        axes = _main_axes(everything - everything.mean(axis=0), MOST_DIMENSIONS)
    strayed = np.concatenate([rows - centre for rows, centre in zip(points, centres, strict=True)]) @ axes
    within = strayed.T @ strayed / len(strayed)
    size = len(within)
    spread = max(float(np.trace(within)) / size, _LEAST_SPREAD * float((everything**2).mean()), 1e-12)
    within = (1 - SHRINKAGE) * within + SHRINKAGE * spread * np.eye(size)
    whitening = axes @ np.linalg.inv(np.linalg.cholesky(within)).T
    return whitening, centres @ whitening


def _main_axes(strayed: Points, count: int) -> Points:
    """Returns the `count` directions along which centred rows (n, d) differ most, (d, count).

    Fewer rows than dimensions have them in the products of rows with rows, a smaller matrix; where rows do not differ
    in so many directions, any others make up the number.
    """
    if len(strayed) >= strayed.shape[1]:
        return np.asarray(np.linalg.eigh(strayed.T @ strayed)[1][:, -count:])
    values, combined = (part[..., -count:] for part in np.linalg.eigh(strayed @ strayed.T))
    differ = values > _DISTINCT * values[-1]
    axes = strayed.T @ (combined[:, differ] / np.sqrt(values[differ]))
    others = np.random.default_rng(0).normal(size=(len(axes), count - axes.shape[1]))
    return np.asarray(np.linalg.qr(np.concatenate([axes, others], axis=1))[0])


def _calibrated(points: list[Points], has_route: NDArray[np.bool_]) -> tuple[Points, float]:
    """Returns each domain's squared radius and the margin, from pictures that a fold leaves out."""
    held_out: list[list[Points]] = [[] for _ in points]
    for fold in range(FOLDS):
        parts = [np.arange(len(rows)) % FOLDS == fold for rows in points]
        whitening, means = _gaussians([rows[~part] for rows, part in zip(points, parts, strict=True)])
        for n, (rows, part) in enumerate(zip(points, parts, strict=True)):
            held_out[n].append(distances_to(rows[part] @ whitening, means))
    distances = [np.concatenate(found) for found in held_out]
    # Pictures that do not differ are no distance away, but for rounding.
    radii = np.asarray([max(1.0, np.quantile(found[:, n], INSIDE)) for n, found in enumerate(distances)])
    margin = 0.0
    for found in (distances[n] for n in range(len(points)) if not has_route[n]):
        taken = chosen(found, radii, 0.0, has_route) >= 0
        strayed = np.sort(odds(found, has_route)[taken])[::-1]
        allowed = int(ASTRAY * len(found))
        if len(strayed) > allowed:
            margin = max(margin, float(np.nextafter(strayed[allowed], np.inf)))
    return radii, margin


def _some(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    order = np.random.default_rng(0).permutation(len(rows))
    return rows[order[:MOST_PICTURES]]
