"""The fusion encoder itself: words attend to each other and to the patches of a picture.

As in ALBEF and CTP the layers stand on top of the text tower: in each, the words (and one token for the whole, CTP's
[CLS]) attend to each other, then to the patches. Two heads read what comes out: one says from the whole whether text
and picture belong together, one says from each word's place which word stands there.

Where we differ: CTP cuts a BERT in two and starts its fusion half from BERT's upper layers; CLIP's text tower is used
whole, and the layers start at random, norms first. The token for the whole starts from the products of the features
that search compares, whose sum is the cosine: what the towers have aligned is there from the first step, where ALBEF's
head stays undecided for a hundred (docs/log.md). The word head has no rows of its own: it compares directions with
those of the token table, which grows with the languages.

It is an insert of the encoder that no vector reads, so that versions with and without it have the same fingerprints.
Its configuration names the towers that it learned with: beside others it says nothing of use (`usable`).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.fusion.tokens import Read, no_tokens, patch_source, word_source
from model_updates.inserts import ENCODER, Insert, Owner
from model_updates.towers import hash_tensors, is_image_parameter, is_text_body

HEAD_WIDTH = 32
MLP_RATIO = 4
LARGEST_LOG_SCALE = math.log(100)


@dataclass(frozen=True)
class Texts:
    """What a fusion encoder reads of n texts."""

    words: Tensor  # (n, length, text width) tokens of the text tower
    real: Tensor  # (n, length) bool, which are no padding
    vectors: Tensor  # (n, dim) unit features

    def select(self, rows: Tensor) -> Texts:
        """Returns some of them."""
        return Texts(self.words[rows], self.real[rows], self.vectors[rows])


@dataclass(frozen=True)
class PictureFeatures:
    """What a fusion encoder reads of n pictures."""

    patches: Tensor  # (n, patches, width) what the layers attend to
    vectors: Tensor  # (n, dim) unit features

    def select(self, rows: Tensor) -> PictureFeatures:
        """Returns some of them."""
        return PictureFeatures(self.patches[rows], self.vectors[rows])


class FusionLayer(nn.Module):
    """One layer: words to words, words to patches, each word by itself; norms first."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm_words, self.norm_patches, self.norm_out = (nn.LayerNorm(width) for _ in range(3))
        self.to_words = nn.MultiheadAttention(width, heads, batch_first=True)
        self.to_patches = nn.MultiheadAttention(width, heads, batch_first=True)
        self.out = nn.Sequential(
            nn.Linear(width, MLP_RATIO * width), nn.GELU(), nn.Linear(MLP_RATIO * width, width)
        )

    def forward(self, words: Tensor, padding: Tensor, patches: Tensor) -> Tensor:
        """Returns (n, length, width) words; `padding` (n, length) bool says which are none."""
        given = self.norm_words(words)
        words = words + self.to_words(given, given, given, key_padding_mask=padding, need_weights=False)[0]
        words = words + self.to_patches(self.norm_patches(words), patches, patches, need_weights=False)[0]
        fused: Tensor = words + self.out(self.norm_out(words))
        return fused


class FusionEncoder(Insert):
    """Layers over the words of a text that attend to the patches of a picture, and two heads.

    Attributes:
        mask: (text width,) what the text tower reads in the place of a hidden word.
        whole: (width,) the token that stands for text and picture together.
    """

    kind: ClassVar[str] = "fusion"
    tower: ClassVar[str] = "fusion"
    runs_in_tower: ClassVar[bool] = False

    def __init__(self, owner: Owner, config: Mapping[str, Any]) -> None:
        super().__init__(owner, config)
        text, width = int(config["text_width"]), int(config["width"])
        patch, dim = int(config["image_width"]), int(config["dim"])
        self.mask = nn.Parameter(0.02 * torch.randn(text))
        self.whole = nn.Parameter(0.02 * torch.randn(width))
        self.read_patches = nn.Sequential(nn.LayerNorm(patch), nn.Linear(patch, width), nn.LayerNorm(width))
        self.read_words = nn.Sequential(nn.LayerNorm(text), nn.Linear(text, width))
        self.read_products = nn.Linear(dim, width)
        heads = max(n for n in range(1, max(1, width // HEAD_WIDTH) + 1) if width % n == 0)
        self.layers = nn.ModuleList(FusionLayer(width, heads) for _ in range(int(config["layers"])))
        self.norm = nn.LayerNorm(width)
        self.match = nn.Linear(width, 1)
        self.name_word = nn.Sequential(nn.Linear(width, text), nn.GELU(), nn.LayerNorm(text))
        # Cosines of random directions have a deviation of 1 / sqrt(width): logits begin with one of 1.
        self.log_scale = nn.Parameter(torch.tensor(math.log(text) / 2))

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes a fusion encoder with random weights, from torch's generator, on the model's device."""
        return cls(owner, config).to(next(model.parameters()).device)

    def pictures(self, read: Read) -> PictureFeatures:
        """Returns what the layers attend to of pictures as an image tower reads them."""
        return PictureFeatures(self.read_patches(read.tokens), normalize(read.features, dim=-1))

    def texts(self, read: Read, real: Tensor) -> Texts:
        """Returns what the layers read of texts as a text tower reads them; `real` says which tokens are no padding."""
        return Texts(read.tokens, real.to(read.tokens.device), normalize(read.features, dim=-1))

    def forward(self, texts: Texts, pictures: PictureFeatures) -> tuple[Tensor, Tensor]:
        """Fuses n texts with as many pictures: (n, width) the whole, and (n, length, width) the words."""
        dim = texts.vectors.shape[-1]
        products = math.sqrt(dim) * texts.vectors * pictures.vectors
        whole = (self.whole + self.read_products(products))[:, None]
        hidden = torch.cat([whole, self.read_words(texts.words)], dim=1)
        padding = torch.cat([torch.zeros_like(texts.real[:, :1]), ~texts.real], dim=1)
        for layer in self.layers:
            hidden = layer(hidden, padding, pictures.patches)
        hidden = self.norm(hidden)
        return hidden[:, 0], hidden[:, 1:]

    def log_odds(self, whole: Tensor) -> Tensor:
        """Returns (n,) the log-odds that text and picture belong together."""
        odds: Tensor = self.match(whole).squeeze(-1)
        return odds

    def word_logits(self, places: Tensor, table: Tensor) -> Tensor:
        """Returns (m, rows) logits of which row of the token table stands at each of m places (m, width)."""
        scale = self.log_scale.clamp(0, LARGEST_LOG_SCALE).exp()
        return scale * normalize(self.name_word(places), dim=-1) @ normalize(table.float(), dim=-1).T


def fusion_of(encoder: Encoder) -> FusionEncoder | None:
    """Returns the encoder's fusion encoder, None where it has none."""
    return next((insert for insert in encoder.inserts if isinstance(insert, FusionEncoder)), None)


def new_fusion(encoder: Encoder, layers: int) -> FusionEncoder:
    """Makes a fusion encoder for an encoder's towers, as wide as its words, with random weights.

    Raises:
        BadStrategyOption: the towers give no tokens.
    """
    images, texts = patch_source(encoder.model), word_source(encoder.model)
    if images is None or texts is None:
        raise BadStrategyOption(f"{encoder.architecture} has a tower whose tokens no fusion encoder can read")
    config = {"image_width": images.width, "text_width": texts.width, "width": texts.width}
    config |= {"dim": encoder.dim, "layers": layers}
    return FusionEncoder.build(ENCODER, config, encoder.model)


def usable(encoder: Encoder) -> str | None:
    """Says why an encoder's fusion encoder cannot be asked, None when it can."""
    fusion = fusion_of(encoder)
    if fusion is None:
        return "it has no fusion encoder; `ctp` with fusion=yes teaches one"
    if fusion.config.get("towers") != towers_digest(encoder):
        return (
            "its towers have moved since its fusion encoder learned; teach it again with `ctp` and fusion=yes"
        )
    return no_tokens(encoder)


def towers_digest(encoder: Encoder) -> str:
    """Returns the sha256 (hex) of what gives a fusion encoder its tokens, token table and languages' inserts apart."""
    digest = hashlib.sha256()
    state = encoder.model.state_dict().items()
    hash_tensors(digest, ((n, v) for n, v in state if is_image_parameter(n) or is_text_body(n)))
    for insert in encoder.inserts:
        if insert.owner == ENCODER and insert.tower in {"image", "text"}:
            digest.update(insert.digest().encode())
    return digest.hexdigest()
