"""Inserts: small modules that stay in an encoder and that one route alone reads.

A *route* (`model_updates.routes`) says which inserts read an input. An insert belongs to exactly one owner: a
language, a domain, or the encoder (then every route of its tower reads it). It lies beside the model and not inside
it, so that the model's own tensors, and with them the vectors of every other route, cannot change by a bit when it
comes or goes.

Adding a kind: a subclass in `model_updates/parts/`, and its line in `parts/kinds.py`. An encoder that is opened builds
its inserts from kind, owner and configuration, loads their tensors, and hashes all of it into the fingerprint of
exactly the routes that read it.
"""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model_updates.routes import Route, loudness
from model_updates.towers import hash_tensors

RunImages = Callable[[Tensor], Tensor]
RunTexts = Callable[[Tensor, Tensor], Tensor]
RunTokens = Callable[[Tensor], Tensor]


@dataclass(frozen=True, order=True)
class Owner:
    """Whom an insert belongs to: ("language", tag), ("domain", name), or ("encoder", "")."""

    kind: str
    name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in {"language", "domain", "encoder"} or (self.kind == "encoder") == bool(self.name):
            raise ValueError(
                f"an insert's owner is a named language or domain, or the encoder; got {self.kind!r} {self.name!r}"
            )


def language(tag: str) -> Owner:
    """Names a language as owner."""
    return Owner("language", tag)


def domain(name: str) -> Owner:
    """Names a domain as owner."""
    return Owner("domain", name)


ENCODER = Owner("encoder")


class Insert(nn.Module, ABC):
    """One small module; the tensors of its `state_dict` and its configuration are all there is to it."""

    kind: ClassVar[str]  # the name it is registered by in `parts/kinds.py`
    tower: ClassVar[str]  # "image", "text", or "router" for what only guesses routes (see `Router`)
    # False when it only maps what the tower gives out (`around_head`), so that cached trunk features serve it and no
    # picture is decoded again
    runs_in_tower: ClassVar[bool] = True
    # configuration that only says how many rows its tensors have, so that a graph of it serves any number
    only_counts: ClassVar[frozenset[str]] = frozenset()

    def __init__(self, owner: Owner, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.owner = owner  # whose inputs read it
        self.config = dict(config)  # plain JSON values that `build` makes the same shapes from

    @classmethod
    @abstractmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes an insert for a model whose outputs it does not change yet, tensors on the model's device."""

    def around_image(self, model: nn.Module, run: RunImages, pixels: Tensor) -> Tensor:
        """Runs the image tower with the insert in it: pixels (n, 3, s, s) to trunk features (n, trunk_dim)."""
        return run(pixels)

    def around_head(self, run: RunImages, trunk: Tensor) -> Tensor:
        """Maps trunk features (n, trunk_dim) to raw features (n, dim); `run` is how it goes without this insert."""
        return run(trunk)

    def around_text(self, model: nn.Module, run: RunTexts, embedded: Tensor, ends: Tensor) -> Tensor:
        """Runs the text body with the insert in it: embedded tokens (n, length, width) to raw features (n, dim).

        `ends` (n,) int64 is the position of each text's last token; `run` is the body without this insert.
        """
        return run(embedded, ends)

    def around_tokens(self, model: nn.Module, run: RunTokens, tokens: Tensor) -> Tensor:
        """Runs a text tower that takes tokens (n, length) and no embeddings with the insert in it: (n, dim).

        Raises:
            NotImplementedError: the insert works on embedded words.
        """
        raise NotImplementedError(f"{self.kind} works on embedded words, and this text tower takes tokens")

    def beside(self, first: Tensor, rest: Tensor) -> tuple[Tensor, Tensor]:
        """Maps a text's unit features (n, w) of the text tower and those of a second tower (n, d) that follow them."""
        return first, rest

    def digest(self) -> str:
        """Returns the sha256 (hex) of kind, owner, configuration and tensors."""
        said = [self.kind, self.owner.kind, self.owner.name, self.config]
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
        hash_tensors(digest, self.state_dict().items())
        return digest.hexdigest()


class Router(Insert):
    """Guesses routes; its tower is "router", so that it is part of no vector and no fingerprint."""

    tower = "router"
    runs_in_tower = False

    @abstractmethod
    def guess(self, trunk: NDArray[np.float32]) -> list[str]:
        """Returns a domain for each row of (n, trunk_dim) base trunk features, `BASE` where none is likely."""

    @abstractmethod
    def nearest(self, trunk: NDArray[np.float32]) -> list[str]:
        """Returns the domain with a route that each row of (n, trunk_dim) base trunk features is nearest to."""


def reading(inserts: Sequence[Insert], tower: str, route: str) -> list[Insert]:
    """Returns the inserts of a tower that an input of this language or domain runs through, in their order."""
    owners = {ENCODER}
    route, _ = loudness(route)
    if route:
        owners.add(language(route) if tower == "text" else domain(route))
    return [insert for insert in inserts if insert.tower == tower and insert.owner in owners]


def by_route(
    inserts: Sequence[Insert],
    tower: str,
    route: Route,
    run: Callable[[list[Insert], Tensor], Tensor],
    rows: Tensor,
) -> Tensor:
    """Runs rows (n, …), each on its route, those that share their inserts together; the results come in their order."""
    if isinstance(route, str):
        return run(reading(inserts, tower, route), rows)
    groups: dict[tuple[int, ...], list[int]] = {}
    chosen: dict[tuple[int, ...], list[Insert]] = {}
    for position, name in enumerate(route):
        read_by = reading(inserts, tower, name)
        key = tuple(map(id, read_by))
        chosen[key] = read_by
        groups.setdefault(key, []).append(position)
    if len(groups) < 2:
        return run(next(iter(chosen.values()), []), rows)
    results = [run(chosen[key], rows[positions]) for key, positions in groups.items()]
    order = [position for positions in groups.values() for position in positions]
    return torch.cat(results)[torch.tensor(order, device=rows.device).argsort()]
