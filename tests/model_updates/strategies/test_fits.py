"""What strategies say of a chunk before anything runs."""

from __future__ import annotations

import dataclasses

import open_clip
import pytest
import torch
from torch import nn

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.parts.two_towers import TwoTowers
from model_updates.prospect import Prospect, listed
from model_updates.segmenters import open_segmenter
from model_updates.strategies import STRATEGIES
from model_updates.vocabulary import Vocabulary
from tests.model_updates.photographs import photo_encoder
from tests.model_updates.tiny import (
    CONTEXT_LENGTH,
    DOMAIN,
    assert_same_state,
    make_strategy,
    teach,
    tiny_encoder,
)

TEACHERS = ("cll-clip", "teir", "language-tables")


def prospect(*languages: str, learned: frozenset[str] = frozenset({"en"}), **more: Encoder) -> Prospect:
    return Prospect(
        encoder=more.get("encoder") or tiny_encoder(),
        languages=frozenset(languages),
        domains=frozenset({DOMAIN}),
        learned_languages=learned,
        learned_domains=frozenset(),
    )


def without_blocks() -> Encoder:
    """The tiny encoder with a convolutional image tower."""
    ours = tiny_encoder()
    torch.manual_seed(0)
    model = open_clip.CLIP(
        embed_dim=24,
        vision_cfg={"image_size": 32, "layers": [1, 1, 1, 1], "width": 8, "head_width": 8},
        text_cfg={
            "context_length": CONTEXT_LENGTH,
            "vocab_size": len(ours.model.token_embedding.weight),  # type: ignore[union-attr, arg-type]
            "width": 32,
            "heads": 2,
            "layers": 2,
        },
    )
    return Encoder(
        model, architecture="tiny-resnet", preprocessing=ours.preprocessing, vocabulary=ours.vocabulary
    )


@pytest.mark.parametrize("name", list(STRATEGIES))
def test_every_strategy_fits_a_new_language_with_pictures_and_looks_only(name: str) -> None:
    facts = prospect("en", "de")
    before = {key: value.clone() for key, value in facts.encoder.model.state_dict().items()}
    reason = make_strategy(name).fits(facts)
    assert reason is None or (reason and not reason.endswith("."))
    assert_same_state(facts.encoder.model.state_dict(), before)


@pytest.mark.parametrize(
    "name",
    [name for name, kind in STRATEGIES.items() if issubclass(getattr(kind, "host_kind", kind), TwoTowers)],
)
def test_both_towers_are_not_trained_where_texts_lie_in_two_spaces(name: str) -> None:
    said = str(make_strategy(name).fits(prospect("de", encoder=photo_encoder())))
    assert said.startswith(f"{name} trains one text tower")
    assert "Use evergreen" in said
    assert make_strategy(name).fits(prospect("de")) is None


def test_an_update_of_both_towers_is_refused_before_anything_is_trained() -> None:
    for strategy in (make_strategy("finetune"), make_strategy("c-clip", adapters=False)):
        with pytest.raises(BadStrategyOption, match="perennial-photo reads texts by two"):
            teach(photo_encoder().copy(), strategy)


@pytest.mark.parametrize("name", TEACHERS)
def test_a_chunk_in_the_base_language_alone_has_no_language_to_teach(name: str) -> None:
    assert "captions in en alone" in str(make_strategy(name).fits(prospect("en")))
    assert make_strategy(name).fits(prospect("de")) is None


@pytest.mark.parametrize("name", [*TEACHERS, "der", "l2p"])
def test_a_tower_with_a_tokenizer_of_its_own_has_no_vocabulary_to_grow(name: str) -> None:
    foreign = tiny_encoder()
    foreign.vocabulary = None
    assert "brings a tokenizer of its own" in str(make_strategy(name).fits(prospect("de", encoder=foreign)))


def test_shared_words_of_a_foreign_segmentation_leave_tables_of_ones_own() -> None:
    foreign = tiny_encoder()
    foreign.vocabulary = Vocabulary.foreign(open_segmenter("use-multilingual-v3"), context_length=16)
    facts = prospect("hi", encoder=foreign)
    assert make_strategy("language-tables").fits(facts) is None
    for name in ("cll-clip", "teir"):
        assert "cannot grow; give the language a table of its own" in str(make_strategy(name).fits(facts))


def test_more_of_a_known_language_fits_only_where_it_has_a_table_of_its_own() -> None:
    encoder = tiny_encoder()
    known = frozenset({"en", "de"})
    again = prospect("de", "en", learned=known, encoder=encoder)
    assert "the languages of this chunk (de and en) are known already" in str(
        make_strategy("language-tables").fits(again)
    )
    assert make_strategy("cll-clip").fits(again) is None

    teach(encoder, make_strategy("language-tables"))

    assert make_strategy("language-tables").fits(again) is None
    assert (
        make_strategy("language-tables").fits(dataclasses.replace(again, languages=frozenset({"fr"}))) is None
    )


def of_another_kind() -> Encoder:
    """An encoder whose image tower has no blocks that we know."""
    encoder = tiny_encoder()
    encoder.model.visual = nn.Sequential(nn.Conv2d(3, 8, 3))
    return encoder


def test_adapters_and_prompts_need_blocks_that_they_know() -> None:
    resnet = prospect("en", encoder=without_blocks())
    refused = str(make_strategy("c-clip").fits(prospect("en", encoder=of_another_kind())))
    assert "blocks of a transformer or of CLIP's ResNet, and Sequential has none" in refused
    assert make_strategy("c-clip").fits(resnet) is None
    assert "prompts go into transformer towers, and ModifiedResNet is none" in str(
        make_strategy("l2p").fits(resnet)
    )
    assert make_strategy("c-clip").fits(prospect("en")) is None
    assert make_strategy("l2p").fits(prospect("en")) is None
    assert make_strategy("finetune").fits(resnet) is None


def test_evergreen_refuses_only_a_new_language_that_cannot_have_words() -> None:
    foreign = tiny_encoder()
    foreign.vocabulary = None
    evergreen = make_strategy("evergreen")
    assert evergreen.fits(prospect("en", "de", encoder=foreign)) is None, "deltas in the text tower"
    foreign.model.transformer.resblocks = nn.ModuleList([nn.Linear(32, 32)])  # type: ignore[union-attr]
    assert "brings a tokenizer of its own" in str(evergreen.fits(prospect("en", "de", encoder=foreign)))
    assert evergreen.fits(prospect("en", encoder=foreign)) is None
    assert evergreen.fits(prospect("de")) is None
    assert evergreen.fits(prospect("en", encoder=without_blocks())) is None


def test_an_adapter_needs_captions_that_can_be_read() -> None:
    adapters = make_strategy("domain-adapters")
    assert "(de is not)" in str(adapters.fits(prospect("de")))
    assert adapters.fits(prospect("de", "en")) is None


def test_names_are_listed_as_a_sentence_lists_them() -> None:
    assert listed({"de"}) == "de"
    assert listed({"fr", "de"}) == "de and fr"
    assert listed(["hi", "de", "fr"]) == "de, fr and hi"


def test_consolidation_without_adapters_needs_no_blocks_to_put_them_in() -> None:
    facts = prospect("en", encoder=of_another_kind())
    assert "adapters go into the blocks" in str(make_strategy("c-clip").fits(facts))
    assert make_strategy("c-clip", adapters=False).fits(facts) is None
