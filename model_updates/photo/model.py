"""`perennial-photo`: EfficientNet-Lite2 and two text towers, a space for each of them.

The multilingual Universal Sentence Encoder knows sixteen languages and can be taught more; multilingual-e5-small reads
about a hundred (`model_updates.photo.second_space`). A vector is that of one space, then that of the other.

What `Encoder` asks of a tower that takes embeddings: ``visual`` (prepared pixels to trunk features), ``image_head``
(trunk features to the joint space), ``trunk_dim``, ``token_embedding``, ``text_features`` (embedded tokens and lengths
to text vectors) and ``logit_scale``; and ``second``, what gives the rest of a text's vector.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from model_updates.errors import WeightsMismatch
from model_updates.photo import packages
from model_updates.photo.conse import ConSE
from model_updates.photo.image_tower import DEVIATION, FEATURES, MEAN, PIXELS, PhotoTower
from model_updates.photo.second_texts import SecondTexts
from model_updates.photo.text_tower import SentenceTower
from model_updates.photo.tokenizer import END, ROWS, START, sentence_pieces
from model_updates.photo.weights import CONTEXT, FIRST_SCALE, LANGUAGES, TABLE, WIDTH, photo_weights
from model_updates.preprocessing import Preprocessing

CAPTIONS_AT_ONCE = 128


class PhotoModel(nn.Module):
    """Both towers and the head between them; every tensor is in its state, none needs the packages any more."""

    trunk_dim = FEATURES  # length of the image tower's pooled features

    def __init__(self, rows: int = ROWS, *, is_double: bool = True) -> None:
        """Builds it without weights; encoders of before there was a second space are not double."""
        super().__init__()
        self.visual = PhotoTower()
        self.second = SecondTexts(LANGUAGES) if is_double else None
        self.image_head = (
            ConSE((WIDTH, SecondTexts.dim), (1.0, SecondTexts.share))
            if is_double
            else ConSE((WIDTH,), (1.0,))
        )
        # Given its weight, an embedding draws none: these are 65 million numbers.
        self.token_embedding = nn.Embedding(rows, WIDTH, _weight=torch.zeros(rows, WIDTH))
        self.text = SentenceTower()
        self.logit_scale = nn.Parameter(torch.tensor(math.log(FIRST_SCALE)))
        self.context_length = CONTEXT
        # Not in versions of before they were measured, which do without.
        self.later = frozenset({"second.trusts", "second.first_offsets"} if is_double else ())

    def filled(self, weights: Mapping[str, NDArray[np.float32]]) -> Self:
        """Gives it the tensors of these names, its token table by another one, and returns it in eval mode.

        Raises:
            WeightsMismatch: it has other tensors.
        """
        # In place of the table that is there: with two of them opening took 262 MB more.
        rows = torch.from_numpy(weights[TABLE])
        self.token_embedding = nn.Embedding(len(rows), WIDTH, _weight=rows)
        own = {name: tuple(value.shape) for name, value in self.state_dict().items()}
        strange = [name for name, value in weights.items() if own.get(name) != value.shape]
        if strange:
            raise WeightsMismatch(
                f"{strange[0]} is laid out otherwise here ({len(strange)} tensors are); "
                "install the versions of timm and torch that the constraints file names"
            )
        self.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()}, strict=False)
        return self.eval()

    def text_features(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        """Maps embedded tokens (n, longest, 512) and lengths (n,), start and end counted, to (n, 512)."""
        features: Tensor = self.text(embedded, lengths)
        return features


def preprocessing() -> Preprocessing:
    """Returns how the image tower wants its pictures."""
    mean, deviation = (MEAN, MEAN, MEAN), (DEVIATION, DEVIATION, DEVIATION)
    return Preprocessing(size=PIXELS, mean=mean, std=deviation)


def from_packages() -> PhotoModel:
    """Builds the model with the packages' weights and ConSE's class vectors, in eval mode.

    Where the package of the second space is not installed it has the first alone.

    Raises:
        UnknownModel: another package is not installed.
        WeightsMismatch: a package's file is not the pinned one, or timm lays out its layers otherwise.
    """
    is_double = packages.is_installed(packages.SENTENCES)
    return PhotoModel(1, is_double=is_double).filled(photo_weights(is_double=is_double))


def encode_shared(model: PhotoModel, texts: Sequence[str]) -> Tensor:
    """Returns (n, 512) unit vectors of texts in the first space, read with the pieces that its languages share."""
    rows = [torch.tensor([START, *encoded, END]) for encoded in sentence_pieces().encode(texts)]
    vectors = torch.empty(len(rows), WIDTH)
    by_length = sorted(range(len(rows)), key=lambda text: len(rows[text]))
    for start in range(0, len(rows), CAPTIONS_AT_ONCE):
        chosen = by_length[start : start + CAPTIONS_AT_ONCE]
        padded = nn.utils.rnn.pad_sequence([rows[text] for text in chosen], batch_first=True)
        lengths = torch.tensor([len(rows[text]) for text in chosen])
        vectors[chosen] = model.text_features(model.token_embedding(padded), lengths)
    return vectors
