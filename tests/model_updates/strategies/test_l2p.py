"""L2P: prompts that an input chooses, in both towers, and nothing else moves."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.inserts import ENCODER, domain, language
from model_updates.options import options_of
from model_updates.pair_sets import Batch
from model_updates.parts.low_rank import LowRank
from model_updates.parts.prompt_pool import ImagePrompts, PromptPool, TextPrompts
from model_updates.parts.text_inserts import TextLowRank
from model_updates.strategies.l2p import L2p
from model_updates.strategy import Epochs
from tests.model_updates.tiny import (
    CONTEXT_LENGTH,
    NEGATIVE,
    assert_same_state,
    context_for,
    data_for,
    draw,
    image_ids,
    make_strategy,
    quick,
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
    return strategy, pools_of(encoder), batch


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


def test_the_pull_sums_over_the_keys_of_an_input_and_averages_over_inputs() -> None:
    pool = ImagePrompts.build(ENCODER, {"size": 3, "length": 1, "top": 2}, tiny_encoder().model)
    with torch.no_grad():
        pool.keys[:, :2] = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]])
    queries = torch.zeros(2, pool.keys.shape[1])
    queries[0, 0], queries[1, 1] = 5.0, 3.0
    pool.tokens(queries)
    assert pool.chosen.tolist() == [[0, 1], [1, 0]]
    # 1 + 0.6 of the first input's keys, 0.8 + 0 of the second's.
    assert float(pool.pull.detach()) == pytest.approx((1.6 + 0.8) / 2)


def test_the_keys_term_is_of_all_inputs_whatever_routes_they_take() -> None:
    encoder, pairs = tiny_encoder(), toy_pairs()
    pairs = [replace(pair, domain=NEGATIVE) if n % 4 == 0 else pair for n, pair in enumerate(pairs)]
    pairs = [replace(pair, language="fr") if n % 3 == 0 else pair for n, pair in enumerate(pairs)]
    for insert in (
        LowRank.build(domain(NEGATIVE), LowRank.configuration(encoder.model, rank=4, alpha=8), encoder.model),
        TextLowRank.build(language("fr"), {"rank": 4, "alpha": 8.0}, encoder.model),
    ):
        shaken = torch.Generator().manual_seed(0)
        for up in insert.up:
            nn.init.normal_(up, std=0.3, generator=shaken)
        encoder.inserts.append(insert.requires_grad_(False))
    strategy = make_strategy("l2p", top=2)
    context = context_for(encoder, pairs)
    data = data_for(strategy, context)
    strategy.before_update(context)
    batch = next(iter(Batches(data.train, encoder, size=16, load_image=draw).epoch(0)))
    expected = torch.zeros(())
    for pool, queries in zip(pools_of(encoder), queries_of(encoder, batch), strict=True):
        cosines = normalize(queries, dim=-1) @ normalize(pool.keys.detach(), dim=-1).T
        expected -= 0.1 * cosines.topk(2, dim=1).values.sum(dim=1).mean()
    for _ in range(2):  # a second batch starts anew
        assert float(strategy.terms(batch)["keys"].detach()) == pytest.approx(float(expected), abs=1e-6)
        assert [len(pool.chosen) for pool in pools_of(encoder)] == [16, 16]


def test_nothing_is_kept_of_what_validation_and_other_updates_choose() -> None:
    kept: list[int] = []

    class Watched(L2p):
        def before_epoch(self, epoch: int, batches: Epochs) -> None:
            kept.extend(len(pool.choices) for pool in self._pools)

    encoder = tiny_encoder()
    teach(encoder, Watched(options_of(L2p, quick(L2p))), validation=toy_pairs())
    assert kept == [0, 0, 1, 1], "before the second epoch what the last batch chose"
    teach(encoder, make_strategy("finetune"))
    assert not any(pool.choices or pool.cosines for pool in pools_of(encoder))


def pools_of(encoder: Encoder) -> list[PromptPool]:
    return [insert for insert in encoder.inserts if isinstance(insert, PromptPool)]


def queries_of(encoder: Encoder, batch: Batch) -> tuple[Tensor, Tensor]:
    """Features of the batch without prompts, each input on its own route."""
    assert batch.images is not None
    own, encoder.inserts = encoder.inserts, [i for i in encoder.inserts if not isinstance(i, PromptPool)]
    with torch.no_grad():
        found = (
            encoder.forward_images(batch.images, batch.domains),
            encoder.forward_tokens(batch.tokens, batch.languages),
        )
    encoder.inserts = own
    return found


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
