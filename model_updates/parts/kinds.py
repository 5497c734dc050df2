"""The kinds of inserts that an encoder can hold: one line each."""

from __future__ import annotations

from model_updates.inserts import Insert
from model_updates.parts.feature_head import FeatureHead

KINDS: dict[str, type[Insert]] = {
    FeatureHead.kind: FeatureHead,
}
