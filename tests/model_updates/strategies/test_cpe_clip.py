"""CPE-CLIP: prompts of several layers in both towers, laid beside a run by hand, and how far a chunk may move them."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.inserts import ENCODER
from model_updates.options import options_of
from model_updates.parts.deep_prompts import DeepImagePrompts, DeepTextPrompts
from model_updates.parts.text_blocks import text_blocks
from model_updates.strategies.cpe_clip import CpeClip
from model_updates.strategy import State
from model_updates.towers import image_tower
from tests.model_updates.contract import prospect_of
from tests.model_updates.tiny import (
    CONTEXT_LENGTH,
    assert_same_state,
    context_for,
    data_for,
    draw,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)


def begun(
    pairs_before: int = 0, **options: Any
) -> tuple[CpeClip, Encoder, DeepImagePrompts, DeepTextPrompts]:
    encoder, strategy = tiny_encoder(), make_strategy("cpe-clip", **options)
    assert isinstance(strategy, CpeClip)
    if pairs_before:
        strategy.carry(State(facts={"pairs": pairs_before}))
    strategy.before_update(context_for(encoder, toy_pairs()))
    image, text = encoder.inserts
    assert isinstance(image, DeepImagePrompts)
    assert isinstance(text, DeepTextPrompts)
    return strategy, encoder, image, text


def test_a_picture_runs_as_by_hand() -> None:
    _, encoder, image, text = begun()
    tower: Any = image_tower(encoder.model)
    pixels = encoder.prepare_images([draw("red circle"), draw("blue bar")])
    prompts = image.map(text.prompts)
    assert prompts.shape == (2, 2, 32)
    hidden = tower._embeds(pixels)
    hidden = torch.cat([hidden, prompts[0].expand(2, -1, -1)], dim=1)
    hidden = tower.transformer.resblocks[0](hidden)
    hidden = torch.cat([hidden[:, :-2], prompts[1].expand(2, -1, -1)], dim=1)
    hidden = tower.transformer.resblocks[1](hidden)
    by_hand = tower.ln_post(hidden)[:, 0] @ tower.proj
    assert torch.allclose(encoder.forward_images(pixels), by_hand, atol=1e-6)


def test_a_text_runs_as_by_hand_and_is_read_at_its_end() -> None:
    _, encoder, _, text = begun()
    model: Any = encoder.model
    tokens = encoder.tokenize(["a red circle on paper"], "en")
    words, end = model.token_embedding(tokens), int((tokens[0] == model.text_eos_id).int().argmax())
    hidden = torch.cat([words[:, :1], text.prompts[:1], words[:, 1:]], dim=1)
    length = hidden.shape[1]
    hidden = hidden + model.positional_embedding[:length]
    blocks: list[nn.Module] = text_blocks(model)
    mask = model.attn_mask[:length, :length]
    hidden = blocks[0](hidden, attn_mask=mask)
    hidden = torch.cat([hidden[:, :1], text.prompts[1:2], hidden[:, 3:]], dim=1)
    hidden = blocks[1](hidden, attn_mask=mask)
    by_hand = model.ln_final(hidden)[:, end + 2] @ model.text_projection
    assert torch.allclose(encoder.forward_tokens(tokens, "en"), by_hand, atol=1e-6)


def test_prompts_of_one_layer_pass_through_the_others() -> None:
    _, encoder, image, _ = begun(depth=1)
    assert image.made().shape == (1, 2, 32)
    pixels = encoder.prepare_images([draw("red circle")])
    tower: Any = image_tower(encoder.model)
    hidden = torch.cat([tower._embeds(pixels), image.made()[:1]], dim=1)
    by_hand = tower.ln_post(tower.transformer(hidden))[:, 0] @ tower.proj
    assert torch.allclose(encoder.forward_images(pixels), by_hand, atol=1e-6)


def test_no_hook_stays_behind() -> None:
    plain = tiny_encoder()
    _, encoder, _, _ = begun()
    pictures, texts = [draw("red circle")], ["a red circle on paper"]
    assert not (encoder.encode_images(pictures) == plain.encode_images(pictures)).all()
    assert not (encoder.encode_texts(texts, "en") == plain.encode_texts(texts, "en")).all()
    encoder.inserts.clear()
    assert (encoder.encode_images(pictures) == plain.encode_images(pictures)).all()
    assert (encoder.encode_texts(texts, "en") == plain.encode_texts(texts, "en")).all()


def test_both_towers_teach_the_same_prompts() -> None:
    _, encoder, image, text = begun()
    pixels = encoder.prepare_images([draw("red circle")])
    encoder.forward_images(pixels).sum().backward()  # type: ignore[no-untyped-call]
    from_pictures = text.prompts.grad
    assert from_pictures is not None
    assert float(from_pictures.abs().sum()) > 0
    assert image.map.weight.grad is not None


def test_towers_stay_bit_identical_and_pictures_keep_what_the_map_made() -> None:
    encoder = tiny_encoder()
    before = {k: v.clone() for k, v in encoder.model.state_dict().items()}
    teach(encoder, make_strategy("cpe-clip"))
    assert_same_state(encoder.model.state_dict(), before)
    image, text = encoder.inserts
    assert isinstance(image, DeepImagePrompts)
    assert torch.equal(image.prompts, image.map(text.prompts))
    assert float(image.prompts.abs().sum()) > 0


def test_a_second_update_goes_on_with_the_same_prompts_and_the_same_link() -> None:
    encoder = tiny_encoder()
    first = make_strategy("cpe-clip")
    teach(encoder, first)
    once = encoder.state()["inserts.0.prompts"].clone()
    second = make_strategy("cpe-clip")
    second.carry(first.carried())
    report = teach(encoder, second, toy_pairs("en"))
    assert len(encoder.inserts) == 2
    assert not torch.equal(encoder.state()["inserts.0.prompts"], once)
    assert "Gradients were multiplied by 0.50, the chunk's share of all pairs taught." in report.notes
    assert second.carried().facts == {"pairs": 32}


def gradients(pairs_before: int) -> list[Tensor]:
    strategy, encoder, _, _ = begun(pairs_before)
    data = data_for(strategy, context_for(tiny_encoder(), toy_pairs()))
    batch = next(iter(Batches(data.train, encoder, size=8, load_image=draw).epoch(0)))
    strategy.terms(batch)["contrastive"].backward()  # type: ignore[no-untyped-call]
    strategy.after_backward(0.1)
    return [p.grad for group in strategy.parameter_groups() for p in group.parameters if p.grad is not None]


def test_a_chunk_moves_prompts_by_its_share_in_all_pairs() -> None:
    whole, quarter = gradients(0), gradients(48)
    for one, other in zip(whole, quarter, strict=True):
        assert torch.allclose(other, one / 4, rtol=1e-5, atol=1e-9)


def test_it_trains_with_momentum_and_no_adam() -> None:
    strategy, encoder, _, _ = begun()
    schedule = strategy.schedule(encoder)
    assert (schedule.optimizer, schedule.betas[0], schedule.weight_decay) == ("sgd", 0.9, 1e-5)


def test_depth_0_takes_every_layer_and_more_than_there_are_is_cut() -> None:
    assert len(begun(depth=0)[3].prompts) == 2
    assert len(begun(depth=9)[3].prompts) == 2
    with pytest.raises(BadStrategyOption, match="prompts of 3 layers do not go into a tower of 2"):
        DeepTextPrompts.build(ENCODER, {"depth": 3, "length": 2}, tiny_encoder().model)


def test_a_text_that_no_longer_fits_keeps_its_end() -> None:
    _, encoder, _, _ = begun()
    words = "red circle green square blue bar black dot red circle green square blue bar"
    room = CONTEXT_LENGTH - 2 - 2
    fits = " ".join(words.split()[:room])
    vectors = encoder.encode_texts([fits, words + " black dot"], "en")
    assert vectors[1] == pytest.approx(vectors[0], abs=1e-6)


def test_what_takes_no_prompts_is_refused() -> None:
    assert "leave no room for words" in str(
        make_strategy("cpe-clip", length=14).fits(prospect_of(tiny_encoder()))
    )
    resnet = tiny_encoder(architecture="tiny-resnet")
    assert "none that we know" in str(make_strategy("cpe-clip").fits(prospect_of(resnet)))
    with pytest.raises(BadStrategyOption, match="length is at least 1"):
        options_of(CpeClip, {"length": 0})
