"""The kinds of inserts that an encoder can hold: one line each."""

from __future__ import annotations

from model_updates.inserts import Insert
from model_updates.parts.feature_head import FeatureHead
from model_updates.parts.prompt_pool import ImagePrompts, TextPrompts

KINDS: dict[str, type[Insert]] = {
    FeatureHead.kind: FeatureHead,
    ImagePrompts.kind: ImagePrompts,
    TextPrompts.kind: TextPrompts,
}
