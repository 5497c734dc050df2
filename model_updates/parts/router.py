"""The router: whose route a picture takes when nobody said what it is, by its trunk features on the base route.

Linear discriminant analysis: every known domain is a Gaussian, all with one covariance, so that the log-odds of two
domains are linear (Hastie et al., *The Elements of Statistical Learning*, 4.3). Two ways lead back to the base route. A
picture outside the radius that holds 97.5 % of its domain's pictures is none of them; and one whose odds against the
nearest domain without a route are under a margin is left where it is. Radius and margin are set on pictures that the
Gaussians were not fitted to (five folds); the margin is the smallest that sends at most 2 % of the other domains'
pictures astray.
"""

from collections.abc import Collection, Mapping
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model_updates.encoder import Encoder
from model_updates.gaussians import Gaussians, Points, chosen, distances_to, odds
from model_updates.inserts import ENCODER, Owner, Router

MOST_DIMENSIONS = 256
SHRINKAGE = 1e-3  # of the covariance towards a sphere
INSIDE = 0.975  # share of a domain's pictures within its radius
ASTRAY = 0.02  # share of other pictures that may be sent to a route
FOLDS = 5
MOST_PICTURES = 2000  # of a domain; more change nothing
FEWEST_PICTURES = 10  # of a domain, for a Gaussian of its own


class LdaRouter(Router):
    """Means of the domains in a space where they all are spheres, and how far each reaches."""

    kind: ClassVar[str] = "lda-router"
    whitening: Tensor  # (trunk_dim, k) float32
    means: Tensor  # (domains, k) float32, in the order of `config["domains"]`
    radii: Tensor  # (domains,) float32, squared
    margin: Tensor  # () float32, log-odds

    def __init__(self, owner: Owner, config: Mapping[str, Any]) -> None:
        super().__init__(owner, config)
        count, size = len(config["domains"]), int(config["size"])
        self.register_buffer("whitening", torch.zeros(int(config["trunk_dim"]), size))
        self.register_buffer("means", torch.zeros(count, size))
        self.register_buffer("radii", torch.zeros(count))
        self.register_buffer("margin", torch.zeros(()))

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes an empty router; its numbers come from `fitted` or from a file."""
        return cls(owner, config)

    @property
    def gaussians(self) -> Gaussians:
        """Returns what guesses, on the processor."""
        whitening, means, radii = (
            one.double().cpu().numpy() for one in (self.whitening, self.means, self.radii)
        )
        domains, routes = self.config["domains"], self.config["routes"]
        return Gaussians(whitening, means, radii, float(self.margin), domains, routes)

    def nearest(self, trunk: NDArray[np.float32]) -> list[str]:
        return self.gaussians.nearest(trunk)

    def guess(self, trunk: NDArray[np.float32]) -> list[str]:
        return self.gaussians.guess(trunk)


def fitted(pictures: Mapping[str, NDArray[np.float32]], routes: Collection[str]) -> LdaRouter | None:
    """Fits a router to the trunk features of the pictures of each domain.

    Base trunk features are (n, trunk_dim) by domain; those with fewer than ten rows are left out. None when none
    of them that is left has a route.
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
    config = {
        "domains": domains,
        "routes": sorted(set(domains) & set(routes)),
        "trunk_dim": whitening.shape[0],
        "size": whitening.shape[1],
    }
    router = LdaRouter(ENCODER, config)
    for name, values in (("whitening", whitening), ("means", means), ("radii", radii), ("margin", margin)):
        getattr(router, name).copy_(torch.as_tensor(values, dtype=torch.float32))
    return router


def renew_router(encoder: Encoder, pictures: Mapping[str, NDArray[np.float32]]) -> None:
    """Gives an encoder a router fitted to pictures of each domain, as `fitted` takes them, where one can be."""
    router = fitted(pictures, encoder.image_routes)
    if router is not None:
        others = [insert for insert in encoder.inserts if not isinstance(insert, Router)]
        encoder.inserts[:] = [*others, router.to(encoder.device).requires_grad_(False)]
    encoder.forget_fingerprints()


def _gaussians(points: list[Points]) -> tuple[Points, Points]:
    """Returns what turns features into a space where every domain is a unit sphere, and the means there."""
    centres = np.stack([rows.mean(axis=0) for rows in points])
    everything = np.concatenate(points)
    axes = np.eye(everything.shape[1])
    if len(axes) > MOST_DIMENSIONS:
        total = np.cov(everything.T)
        axes = np.linalg.eigh(total)[1][:, -MOST_DIMENSIONS:]
    strayed = np.concatenate([rows - centre for rows, centre in zip(points, centres, strict=True)]) @ axes
    within = strayed.T @ strayed / len(strayed)
    size = len(within)
    within = (1 - SHRINKAGE) * within + SHRINKAGE * np.trace(within) / size * np.eye(size)
    whitening = axes @ np.linalg.inv(np.linalg.cholesky(within)).T
    return whitening, centres @ whitening


def _calibrated(points: list[Points], has_route: NDArray[np.bool_]) -> tuple[Points, float]:
    """Returns each domain's squared radius and the margin, from pictures that a fold leaves out."""
    held_out: list[list[Points]] = [[] for _ in points]
    for fold in range(FOLDS):
        parts = [np.arange(len(rows)) % FOLDS == fold for rows in points]
        whitening, means = _gaussians([rows[~part] for rows, part in zip(points, parts, strict=True)])
        for n, (rows, part) in enumerate(zip(points, parts, strict=True)):
            held_out[n].append(distances_to(rows[part] @ whitening, means))
    distances = [np.concatenate(found) for found in held_out]
    radii = np.asarray([np.quantile(found[:, n], INSIDE) for n, found in enumerate(distances)])
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
