"""Compatible momentum contrast: a slow model between the old and the new one, and queues of the features it gave.

``theta_c <- m theta_c + (1 - m)/2 theta_{t-1} + (1 - m)/2 theta_t`` before each step's forward pass; features of the
model in training are contrasted with the slow model's of the same batch and of the batches before (CTP, ICCV 2023,
eq. 3 and 4). While theta_t stands still, the slow model after n steps is at
``theta_{t-1} + (1 - m**n)/2 (theta_t - theta_{t-1})``: it goes half of the way at most.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from model_updates.encoder import Encoder
from model_updates.losses import soft_cross_entropy

QUEUE = "queue."
NOBODY = -1
"""The picture of a queued feature whose number another update gave, or that was drawn at random."""


def momentum_step(slow: Tensor, old: Tensor, new: Tensor, momentum: float, share_of_old: float) -> None:
    """Moves a slow parameter in place towards a mean of its old and its new value (eq. 3 with a share of ½)."""
    slow.mul_(momentum)
    slow.add_(old, alpha=(1 - momentum) * share_of_old)
    slow.add_(new, alpha=(1 - momentum) * (1 - share_of_old))


class Slow:
    """A model in eval mode that moves in each step towards a mean of an old and of a current one.

    `share_of_old` is how much of a step comes from the old model; ½ is CTP's (eq. 3), 0 a plain moving average, 1 the
    old model itself. Its progress is named with the prefix.
    """

    def __init__(
        self,
        model: nn.Module,
        old: Mapping[str, Tensor],
        prefix: str,
        *,
        momentum: float,
        share_of_old: float,
    ) -> None:
        self._model = model.eval().requires_grad_(False)
        self._old, self._prefix = old, prefix
        self._momentum, self._share = momentum, share_of_old

    def step(self, current: nn.Module) -> None:
        """Moves every parameter; running statistics are those of the model in training."""
        new, statistics = dict(current.named_parameters()), dict(current.named_buffers())
        with torch.no_grad():
            for name, slow in self._model.named_parameters():
                momentum_step(slow, self._old[name], new[name], self._momentum, self._share)
            for name, value in self._model.named_buffers():
                value.copy_(statistics[name])

    def progress(self) -> dict[str, Tensor]:
        """Returns its tensors."""
        return {self._prefix + name: value for name, value in self._model.state_dict().items()}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        """Takes its own of what `progress` returned."""
        own = {n.removeprefix(self._prefix): v for n, v in progress.items() if n.startswith(self._prefix)}
        self._model.load_state_dict(own)


class MomentumModel(Slow):
    """The slow model of both towers: starts as a copy of the encoder before the update."""

    def __init__(self, previous: Encoder, *, momentum: float, share_of_old: float) -> None:
        self.encoder, old = previous.copy(), dict(previous.model.named_parameters())
        super().__init__(self.encoder.model, old, "momentum.", momentum=momentum, share_of_old=share_of_old)


@dataclass
class FeatureQueue:
    """The unit features that the slow model gave last, first in and first out."""

    images: Tensor  # (k, dim)
    texts: Tensor  # (k, dim), row by row of the same pairs
    pictures: Tensor  # (k,) int64, the picture of each row by its number in this update, or `NOBODY`
    pointer: int = 0  # the row that is written next

    @classmethod
    def random(cls, size: int, dim: int, seed: int) -> FeatureQueue:
        """Returns a queue of random directions, as it starts in the first update."""
        generator = torch.Generator().manual_seed(seed)
        images, texts = (normalize(torch.randn(size, dim, generator=generator), dim=-1) for _ in range(2))
        return cls(images, texts, torch.full((size,), NOBODY))

    def to(self, device: torch.device) -> FeatureQueue:
        """Returns the queue on a device."""
        return FeatureQueue(
            self.images.to(device), self.texts.to(device), self.pictures.to(device), self.pointer
        )

    def push(self, images: Tensor, texts: Tensor, pictures: Tensor) -> None:
        """Puts the features of a batch in the place of the oldest."""
        size = len(self.images)
        if size == 0:
            return
        kept = min(len(images), size)
        rows = (self.pointer + torch.arange(kept, device=self.images.device)) % size
        self.images[rows], self.texts[rows] = images[-kept:], texts[-kept:]
        self.pictures[rows] = pictures[-kept:]
        self.pointer = (self.pointer + kept) % size

    def progress(self) -> dict[str, Tensor]:
        held = {"images": self.images, "texts": self.texts, "pictures": self.pictures}
        held["pointer"] = torch.tensor(self.pointer)
        return {QUEUE + name: value.clone() for name, value in held.items()}

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        for name, value in (("images", self.images), ("texts", self.texts), ("pictures", self.pictures)):
            value.copy_(progress[QUEUE + name])
        self.pointer = int(progress[QUEUE + "pointer"])


def queue_contrast(
    new: tuple[Tensor, Tensor],
    slow: tuple[Tensor, Tensor],
    queue: FeatureQueue,
    image_index: Tensor,
    scale: Tensor | float,
) -> Tensor:
    """Returns the contrast of a batch with the slow model's features of it and of the queue, both ways averaged.

    `new` and `slow` are (b, dim) unit image and text features; `image_index` (b,) is equal where rows show the same
    picture, whose queued features are left out.
    """
    to_texts = _contrast(new[0], slow[1], queue.texts, queue.pictures, image_index, scale)
    to_images = _contrast(new[1], slow[0], queue.images, queue.pictures, image_index, scale)
    return (to_texts + to_images) / 2


def _contrast(
    rows: Tensor, fresh: Tensor, queued: Tensor, pictures: Tensor, image_index: Tensor, scale: Tensor | float
) -> Tensor:
    """(b, dim) rows against b fresh columns, where the right ones are, and k queued ones, which are all wrong."""
    logits = scale * torch.cat([rows @ fresh.T, rows @ queued.T], dim=1)
    same = image_index[:, None] == image_index[None, :]
    own = image_index[:, None] == pictures[None, :]
    logits = logits.masked_fill(torch.cat([torch.zeros_like(same), own], dim=1), -torch.inf)
    return soft_cross_entropy(logits, torch.cat([same, torch.zeros_like(own)], dim=1))
