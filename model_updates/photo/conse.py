"""ConSE: the vector of a picture from what its classifier sees, with no image-text pair at all.

A picture's vector is the mean of the text vectors of ImageNet's classes, weighted by how likely each is (Norouzi et
al., *Zero-Shot Learning by Convex Combination of Semantic Embeddings*, ICLR 2014). Four changes, each measured on
photographs with captions (docs/log.md): the vectors are centred on their mean, so that what all classes have in common
does not count; all thousand classes take part at a softmax temperature of 2 instead of the ten likeliest at 1;
a class is not its name alone but the mean of two vectors, that of its WordNet definition and that of phrases somebody
would use of such a picture (``class_phrases.tsv``, written by hand from what the classes mean, no caption seen); and
what captions have in common is put in the place of what a picture has of it (`model_updates.parts.ridge_head`).

A text may have a vector in several spaces, one after another; a picture then has one in each.
"""

import csv
from collections.abc import Callable, Sequence
from functools import cached_property
from importlib import resources

import numpy as np
import torch
from timm.data.imagenet_info import ImageNetInfo
from torch import Tensor, nn
from torch.nn import functional

from model_updates.parts.ridge_head import among_captions
from model_updates.photo.image_tower import CLASSES, FEATURES

TEMPERATURE = 2.0


class ConSE(nn.Module):
    """Pooled features (n, 1280) in, vectors in the spaces of texts (n, their widths added up) out; nothing trains."""

    weight: Tensor
    bias: Tensor
    classes: Tensor
    centre: Tensor  # (dim,) what captions have in common, in each space

    def __init__(self, widths: Sequence[int], shares: Sequence[float]) -> None:
        super().__init__()
        self.widths, self.shares = tuple(widths), tuple(shares)
        self.register_buffer("weight", torch.zeros(CLASSES, FEATURES))
        self.register_buffer("bias", torch.zeros(CLASSES))
        self.register_buffer("classes", torch.zeros(CLASSES, sum(widths)))
        if len(self.widths) > 1:  # encoders from when there was one space know no centre
            self.register_buffer("centre", torch.zeros(sum(widths)))

    @cached_property
    def apart(self) -> Tensor:
        """The unit direction (dim,) in which the vectors of classes, and with them those of texts, differ least.

        A tower that normalises what it gives out leaves one free: texts of `perennial-photo` have 2e-5 of it.
        """
        classes = self.classes.double().cpu()
        direction = torch.linalg.eigh(classes.T @ classes)[1][:, 0]
        found: Tensor = direction * direction[direction.abs().argmax()].sign()
        return found.to(self.classes)

    def forward(self, features: Tensor) -> Tensor:
        """Returns (n, dim), of which each space's part has the length of its share; not normalised in one space."""
        likely = functional.softmax(functional.linear(features, self.weight, self.bias) / TEMPERATURE, dim=-1)
        seen = likely @ self.classes
        if len(self.widths) == 1:
            return seen
        ends = np.cumsum(self.widths)
        parts = [
            share * among_captions(seen[:, end - width : end], self.centre[end - width : end])
            for share, width, end in zip(self.shares, self.widths, ends.tolist(), strict=True)
        ]
        return torch.cat(parts, dim=-1)


def class_vectors(encode: Callable[[Sequence[str]], Tensor]) -> Tensor:
    """Returns (1000, dim), ImageNet's classes as centred vectors, by what encodes English texts to unit (n, dim)."""
    info = ImageNetInfo()
    definitions = encode([info.index_to_description(number, detailed=True) for number in range(CLASSES)])
    phrases = class_phrases()
    unique = list(dict.fromkeys(phrase for of_class in phrases for phrase in of_class))
    place = {phrase: number for number, phrase in enumerate(unique)}
    encoded = encode(unique)
    spoken = torch.stack(
        [encoded[[place[phrase] for phrase in of_class]].mean(dim=0) for of_class in phrases]
    )
    both = functional.normalize(spoken, dim=-1) + functional.normalize(definitions, dim=-1)
    vectors = functional.normalize(both, dim=-1)
    return vectors - vectors.mean(dim=0)


def class_phrases() -> list[list[str]]:
    """Returns the phrases of each of the thousand classes, in the order of ImageNet's labels."""
    file = resources.files("model_updates") / "assets" / "perennial-photo" / "class_phrases.tsv"
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines(), delimiter="\t")
    return [row["phrases"].split(" | ") for row in rows]
