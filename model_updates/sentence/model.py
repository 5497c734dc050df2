"""The towers of a sentence-transformers CLIP model, as `Encoder` asks for them, built from a blueprint of plain values.

A blueprint is what a version keeps beside the weights, so that it opens again without the folders it came from::

    image      transformers' CLIP vision configuration
    text       kind "clip" with CLIP's text configuration; or "pooled" with that of any transformer, `pooling`, and
               `layers` behind it ("dense", "normalize")
    tokens     most that a text may have, the id of padding, whether texts are lower-cased first

Only the classes named here are ever built, whatever a folder asks for.
"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from model_updates.kept_tokenizer import PADDING

FIRST_LOG_SCALE = 2.6592
POOLINGS = ("mean", "cls", "max")
ACTIVATIONS: dict[str, type[nn.Module]] = {
    "Identity": nn.Identity,
    "Tanh": nn.Tanh,
    "ReLU": nn.ReLU,
    "GELU": nn.GELU,
}

Blueprint = Mapping[str, Any]


class SentenceClip(nn.Module):
    """Both towers in one joint space."""

    def __init__(self, blueprint: Blueprint) -> None:
        super().__init__()
        self.blueprint = dict(blueprint)  # what it was built from
        self.visual = ImageTower(blueprint["image"])  # prepared pixels (n, 3, size, size) to (n, dim)
        said = blueprint["text"]
        # token rows (n, length), `PADDING` behind each text, to (n, dim)
        self.text: TextTower = (ClipText if said["kind"] == "clip" else PooledText)(said, blueprint["tokens"])
        self.logit_scale = nn.Parameter(torch.tensor(FIRST_LOG_SCALE))

    def encode_image(self, pixels: Tensor) -> Tensor:
        """Returns raw image features (n, dim)."""
        features: Tensor = self.visual(pixels)
        return features

    def encode_text(self, tokens: Tensor) -> Tensor:
        """Returns raw text features (n, dim)."""
        features: Tensor = self.text(tokens)
        return features


class ImageTower(nn.Module):
    """CLIP's vision transformer with its projection."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        from transformers import CLIPVisionConfig, CLIPVisionModelWithProjection

        super().__init__()
        self.clip = CLIPVisionModelWithProjection(CLIPVisionConfig(**config))

    def forward(self, pixels: Tensor) -> Tensor:
        """Maps (n, 3, size, size) to (n, dim)."""
        features: Tensor = self.clip(pixel_values=pixels).image_embeds
        return features


class TextTower(nn.Module):
    """Token rows to features; what lies behind a text is cut off or masked."""

    def __init__(self, tokens: Mapping[str, Any]) -> None:
        super().__init__()
        self.pad = int(tokens["pad"])

    def forward(self, rows: Tensor) -> Tensor:
        """Maps (n, length) int64 to (n, dim)."""
        mask = rows != PADDING
        longest = rows.shape[1]
        if len(rows) and not torch.compiler.is_exporting():  # a graph is the same for all texts
            longest = max(1, int(mask.sum(dim=1).max()))
        mask = mask[:, :longest]
        return self.features(rows[:, :longest].masked_fill(~mask, self.pad), mask)

    def features(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Maps ids (n, longest) and which of them are the text's to (n, dim)."""
        raise NotImplementedError


class ClipText(TextTower):
    """CLIP's own text transformer with its projection."""

    def __init__(self, said: Mapping[str, Any], tokens: Mapping[str, Any]) -> None:
        from transformers import CLIPTextConfig, CLIPTextModelWithProjection

        super().__init__(tokens)
        self.clip = CLIPTextModelWithProjection(CLIPTextConfig(**said["config"]))

    def features(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Returns the projected feature at each text's end."""
        found: Tensor = self.clip(input_ids=ids, attention_mask=mask.long()).text_embeds
        return found


class PooledText(TextTower):
    """Any transformer, pooled over the tokens of a text, with dense layers behind it."""

    def __init__(self, said: Mapping[str, Any], tokens: Mapping[str, Any]) -> None:
        from transformers import AutoConfig, AutoModel

        super().__init__(tokens)
        config = dict(said["config"])
        self.body = AutoModel.from_config(AutoConfig.for_model(config.pop("model_type"), **config))
        without_pooler(self.body)
        self.pooling = said["pooling"]
        self.layers = nn.ModuleList(
            Dense(layer) if layer["kind"] == "dense" else Normalize() for layer in said["layers"]
        )

    def features(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Returns the pooled feature behind the last layer."""
        hidden: Tensor = self.body(input_ids=ids, attention_mask=mask.long()).last_hidden_state
        pooled = pool(hidden, mask, self.pooling)
        for layer in self.layers:
            pooled = layer(pooled)
        return pooled


class Dense(nn.Module):
    """A linear layer with an activation."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        super().__init__()
        self.linear = nn.Linear(said["inputs"], said["outputs"], bias=said["bias"])
        self.activation = ACTIVATIONS[said["activation"]]()

    def forward(self, rows: Tensor) -> Tensor:
        """Maps (n, inputs) to (n, outputs)."""
        found: Tensor = self.activation(self.linear(rows))
        return found


class Normalize(nn.Module):
    """Rows of unit length."""

    def forward(self, rows: Tensor) -> Tensor:
        """Maps (n, dim) to the same shape."""
        return functional.normalize(rows, dim=-1)


def pool(hidden: Tensor, mask: Tensor, how: str) -> Tensor:
    """Pools (n, length, width) over the tokens that `mask` (n, length) marks: their mean, the first, or the largest."""
    if how == "cls":
        return hidden[:, 0]
    inside = mask[:, :, None]
    if how == "max":
        return hidden.masked_fill(~inside, float("-inf")).amax(dim=1)
    return (hidden * inside).sum(dim=1) / inside.sum(dim=1).clamp(min=1)


def without_pooler(body: nn.Module) -> None:
    """Takes out the head that BERT and its kin bring for sentence pairs: nothing reads it, and it would not train."""
    if getattr(body, "pooler", None) is not None:
        setattr(body, "pooler", None)  # noqa: B010 - mypy takes it for a module
