"""L2P: prompts that an input chooses, in both towers, and nothing else moves."""

import pytest
import torch

from model_updates.batches import Batches
from model_updates.errors import BadStrategyOption
from model_updates.inserts import ENCODER
from model_updates.pairs import Batch
from model_updates.parts.prompt_pool import ImagePrompts, PromptPool, TextPrompts
from model_updates.strategies.l2p import L2p
from tests.model_updates.tiny import (
    CONTEXT_LENGTH,
    assert_same_state,
    context_for,
    data_for,
    draw,
    image_ids,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

CONFIG = {"size": 6, "length": 2, "top": 2}


def begun() -> tuple[L2p, list[PromptPool], Batch]:
    encoder, strategy = tiny_encoder(), make_strategy("l2p", pool=12)
    assert isinstance(strategy, L2p)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    batch = next(iter(Batches(data.train, encoder, size=4, load_image=draw).epoch(0)))
    return strategy, [i for i in encoder.inserts if isinstance(i, PromptPool)], batch


def test_prompts_that_no_input_chose_have_no_gradient() -> None:
    strategy, pools, batch = begun()
    torch.stack(list(strategy.terms(batch).values())).sum().backward()  # type: ignore[no-untyped-call]
    for pool in pools:
        chosen = set(pool.chosen.flatten().tolist())
        assert 0 < len(chosen) < len(pool.prompts)
        for gradient in (pool.prompts.grad, pool.keys.grad):
            assert gradient is not None
            moved = {n for n in range(len(gradient)) if bool(gradient[n].any())}
            assert moved == chosen


def test_the_towers_and_the_table_stay_bit_identical() -> None:
    encoder = tiny_encoder()
    before = {k: v.clone() for k, v in encoder.model.state_dict().items()}
    teach(encoder, make_strategy("l2p"))
    assert_same_state(encoder.model.state_dict(), before)


def test_a_second_update_goes_on_with_the_same_pools() -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("l2p"))
    once = encoder.state()["inserts.0.prompts"].clone()
    teach(encoder, make_strategy("l2p"), toy_pairs("en"))
    assert len(encoder.inserts) == 2
    assert not torch.equal(encoder.state()["inserts.0.prompts"], once)


def test_a_chosen_key_is_the_nearest() -> None:
    pool = TextPrompts.build(ENCODER, CONFIG | {"top": 1}, tiny_encoder().model)
    pool.draw(torch.Generator().manual_seed(0))
    pool.tokens(pool.keys.detach()[[4, 2]] * 7)
    assert pool.chosen.tolist() == [[4], [2]]
    assert float(pool.pull.detach()) == pytest.approx(1.0, abs=1e-6)


def test_a_text_that_no_longer_fits_keeps_its_end() -> None:
    encoder = tiny_encoder()
    pool = TextPrompts.build(ENCODER, CONFIG, encoder.model)
    encoder.inserts.append(pool)
    words = "red circle green square blue bar black dot red circle green square blue bar"
    longer = encoder.encode_texts([words, words + " black dot"], "en")
    assert torch.isfinite(torch.from_numpy(longer)).all()
    room = CONTEXT_LENGTH - pool.added - 2
    fits = " ".join(words.split()[:room])
    alone = encoder.encode_texts([fits], "en")
    assert encoder.encode_texts([fits, words], "en")[0] == pytest.approx(alone[0], abs=1e-6)


def test_pictures_run_with_prompts_behind_the_class_token() -> None:
    encoder = tiny_encoder()
    pictures = [draw(image_id) for image_id in image_ids()[:2]]
    plain = encoder.encode_images(pictures)
    pool = ImagePrompts.build(ENCODER, CONFIG, encoder.model)
    pool.draw(torch.Generator().manual_seed(0))
    encoder.inserts.append(pool)
    assert not (encoder.encode_images(pictures) == plain).all()
    encoder.inserts.clear()
    assert (encoder.encode_images(pictures) == plain).all()  # no hook is left behind


def test_prompts_that_leave_no_room_for_words_are_refused() -> None:
    with pytest.raises(BadStrategyOption, match="leave no room for words in a context of 16"):
        TextPrompts.build(ENCODER, {"size": 9, "length": 5, "top": 3}, tiny_encoder().model)
