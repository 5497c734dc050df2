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
from model_updates.gaussians import Gaussians, fit
from model_updates.inserts import ENCODER, Owner, Router


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
    """Returns a router with what `gaussians.fit` finds; None where it finds nothing."""
    found = fit(pictures, routes)
    if found is None:
        return None
    config = {
        "domains": list(found.domains),
        "routes": list(found.routes),
        "trunk_dim": found.whitening.shape[0],
        "size": found.whitening.shape[1],
    }
    router = LdaRouter(ENCODER, config)
    for name in ("whitening", "means", "radii", "margin"):
        getattr(router, name).copy_(torch.as_tensor(getattr(found, name), dtype=torch.float32))
    return router


def renew_router(encoder: Encoder, pictures: Mapping[str, NDArray[np.float32]]) -> None:
    """Gives an encoder a router fitted to pictures of each domain, as `fitted` takes them, where one can be."""
    router = fitted(pictures, encoder.image_routes)
    if router is not None:
        others = [insert for insert in encoder.inserts if not isinstance(insert, Router)]
        encoder.inserts[:] = [*others, router.to(encoder.device).requires_grad_(False)]
    encoder.forget_fingerprints()
