"""MoE-Adapters: gates, a block by hand, whose router reads what, and which experts no later update moves."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.options import options_of
from model_updates.parts.experts import Experts, ImageExperts, TextExperts
from model_updates.parts.selectors import NOBODY, Selector, selected
from model_updates.strategies.moe_adapters import MoeAdapters
from model_updates.strategy import UpdateContext
from model_updates.towers import image_tower
from model_updates.trainer import TrainingReport, run_update
from model_updates.validation import validation_scores
from tests.model_updates.contract import prospect_of
from tests.model_updates.tiny import (
    DOMAIN,
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


def frozen_encoder() -> Encoder:
    """The plain towers without gradients: attention then takes the same path as in the frozen towers of a strategy."""
    encoder = tiny_encoder()
    encoder.model.requires_grad_(False)
    return encoder


def begun(**options: Any) -> tuple[MoeAdapters, Encoder, ImageExperts, TextExperts]:
    """A strategy that is ready to train, its encoder in eval mode, and the experts of both towers."""
    encoder, strategy = tiny_encoder(), make_strategy("moe-adapters", **options)
    assert isinstance(strategy, MoeAdapters)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    strategy.take(data)
    image, text = encoder.inserts
    assert isinstance(image, ImageExperts)
    assert isinstance(text, TextExperts)
    encoder.train(False)
    return strategy, encoder, image, text


def filled(experts: Experts, seed: int = 1) -> None:
    """Gives experts and routers something to say."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in (experts.up, *experts.gates, *experts.noises):
            parameter.copy_(torch.randn(parameter.shape, generator=generator))


def pixels_of(encoder: Encoder, count: int = 6) -> Tensor:
    return encoder.prepare_images([draw(name) for name in image_ids()[:count]])


@pytest.mark.parametrize("training", [True, False])
def test_at_first_it_gives_what_the_plain_towers_give(training: bool) -> None:
    plain = frozen_encoder()
    _, encoder, _, _ = begun()
    encoder.train(training)
    plain.train(training)
    pixels, tokens = pixels_of(encoder), encoder.tokenize(["a red circle on paper"], "en")
    with torch.no_grad():
        assert torch.equal(encoder.forward_images(pixels), plain.forward_images(pixels))
        assert torch.equal(encoder.forward_tokens(tokens, "en"), plain.forward_tokens(tokens, "en"))


@pytest.mark.parametrize("training", [True, False])
def test_gates_sum_to_one_with_two_that_are_not_zero(training: bool) -> None:
    _, _, image, _ = begun()
    filled(image)
    image.train(training)
    first = torch.randn(7, 32, generator=torch.Generator().manual_seed(0))
    weights = image.weights(1, torch.zeros(7, dtype=torch.int64), first)
    assert (weights > 0).sum(dim=1).tolist() == [2] * 7
    assert torch.allclose(weights.sum(dim=1), torch.ones(7))


def test_a_gate_is_the_softmax_over_the_two_best_logits_and_noise_comes_in_training_only() -> None:
    _, _, image, _ = begun()
    filled(image)
    image.train(False)
    first = torch.randn(3, 32, generator=torch.Generator().manual_seed(0))
    router = torch.zeros(3, dtype=torch.int64)
    best, chosen = (first @ image.gates[0][0]).topk(2, dim=1)
    by_hand = torch.zeros(3, 4).scatter(1, chosen, best.softmax(dim=1))
    assert torch.allclose(image.weights(0, router, first), by_hand)
    image.train(True)
    torch.manual_seed(0)
    noisy = image.weights(0, router, first)
    assert not torch.allclose(noisy, by_hand)
    assert not torch.allclose(image.weights(0, router, first), noisy)


def test_a_picture_runs_as_by_hand() -> None:
    _, encoder, image, _ = begun()
    filled(image)
    image.newest_selector.threshold.fill_(1e9)  # everything is its own
    tower: Any = image_tower(encoder.model)
    pixels = pixels_of(encoder)
    with torch.no_grad():
        hidden = tower._embeds(pixels)
        for number, block in enumerate(tower.transformer.resblocks):
            seen = block.ln_1(hidden)
            hidden = hidden + block.attn(seen, seen, seen, need_weights=False)[0]
            mixed = hidden + block.mlp(block.ln_2(hidden))
            for row, stream in enumerate(hidden):
                logits = stream[0] @ image.gates[0][number]
                best, chosen = logits.topk(2)
                for weight, expert in zip(best.softmax(dim=0), chosen.tolist(), strict=True):
                    inner = (stream @ image.down[number, expert]).relu()
                    mixed[row] += weight * 0.1 * (inner @ image.up[number, expert])
            hidden = mixed
        by_hand = tower.ln_post(hidden)[:, 0] @ tower.proj
        assert torch.allclose(encoder.forward_images(pixels), by_hand, atol=1e-5)


def test_a_text_is_routed_by_its_end_and_not_by_its_start() -> None:
    _, encoder, _, text = begun()
    filled(text)
    text.newest_selector.threshold.fill_(1e9)
    seen: list[Tensor] = []
    original = text.weights

    def watched(block: int, routers: Tensor, first: Tensor) -> Tensor:
        seen.append(first)
        return original(block, routers, first)

    text.weights = watched  # type: ignore[method-assign]
    encoder.encode_texts(["a red circle on paper", "a blue bar on paper"], "en")
    assert len(seen) == 2
    assert not torch.allclose(seen[0][0], seen[0][1])  # the start token's would be the same
    longer = encoder.encode_texts(["a red circle on paper", "a red circle on paper a blue bar"], "en")
    assert longer[0] == pytest.approx(encoder.encode_texts(["a red circle on paper"], "en")[0], abs=1e-6)


def test_what_no_selector_knows_runs_plain_beside_what_one_knows() -> None:
    plain = frozen_encoder()
    _, encoder, image, _ = begun()
    filled(image)
    pixels = pixels_of(encoder)
    base = plain.forward_images(pixels)
    errors = image.newest_selector.errors(base)
    image.newest_selector.threshold.copy_(errors.median())
    known = errors <= errors.median()
    assert 0 < int(known.sum()) < len(known)
    with torch.no_grad():
        found = encoder.forward_images(pixels)
    assert torch.equal(found[~known], base.detach()[~known])
    assert not any(torch.allclose(a, b) for a, b in zip(found[known], base[known], strict=True))


def clouds(count: int = 200, dim: int = 24) -> tuple[Tensor, Tensor]:
    """Two kinds of features, each in a plane of its own."""
    generator = torch.Generator().manual_seed(0)
    planes = [torch.randn(3, dim, generator=generator) for _ in range(2)]
    return tuple(torch.randn(count, 3, generator=generator) @ plane for plane in planes)  # type: ignore[return-value]


def test_a_feature_goes_to_the_selector_that_rebuilds_it_best_or_to_nobody() -> None:
    first, second = clouds()
    selectors = [Selector(24, 6), Selector(24, 6)]
    for selector, features in zip(selectors, (first, second), strict=True):
        selector.fit(features, share=0.95, seed=0)
    routed = [selected(selectors, features) for features in (first, second)]
    assert [float((rows == n).float().mean()) > 0.9 for n, rows in enumerate(routed)] == [True, True]
    strange = torch.randn(200, 24, generator=torch.Generator().manual_seed(9))
    assert float((selected(selectors, strange) == NOBODY).float().mean()) > 0.9
    assert selected([], strange).tolist() == [NOBODY] * 200
    assert not any(parameter.requires_grad for parameter in selectors[0].parameters())


def test_a_selector_learns_the_same_from_the_same_wherever_the_random_sequence_is() -> None:
    first, _ = clouds()
    one, other = Selector(24, 6), Selector(24, 6)
    one.fit(first, share=0.9, seed=4)
    torch.rand(9)
    other.fit(first, share=0.9, seed=4)
    assert_same_state(one.state_dict(), other.state_dict())


def test_the_two_most_used_experts_of_each_block_are_frozen() -> None:
    _, _, image, _ = begun()
    image.used.copy_(torch.tensor([[5, 1, 9, 0], [0, 7, 2, 3]]))
    image.end()
    assert image.frozen.tolist() == [[True, False, True, False], [False, True, False, True]]
    assert int(image.used.sum()) == 0
    assert image.learning is None


def test_use_is_counted_in_training_only() -> None:
    _, encoder, image, _ = begun()
    encoder.forward_images(pixels_of(encoder))
    assert int(image.used.sum()) == 0
    encoder.train(True)
    encoder.forward_images(pixels_of(encoder))
    assert image.used.sum(dim=1).tolist() == [12, 12]


def test_frozen_experts_and_old_routers_stay_bit_identical_in_a_second_update() -> None:
    encoder = tiny_encoder()
    teach(encoder, make_strategy("moe-adapters", epochs=4, towers="both"))
    image, text = (insert for insert in encoder.inserts if isinstance(insert, Experts))
    before = {n: {k: v.clone() for k, v in i.state_dict().items()} for n, i in enumerate((image, text))}
    report = teach(encoder, make_strategy("moe-adapters", epochs=4, towers="both"), toy_pairs("en"))
    assert len(encoder.inserts) == 2
    for number, experts in enumerate((image, text)):
        was, now = before[number], experts.state_dict()
        frozen = was["frozen"]
        assert frozen.sum(dim=1).tolist() == [2, 2]
        for name in ("down", "up"):
            assert torch.equal(now[name][frozen], was[name][frozen])
            assert not torch.equal(now[name][~frozen], was[name][~frozen])
        for name in ("gates.0", "noises.0", "selectors.0.squeeze.weight", "selectors.0.threshold"):
            assert torch.equal(now[name], was[name])
        assert len(experts.gates) == experts.config["routers"] == 2
        assert float(now["gates.1"].abs().sum()) > 0
    assert any("Router 2 of the image tower reads" in note for note in report.notes)


def update_of(context: UpdateContext, **options: Any) -> tuple[MoeAdapters, TrainingReport]:
    strategy = make_strategy("moe-adapters", **options)
    assert isinstance(strategy, MoeAdapters)
    return strategy, run_update(strategy, context, lambda frozen: data_for(strategy, frozen))


@pytest.mark.parametrize(
    ("language", "domains", "learns"),
    [
        ("de", frozenset(), {"image", "text"}),
        ("de", frozenset({DOMAIN}), {"text"}),
        ("en", frozenset(), {"image"}),
        ("en", frozenset({DOMAIN}), {"image"}),
    ],
)
def test_the_towers_whose_inputs_are_new_learn(
    language: str, domains: frozenset[str], learns: set[str]
) -> None:
    encoder = tiny_encoder()
    before = encoder.copy()
    context = replace(context_for(encoder, toy_pairs(language)), learned_domains=domains)
    strategy, report = update_of(context, towers="auto")
    assert {insert.tower for insert in encoder.inserts} == learns
    assert (
        ("image" in strategy.touches)
        == ("image" in learns)
        == (encoder.image_fingerprint() != before.image_fingerprint())
    )
    assert (
        ("text" in strategy.touches)
        == ("text" in learns)
        == (encoder.text_fingerprint() != before.text_fingerprint())
    )
    assert bool(report.image_forwards) == ("image" in learns)
    assert len(report.notes) == len(learns)


def test_a_tower_that_does_not_learn_routes_in_training_as_in_search() -> None:
    encoder = tiny_encoder()
    update_of(context_for(encoder, toy_pairs()), towers="both")
    text = next(insert for insert in encoder.inserts if isinstance(insert, TextExperts))
    before = {name: value.clone() for name, value in text.state_dict().items()}
    update_of(context_for(encoder, toy_pairs("en")), towers="image")
    assert_same_state(text.state_dict(), before)
    assert len(text.gates) == 1
    filled(text)
    tokens = encoder.tokenize(["ein roter Kreis auf Papier"], "de")
    with torch.no_grad():
        search = encoder.forward_tokens(tokens, "de")
        encoder.train(True)
        assert torch.allclose(encoder.forward_tokens(tokens, "de"), search, atol=1e-5)


def test_the_towers_stay_bit_identical() -> None:
    encoder = tiny_encoder()
    before = {k: v.clone() for k, v in encoder.model.state_dict().items()}
    teach(encoder, make_strategy("moe-adapters"))
    assert_same_state(encoder.model.state_dict(), before)


def test_validation_routes_as_search_will() -> None:
    strategy, encoder, image, _ = begun(inside=1.0)
    routers = image.routers_of(6, lambda: tiny_encoder().forward_images(pixels_of(encoder)))
    assert float((routers == 0).float().mean()) > 0.5
    assert strategy._known["image"] > 0.5
    encoder.train(True)
    assert image.routers_of(6, lambda: torch.zeros(0)).tolist() == [0] * 6


def test_validation_counts_no_use_and_draws_no_noise() -> None:
    strategy, encoder, image, text = begun()
    context = context_for(encoder, toy_pairs())
    rows = data_for(strategy, context).train
    encoder.train(True)
    drawn = torch.get_rng_state()
    validation_scores(encoder, rows, None, strategy, draw)
    assert torch.equal(torch.get_rng_state(), drawn)
    assert int(image.used.sum()) == int(text.used.sum()) == 0


def test_what_takes_no_experts_is_refused() -> None:
    resnet = tiny_encoder(architecture="tiny-resnet")
    assert "none that we know" in str(make_strategy("moe-adapters").fits(prospect_of(resnet)))
    assert make_strategy("moe-adapters").fits(prospect_of(tiny_encoder())) is None


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"towers": "each"}, "towers is 'auto', 'both', 'image' or 'text'"),
        ({"experts": 1}, "experts is at least 2"),
        ({"selector": 0}, "selector is at least 1"),
        ({"dropout": 1}, "dropout is at least 0 and below 1"),
        ({"inside": 0}, "inside is above 0"),
    ],
)
def test_unusable_options_are_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(MoeAdapters, given)
