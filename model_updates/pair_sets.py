"""Sets of pairs and batches: what an update learns from, with everything frozen about it, row by row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, TypeVar

import torch
from PIL import Image
from torch import Tensor

from model_updates.pairs import TrainingPair


@dataclass(frozen=True)
class Batch:
    """What a strategy sees of b pairs; features are raw (not normalised) and come from frozen towers."""

    tokens: Tensor  # (b, longest) int64 rows of the texts under the candidate's vocabulary
    image_index: Tensor  # (b,) int64, equal where two pairs show the same picture
    image_features: Tensor  # (b, dim) of the image side before this update, each picture on its own route
    # (b, trunk_dim) trunk features of the base route; equal to the features where a tower has no head
    trunk: Tensor
    # (b,) int64, which pair of the update this is: the same number in every epoch; replayed pairs come after those of
    # the chunk
    row: Tensor
    languages: tuple[str, ...]  # of each text
    domains: tuple[str, ...]  # of each picture
    replayed: Tensor  # (b,) bool, pairs that come from the strategy's memory
    images: Tensor | None = None  # (b, 3, size, size) float32, only for a strategy that reads pictures
    # (b, dim) of the text tower before this update, only when the strategy asks (`needs`)
    text_features: Tensor | None = None
    # (b, dim) teacher features of the English caption; rows without one are zero
    english_features: Tensor | None = None
    has_english: Tensor | None = None  # (b,) bool, which rows of `english_features` are real

    def to(self, device: torch.device) -> Batch:
        """Returns the batch with every tensor on the device."""
        return _each(self, lambda tensor: tensor.to(device))

    def select(self, positions: Sequence[int]) -> Batch:
        """Returns some rows of the batch, in the order of their positions."""
        chosen = _each(self, lambda tensor: tensor[list(positions)])
        return replace(
            chosen,
            languages=tuple(self.languages[n] for n in positions),
            domains=tuple(self.domains[n] for n in positions),
        )


@dataclass(frozen=True)
class PictureRows:
    """The p pictures of an update, each once, however many captions it has."""

    trunk: Tensor  # (p, trunk_dim) of the base route
    make_features: Callable[[], Tensor]  # returns `features`; a head that is solved never asks for them

    @cached_property
    def features(self) -> Tensor:
        """(p, dim) of the image side before the update, each picture on its own route."""
        return self.make_features()


@dataclass(frozen=True)
class PairSet:
    """Pairs with everything frozen about them; see `Batch` for what each row is."""

    pairs: tuple[TrainingPair, ...]  # the n pairs themselves
    image_index: Tensor  # (n,) int64, which of the pictures a pair shows
    pictures: PictureRows  # the same for all sets of one update
    english_features: Tensor  # (n, dim)
    has_english: Tensor  # (n,) bool
    text_features: Tensor | None  # (n, dim), or None when the strategy did not ask for them

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def image_features(self) -> Tensor:
        """(n, dim) of each pair's picture."""
        return self.pictures.features[self.image_index]

    @property
    def trunk(self) -> Tensor:
        """(n, trunk_dim) of each pair's picture."""
        return self.pictures.trunk[self.image_index]

    @property
    def english_share(self) -> float:
        """Share of pairs that have an English caption beside them."""
        return float(self.has_english.float().mean()) if len(self.pairs) else 0.0

    def select(self, rows: Sequence[int]) -> PairSet:
        """Returns some rows, in their order."""
        chosen = list(rows)
        if chosen == list(range(len(self))):
            return self
        return replace(_each(self, lambda tensor: tensor[chosen]), pairs=tuple(self.pairs[n] for n in chosen))

    def followed_by(self, other: PairSet) -> PairSet:
        """Returns the rows of this set and then those of another of the same update."""
        ours, theirs = _tensors(self), _tensors(other)
        both: dict[str, Any] = {
            name: torch.cat([ours[name], theirs[name]]) for name in ours.keys() & theirs.keys()
        }
        return PairSet(self.pairs + other.pairs, pictures=self.pictures, **{"text_features": None, **both})


AnyRows = TypeVar("AnyRows", Batch, PairSet)


def _each(rows: AnyRows, change: Callable[[Tensor], Tensor]) -> AnyRows:
    changed: dict[str, Any] = {name: change(tensor) for name, tensor in _tensors(rows).items()}
    return replace(rows, **changed)


def _tensors(rows: Batch | PairSet) -> dict[str, Tensor]:
    values = {one.name: getattr(rows, one.name) for one in fields(rows)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}


@dataclass(frozen=True)
class UpdateData:
    """What one update learns from, replays and validates on."""

    train: PairSet  # the chunk's pairs
    memory: PairSet  # the pairs that the strategy asked for (`Strategy.memory`)
    validation: PairSet  # the chunk's validation pairs
    load_image: Callable[[str], Image.Image]  # decodes a picture by its id
    # a sample of what people find today, which helps to choose the epoch; None where nothing of it can move
    known: PairSet | None = None
