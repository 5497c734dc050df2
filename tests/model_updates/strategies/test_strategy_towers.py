"""Every strategy on other towers than a ViT beside CLIP's own text tower: it works there, or says why it cannot.

Who trains both towers whole has no reason to refuse any, and who leaves the image tower alone none to refuse another
one; a text tower that is CLIP's in all but its place is refused by nobody. That a refusal is not too easy is part of
the claim.
"""

from pathlib import Path
from typing import Any

import pytest

from model_updates.versions import load_version, write_version
from tests.model_updates import later_process
from tests.model_updates.contract import (
    CASES,
    MAKES_TEXTS,
    MODULES_ALONE,
    PUT_TOGETHER,
    WHOLE_OF_EACH_KIND,
    brought,
    first_update,
    made,
    prospect_of,
    trains_whole_towers,
)
from tests.model_updates.tiny import TEXT_ONLY, assert_same_state, tiny_encoder

RESNET, CUSTOM_TEXT, BOTH_WAYS = "tiny-resnet", "tiny-custom-text", "tiny-both-ways"
IN_TRANSFORMERS = {"l2p", "cpe-clip", "moe-adapters"}
"""What they train stands among the tokens of a transformer; a ResNet has none."""
WHOLE_AND_ASKED = {"finetune", "ewc", "c-clip", "incclip"}
"""Of those who train whole towers, the plain one, one that weighs each parameter, and those that add parts."""


def may_refuse(name: str, architecture: str) -> bool:
    """Whether a strategy's own idea needs what the towers of an architecture lack."""
    if architecture == CUSTOM_TEXT:
        return False
    if architecture == RESNET:
        return name in IN_TRANSFORMERS
    if trains_whole_towers(name):
        return name in MAKES_TEXTS
    return name not in MODULES_ALONE


def adds_nothing(name: str, architecture: str) -> bool:
    """Whether other strategies show the same of these towers.

    Who trains whole towers never looks into one, and who leaves the image tower alone never into a ResNet.
    """
    if trains_whole_towers(name):
        return name not in (WHOLE_OF_EACH_KIND if architecture == RESNET else WHOLE_AND_ASKED)
    is_text_alone = architecture == RESNET and name in TEXT_ONLY and name != "language-tables"
    return name in PUT_TOGETHER or is_text_alone


def cases() -> list[Any]:
    return [
        pytest.param(name, towers, marks=[pytest.mark.slow] if adds_nothing(name, towers) else [])
        for towers in (RESNET, CUSTOM_TEXT, BOTH_WAYS)
        for name in CASES
    ]


@pytest.mark.parametrize(("name", "architecture"), cases())
def test_it_works_with_other_towers_or_says_why_it_cannot(
    name: str, architecture: str, tmp_path: Path
) -> None:
    refused = made(name).fits(prospect_of(tiny_encoder(architecture=architecture)))
    if refused is not None:
        assert may_refuse(name, architecture), refused
        assert len(refused.split()) > 8, "a sentence"
        assert not refused.endswith("."), "the caller ends it"
        assert "use " in refused.lower(), "what to do instead"
        return
    update = first_update(name, architecture)
    before, after, (language, domain) = update.before, update.after, brought(name, 1)
    assert ("image" in update.strategy.touches) == (
        after.image_fingerprint(domain) != before.image_fingerprint(domain)
    )
    assert ("text" in update.strategy.touches) == (
        after.text_fingerprint(language) != before.text_fingerprint(language)
    )
    if CASES[name].embeds_again or "image" not in update.strategy.touches:
        assert after.image_fingerprint() == before.image_fingerprint()
    write_version(tmp_path / "version", after, {})
    opened = load_version(tmp_path / "version").encoder
    assert_same_state(later_process.answers(opened), later_process.answers(after))
