"""ConSE: the vector of a picture from what its classifier sees, with no image-text pair at all.

A picture's vector is the mean of the text vectors of ImageNet's classes, weighted by how likely each is (Norouzi et
al., *Zero-Shot Learning by Convex Combination of Semantic Embeddings*, ICLR 2014). Three changes, each measured on
photographs with captions (docs/log.md): the vectors are centred on their mean, so that what all classes have in common
does not count; all thousand classes take part at a softmax temperature of 2 instead of the ten likeliest at 1; and
a class is not its name alone but the mean of two vectors, that of its WordNet definition and that of phrases somebody
would use of such a picture (``class_phrases.tsv``, written by hand from what the classes mean, no caption seen).
"""

import csv
from collections.abc import Callable, Sequence
from importlib import resources

import torch
from timm.data.imagenet_info import ImageNetInfo
from torch import Tensor, nn
from torch.nn import functional

from model_updates.photo.image_tower import CLASSES, FEATURES
from model_updates.photo.text_tower import WIDTH

TEMPERATURE = 2.0


class ConSE(nn.Module):
    """Pooled features (n, 1280) in, vectors in the space of texts (n, 512) out; nothing in it trains."""

    weight: Tensor
    bias: Tensor
    classes: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(CLASSES, FEATURES))
        self.register_buffer("bias", torch.zeros(CLASSES))
        self.register_buffer("classes", torch.zeros(CLASSES, WIDTH))

    def forward(self, features: Tensor) -> Tensor:
        """Returns (n, 512), not normalised."""
        likely = functional.softmax(functional.linear(features, self.weight, self.bias) / TEMPERATURE, dim=-1)
        return likely @ self.classes


def class_vectors(encode: Callable[[Sequence[str]], Tensor]) -> Tensor:
    """Returns (1000, 512), ImageNet's classes as centred vectors, by what encodes English texts to unit (n, 512)."""
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
