"""Captions in another language than the rest of their chunk."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.samples.scenes import all_scenes, caption
from model_updates.language_profiles import LanguageProfile
from model_updates.trust.other_language import other_language

SCENES = list(all_scenes())[::17][:300]
OTHERS = list(all_scenes())[5::17][:300]
PROFILES = {
    tag: LanguageProfile.learned_from(caption(scene, tag) for scene in OTHERS) for tag in ("en", "fr")
}


@pytest.mark.parametrize("language", ["de", "ru", "ja"])
@pytest.mark.parametrize("other", ["en", "fr"])
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_captions_in_another_language_are_told_one_by_one(language: str, other: str, share: float) -> None:
    texts = [caption(scene, language) for scene in SCENES]
    is_other = np.random.default_rng(0).random(len(texts)) < share
    mixed = [
        caption(scene, other) if at else text for scene, text, at in zip(SCENES, texts, is_other, strict=True)
    ]
    found = other_language(mixed, PROFILES)
    assert found is not None
    assert found.language == other
    assert found.share == pytest.approx(is_other.mean(), abs=0.02)
    assert (found.rows == is_other).mean() > 0.99


@pytest.mark.parametrize("language", ["de", "ru", "ja", "hi"])
def test_captions_of_one_language_are_not_mixed(language: str) -> None:
    assert other_language([caption(scene, language) for scene in SCENES], PROFILES) is None


def test_few_captions_say_nothing() -> None:
    assert other_language([caption(scene, "en") for scene in SCENES[:20]], PROFILES) is None
