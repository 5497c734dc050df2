"""`perennial-photo`: EfficientNet-Lite2 and the multilingual Universal Sentence Encoder in one joint space.

What `Encoder` asks of a tower that takes embeddings: ``visual`` (prepared pixels to trunk features), ``image_head``
(trunk features to the joint space), ``trunk_dim``, ``token_embedding``, ``text_features`` (embedded tokens and lengths
to text vectors) and ``logit_scale``.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from model_updates.photo import packages
from model_updates.photo.conse import ConSE, class_vectors
from model_updates.photo.image_tower import (
    DEVIATION,
    FEATURES,
    MEAN,
    PIXELS,
    PhotoTower,
    tower_and_classifier,
)
from model_updates.photo.text_tower import WIDTH, SentenceTower, token_rows, tower_state
from model_updates.photo.tokenizer import END, ROWS, START, sentence_pieces
from model_updates.preprocessing import Preprocessing

NAME = "perennial-photo"
# What the sentence encoder was trained on; all of them read the one shared token table.
LANGUAGES = (
    "en",
    "ar",
    "de",
    "es",
    "fr",
    "it",
    "ja",
    "ko",
    "nl",
    "pl",
    "pt",
    "ru",
    "th",
    "tr",
    "zh",
    "zh-TW",
)
CONTEXT = 128  # rows a text may have; captions have about 20
FIRST_SCALE = 16.0  # where a learned temperature settles on photographs
CAPTIONS_AT_ONCE = 128


class PhotoModel(nn.Module):
    """Both towers and the head between them; every tensor is in its state, none needs the packages any more."""

    trunk_dim = FEATURES  # length of the image tower's pooled features

    def __init__(self, rows: int = ROWS) -> None:
        super().__init__()
        self.visual = PhotoTower()
        self.image_head = ConSE()
        # Given its weight, an embedding draws none: these are 65 million numbers.
        self.token_embedding = nn.Embedding(rows, WIDTH, _weight=torch.zeros(rows, WIDTH))
        self.text = SentenceTower()
        self.logit_scale = nn.Parameter(torch.tensor(math.log(FIRST_SCALE)))
        self.context_length = CONTEXT

    def text_features(self, embedded: Tensor, lengths: Tensor) -> Tensor:
        """Maps embedded tokens (n, longest, 512) and lengths (n,), start and end counted, to (n, 512)."""
        features: Tensor = self.text(embedded, lengths)
        return features


def preprocessing() -> Preprocessing:
    """Returns how the image tower wants its pictures."""
    mean, deviation = (MEAN, MEAN, MEAN), (DEVIATION, DEVIATION, DEVIATION)
    return Preprocessing(size=PIXELS, mean=mean, std=deviation)


def from_packages() -> PhotoModel:
    """Builds the model with the weights of the two packages and ConSE's class vectors, in eval mode.

    Raises:
        UnknownModel: a package is not installed.
        WeightsMismatch: a package's file is not the pinned one.
    """
    arrays = packages.text_arrays()
    tower, weight, bias = tower_and_classifier(packages.image_weights())
    model = PhotoModel()
    with torch.no_grad():
        model.token_embedding.weight.copy_(token_rows(arrays))
        model.text.load_state_dict(tower_state(arrays))
        model.visual.body.load_state_dict(
            {name.removeprefix("body."): value for name, value in tower.items()}
        )
        model.image_head.weight.copy_(weight)
        model.image_head.bias.copy_(bias)
        model.eval()
        model.image_head.classes.copy_(class_vectors(lambda texts: _english(model, texts)))
    return model


def _english(model: PhotoModel, texts: Sequence[str]) -> Tensor:
    rows = [torch.tensor([START, *encoded, END]) for encoded in sentence_pieces().encode(texts)]
    vectors = torch.empty(len(rows), WIDTH)
    by_length = sorted(range(len(rows)), key=lambda text: len(rows[text]))
    for start in range(0, len(rows), CAPTIONS_AT_ONCE):
        chosen = by_length[start : start + CAPTIONS_AT_ONCE]
        padded = nn.utils.rnn.pad_sequence([rows[text] for text in chosen], batch_first=True)
        lengths = torch.tensor([len(rows[text]) for text in chosen])
        vectors[chosen] = model.text_features(model.token_embedding(padded), lengths)
    return vectors
