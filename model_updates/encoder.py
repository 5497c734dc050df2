"""The encoder: an open_clip model with its preprocessing and vocabulary; images and texts in, vectors out.

Any open_clip architecture takes the same path: the embedded `perennial-tiny`, a named architecture with a
pretrained tag, or one with a local ``.safetensors`` file. Towers that pool a causal text at its end token
(`open_clip.CLIP`) use our expandable `Vocabulary`; all others keep the tokenizer that open_clip pairs with
them.

A fingerprint is the sha256 of what makes a vector: parameters, preprocessing, segmentation. The text
fingerprint is per language, so that an update that touches only German rows provably leaves English vectors
alone.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional

from model_updates.towers import (
    causal_text_features,
    hash_tensors,
    image_tower,
    is_text_body,
    token_table,
    training_precision,
)
from model_updates.vocabulary import SHARED, Vocabulary

IMAGE_BATCH = 64
TEXT_BATCH = 256

ForeignTokenizer = Callable[[list[str]], Tensor]


@dataclass(frozen=True)
class Preprocessing:
    """How a decoded RGB picture becomes a tower's input (open_clip's preprocess configuration)."""

    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    interpolation: str = "bicubic"
    resize_mode: str = "shortest"

    def transform(self) -> Callable[[Image.Image], Tensor]:
        """Returns open_clip's evaluation transform: one picture to a (3, size, size) float32 tensor."""
        from open_clip.transform import PreprocessCfg, image_transform_v2

        config = PreprocessCfg(
            size=self.size,
            mean=self.mean,
            std=self.std,
            interpolation=self.interpolation,
            resize_mode=self.resize_mode,
        )
        transform: Callable[[Image.Image], Tensor] = image_transform_v2(config, is_train=False)
        return transform


class Encoder:
    """Both towers, preprocessing and vocabulary.

    Attributes:
        model: the open_clip model, in eval mode unless `training` is entered.
        architecture: name that open_clip (or our assets) knows the architecture by.
        preprocessing: how pictures are prepared.
        vocabulary: ours, or None when the text tower has a foreign tokenizer.
        dim: length of a vector.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        architecture: str,
        preprocessing: Preprocessing,
        vocabulary: Vocabulary | None,
        foreign_tokenizer: ForeignTokenizer | None = None,
    ) -> None:
        self.model = model.eval()
        self.architecture = architecture
        self.preprocessing = preprocessing
        self.vocabulary = vocabulary
        self.foreign_tokenizer = foreign_tokenizer
        self.image_forwards = 0
        self._transform = preprocessing.transform()
        self._fingerprints: dict[str, str] = {}
        if vocabulary is not None:
            # The default pooling takes the largest id: no longer the end token once ids are appended.
            model.text_pool_type = "eos"  # type: ignore[assignment]
            model.text_eos_id = vocabulary.end_row  # type: ignore[assignment]

    @cached_property
    def dim(self) -> int:
        """Length of an image or text vector."""
        projection = getattr(self.model, "text_projection", None)
        if isinstance(projection, Tensor):
            return int(projection.shape[1])
        with torch.inference_mode():
            return int(self.forward_tokens(self.tokenize(["a"])).shape[1])

    @property
    def device(self) -> torch.device:
        """Where the parameters live."""
        return next(self.model.parameters()).device

    def to(self, device: torch.device | str) -> Encoder:
        """Moves the model and returns this encoder."""
        self.model.to(device)
        return self

    def copy(self) -> Encoder:
        """Returns an independent copy in eval mode (for teachers and candidates)."""
        return Encoder(
            copy.deepcopy(self.model),
            architecture=self.architecture,
            preprocessing=self.preprocessing,
            vocabulary=None if self.vocabulary is None else self.vocabulary.copy(),
            foreign_tokenizer=self.foreign_tokenizer,
        )

    # ---------------------------------------------------------------- images

    def prepare_images(self, images: Sequence[Image.Image]) -> Tensor:
        """Returns (n, 3, size, size) float32, resized, cropped and normalised."""
        size = self.preprocessing.size
        if not images:
            return torch.empty(0, 3, size, size)
        return torch.stack([self._transform(image) for image in images])

    def forward_images(self, prepared: Tensor) -> Tensor:
        """Runs the image tower: (n, 3, size, size) to raw (n, dim) features, with gradients if enabled."""
        self.image_forwards += len(prepared)
        with training_precision(self.model, self.device):
            features: Tensor = self.model.encode_image(prepared.to(self.device))  # type: ignore[operator]
        return features

    def image_features(self, images: Sequence[Image.Image]) -> NDArray[np.float32]:
        """Returns raw (n, dim) float32 image features, not normalised."""
        rows = []
        with torch.inference_mode():
            for start in range(0, len(images), IMAGE_BATCH):
                prepared = self.prepare_images(images[start : start + IMAGE_BATCH])
                rows.append(self.forward_images(prepared).float().cpu().numpy())
        return np.concatenate(rows) if rows else np.empty((0, self.dim), dtype=np.float32)

    def encode_images(self, images: Sequence[Image.Image]) -> NDArray[np.float32]:
        """Returns (n, dim) float32 unit vectors of decoded RGB pictures."""
        return unit(self.image_features(images))

    # ----------------------------------------------------------------- texts

    def tokenize(self, texts: Sequence[str], language: str = SHARED) -> Tensor:
        """Returns (n, longest) int64 token ids; padded to the longest text when the tower is causal."""
        if self.vocabulary is None:
            if self.foreign_tokenizer is None:
                raise ValueError("this encoder has neither a vocabulary nor a tokenizer")
            return self.foreign_tokenizer(list(texts))
        return torch.from_numpy(self.vocabulary.pad(self.vocabulary.encode(texts, language)))

    def forward_tokens(self, tokens: Tensor) -> Tensor:
        """Runs the text tower: (n, length) int64 to raw (n, dim) features, with gradients if enabled."""
        tokens = tokens.to(self.device)
        if self.vocabulary is None:
            with training_precision(self.model, self.device):
                features: Tensor = self.model.encode_text(tokens)  # type: ignore[operator]
            return features
        return causal_text_features(self.model, tokens, self.vocabulary.end_row)

    def text_features(self, texts: Sequence[str], language: str = SHARED) -> NDArray[np.float32]:
        """Returns raw (n, dim) float32 text features, each text read with the language's token table."""
        rows = []
        with torch.inference_mode():
            for start in range(0, len(texts), TEXT_BATCH):
                tokens = self.tokenize(texts[start : start + TEXT_BATCH], language)
                rows.append(self.forward_tokens(tokens).float().cpu().numpy())
        return np.concatenate(rows) if rows else np.empty((0, self.dim), dtype=np.float32)

    def encode_texts(self, texts: Sequence[str], language: str = SHARED) -> NDArray[np.float32]:
        """Returns (n, dim) float32 unit vectors of texts in one language."""
        return unit(self.text_features(texts, language))

    # ---------------------------------------------------------- fingerprints

    @property
    def image_fingerprint(self) -> str:
        """Sha256 (hex) of the image tower's parameters, buffers and preprocessing."""
        return self._cached("image", self._hash_image_tower)

    def text_fingerprint(self, language: str = SHARED) -> str:
        """Sha256 (hex) of what turns a text of this language into a vector: body, rows, segmentation."""
        table = SHARED if self.vocabulary is None else self.vocabulary.table_name(language)
        return self._cached(f"text:{table}", lambda: self._hash_text_tower(table))

    def forget_fingerprints(self) -> None:
        """Drops the remembered fingerprints; call after changing a parameter or the vocabulary."""
        self._fingerprints.clear()

    def _cached(self, name: str, compute: Callable[[], str]) -> str:
        if name not in self._fingerprints:
            self._fingerprints[name] = compute()
        return self._fingerprints[name]

    def _hash_image_tower(self) -> str:
        digest = hashlib.sha256(json.dumps(asdict(self.preprocessing), sort_keys=True).encode())
        digest.update(self.architecture.encode())
        hash_tensors(digest, image_tower(self.model).state_dict().items())
        return digest.hexdigest()

    def _hash_text_tower(self, table: str) -> str:
        digest = hashlib.sha256(self.architecture.encode())
        state = {k: v for k, v in self.model.state_dict().items() if is_text_body(k)}
        hash_tensors(digest, state.items())
        weight = token_table(self.model)
        if self.vocabulary is None or weight is None:
            hash_tensors(digest, [] if weight is None else [("tokens", weight)])
            return digest.hexdigest()
        segmentation = self.vocabulary.tables[table]
        digest.update(json.dumps(segmentation.merges).encode())
        tokens = sorted(segmentation.rows)
        digest.update(json.dumps(tokens).encode())
        special = [self.vocabulary.start_row, self.vocabulary.end_row]
        rows = torch.as_tensor([segmentation.rows[token] for token in tokens] + special)
        hash_tensors(digest, [("rows", weight.detach().cpu()[rows])])
        return digest.hexdigest()


def unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns rows divided by their length, (n, dim) float32."""
    tensor = functional.normalize(torch.from_numpy(np.ascontiguousarray(rows, dtype=np.float32)), dim=-1)
    return tensor.numpy()


@contextmanager
def training(encoder: Encoder) -> Iterator[None]:
    """Puts the model in train mode inside the block and back in eval mode after it."""
    encoder.model.train()
    try:
        yield
    finally:
        encoder.model.eval()
        encoder.forget_fingerprints()
