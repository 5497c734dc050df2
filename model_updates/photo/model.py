"""`perennial-photo`: EfficientNet-Lite2 and two text towers, a space for each of them.

The multilingual Universal Sentence Encoder knows sixteen languages and can be taught more; multilingual-e5-small reads
about a hundred (`model_updates.photo.second_space`). A vector is that of one space, then that of the other.

What `Encoder` asks of a tower that takes embeddings: ``visual`` (prepared pixels to trunk features), ``image_head``
(trunk features to the joint space), ``trunk_dim``, ``token_embedding``, ``text_features`` (embedded tokens and lengths
to text vectors) and ``logit_scale``; and ``second``, what gives the rest of a text's vector.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from model_updates.photo import packages
from model_updates.photo.conse import ConSE
from model_updates.photo.image_tower import (
    DEVIATION,
    FEATURES,
    MEAN,
    PIXELS,
    PhotoTower,
    image_weights,
    tower_and_classifier,
)
from model_updates.photo.precomputed import shipped
from model_updates.photo.second_texts import SecondTexts
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
        WeightsMismatch: a package's file is not the pinned one.
    """
    tower, weight, bias = tower_and_classifier(image_weights())
    is_double = packages.is_installed(packages.SENTENCES)
    model, fixed = with_text_weights(PhotoModel(1, is_double=is_double)), shipped()
    head = {"weight": weight, "bias": bias, "classes": fixed["classes"][:, : None if is_double else WIDTH]}
    with torch.no_grad():
        model.visual.body.load_state_dict(
            {name.removeprefix("body."): value for name, value in tower.items()}
        )
        if model.second is not None:
            head["centre"] = fixed["centre"]
            for name, own in model.second.named_buffers():
                own.copy_(fixed[name])
        model.image_head.load_state_dict(head)
    return model.eval()


def with_text_weights(model: PhotoModel) -> PhotoModel:
    """Gives a model the package's text tower and token table, and returns it in eval mode."""
    arrays = packages.text_arrays()
    with torch.no_grad():
        # In place of the table that is there: with two of them opening took 262 MB more.
        rows = token_rows(arrays)
        model.token_embedding = nn.Embedding(len(rows), WIDTH, _weight=rows)
        model.text.load_state_dict(tower_state(arrays))
    return model.eval()


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
