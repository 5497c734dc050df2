"""Asking a fusion encoder whether a text belongs to pictures: what re-ranks the first hits of a search."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.errors import NoFusion
from model_updates.fusion.encoder import PictureFeatures, fusion_of, usable
from model_updates.fusion.tokens import read_images, read_texts, real_words
from model_updates.routes import BASE
from model_updates.search_encoder import IMAGE_BATCH

Seen = tuple[Tensor, Tensor]
"""The patches and the unit vector of one picture, as a fusion encoder reads it."""


class Matcher:
    """The fusion encoder of an encoder, and its towers as readers of words and patches.

    Raises:
        NoFusion: there is none, or it learned with other towers.
    """

    def __init__(self, encoder: Encoder) -> None:
        problem, fusion = usable(encoder), fusion_of(encoder)
        if problem is not None or fusion is None:
            raise NoFusion(problem or "it has no fusion encoder")
        self._encoder, self._fusion = encoder, fusion

    def read(self, pictures: Sequence[Image.Image], route: str = BASE) -> list[Seen]:
        """Returns what `log_odds` needs of each picture, all of one route."""
        seen: list[Seen] = []
        with torch.inference_mode():
            for start in range(0, len(pictures), IMAGE_BATCH):
                prepared = self._encoder.prepare_images(pictures[start : start + IMAGE_BATCH])
                read = self._fusion.pictures(read_images(self._encoder, prepared, [route] * len(prepared)))
                # Copies: a view of one picture would keep its whole batch in memory.
                pairs = zip(read.patches, read.vectors, strict=True)
                seen += [(patches.clone(), vector.clone()) for patches, vector in pairs]
        return seen

    def log_odds(self, text: str, language: str, seen: Sequence[Seen]) -> NDArray[np.float32]:
        """Returns (n,) float32 log-odds that a text belongs to each of n pictures."""
        if not seen:
            return np.zeros(0, dtype=np.float32)
        encoder = self._encoder
        with torch.inference_mode():
            tokens = encoder.tokenize([text], language)
            texts = self._fusion.texts(read_texts(encoder, tokens, [language]), real_words(encoder, tokens))
            pictures = PictureFeatures(*(torch.stack(parts) for parts in zip(*seen, strict=True)))
            whole = self._fusion(texts.select(torch.zeros(len(seen), dtype=torch.int64)), pictures)[0]
            return self._fusion.log_odds(whole).float().cpu().numpy()
