"""IncCLIP: pseudo texts and their band, where they count, both directions of KL, and the bound on lengths."""

import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.losses import multi_positive_info_nce
from model_updates.options import options_of
from model_updates.pair_sets import Batch, PairSet, PictureRows
from model_updates.parts.pseudo_texts import (
    Band,
    PseudoTextMaker,
    band_loss,
    measured_band,
    moved_into,
)
from model_updates.prospect import Prospect
from model_updates.strategies import STRATEGIES
from model_updates.strategies.incclip import Incclip, contrast_beside, divergence, hold_lengths, lengths
from model_updates.strategy import Strategy
from model_updates.trainer import run_update
from tests.model_updates.tiny import (
    DOMAIN,
    assert_same_state,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

BATCH = 22


def random_cosines(rows: int, columns: int) -> Tensor:
    return torch.rand(rows, columns, generator=torch.Generator().manual_seed(0), dtype=torch.float64) - 0.3


def eye(rows: int) -> Tensor:
    return torch.eye(rows, dtype=torch.bool)


def begun(encoder: Encoder, **options: Any) -> tuple[Incclip, Batch]:
    """A second update before its first step, and its batch: sixteen German pairs and six English ones."""
    first, second = make_strategy("incclip"), make_strategy("incclip", **options)
    teach(encoder, first, toy_pairs("en"))
    second.carry(first.carried())
    context = replace(context_for(encoder, toy_pairs()), update_number=2)
    data = data_for(second, context)
    second.before_update(context)
    second.take(data)
    batches = Batches(
        data.train, encoder, size=BATCH, load_image=data.load_image, memory=data.memory, replay=second.replay
    )
    torch.manual_seed(5)
    assert isinstance(second, Incclip)
    return second, next(iter(batches.epoch(0)))


def english_memory(encoder: Encoder) -> PairSet:
    """Sixteen pairs with their features under an encoder."""
    strategy = make_strategy("incclip")
    context = context_for(encoder, toy_pairs("en"))
    return data_for(strategy, context).train


# The generation (eq. 1).


def test_the_band_costs_what_lies_outside_it() -> None:
    cosines = torch.tensor([[0.05], [0.2], [0.5]])
    assert float(band_loss(cosines, Band(0.1, 0.3))) == pytest.approx(0.083333, abs=1e-6)
    assert band_loss(torch.tensor([[0.1, 0.2], [0.3, 0.15]]), Band(0.1, 0.3)).tolist() == [0, 0]


def test_the_band_is_measured_between_wrong_and_right_similarities() -> None:
    memory = english_memory(tiny_encoder())
    image, text = torch.eye(3), torch.tensor([[0.8, 0.6, 0.0], [0.0, 0.9, 0.436], [0.1, 0.0, 0.995]])
    made = replace(
        memory.select([0, 1, 2]),
        pictures=PictureRows(image, lambda: image),
        text_features=text,
        image_index=torch.arange(3),
    )
    unit = normalize(text, dim=1)
    right = torch.stack([unit[n, n] for n in range(3)])
    wrong = torch.stack([unit[j, i] for i in range(3) for j in range(3) if i != j])
    band = measured_band(made)
    assert band.highest == pytest.approx(float(right.mean() - right.std()), abs=1e-5)
    assert band.lowest == pytest.approx(min(float(wrong.quantile(0.9)), band.highest - 0.05), abs=1e-5)


def test_a_band_that_would_be_empty_is_made_narrow() -> None:
    band = measured_band(english_memory(tiny_encoder()))
    assert band.highest - band.lowest >= 0.05 - 1e-6


def made_texts(encoder: Encoder, band: Band, *, steps: int, turn: float = 0.02) -> tuple[Tensor, Tensor]:
    """Cosines of pseudo texts with the pictures they were made for, before and after they were moved."""
    memory = english_memory(encoder)
    maker = PseudoTextMaker(encoder, memory, band)
    torch.manual_seed(1)
    texts = maker._mixed(maker._sequences, 12)
    pictures = normalize(memory.image_features, dim=1)
    moved = moved_into(encoder, texts, pictures, band, steps=steps, turn=turn)
    found = [pictures @ normalize(t.features(encoder), dim=1).T for t in (texts, moved)]
    return found[0].detach(), found[1].detach()


def test_texts_are_moved_towards_the_band_by_about_the_turn_that_was_asked_for() -> None:
    encoder = tiny_encoder()
    start, _ = made_texts(encoder, Band(-1, 1), steps=0)
    band = Band(float(start.max()) + 0.3, float(start.max()) + 0.4)
    before, after = made_texts(encoder, band, steps=1)
    fell = float((band_loss(before, band) - band_loss(after, band)).mean())
    assert fell == pytest.approx(0.02, rel=0.25)
    further = made_texts(encoder, band, steps=5)[1]
    assert float(band_loss(further, band).mean()) < float(band_loss(after, band).mean())


def test_texts_inside_the_band_stay_where_they_are() -> None:
    before, after = made_texts(tiny_encoder(), Band(-1, 1), steps=3)
    assert torch.equal(before, after)


def test_a_mixture_lies_between_two_old_texts_and_ends_where_the_longer_does() -> None:
    encoder = tiny_encoder()
    maker = PseudoTextMaker(encoder, english_memory(encoder))
    red, green = (list(maker._sequences[n]) for n in (0, 4))  # "a red circle ..." and "a green circle ..."
    short, long = [red[0], red[2], red[-1]], [green[0], *green[2:]]
    torch.manual_seed(0)
    texts = maker._mixed([short, long], 50)
    assert set(texts.ends.tolist()) == {len(short) - 1, len(long) - 1}
    table = encoder.model.get_parameter("token_embedding.weight")
    one, other = table[short[1]], table[long[1]]
    share = (texts.embedded[:, 1] - other) @ (one - other) / (one - other).square().sum()
    assert float(share.min().detach()) >= -1e-4
    assert float(share.max().detach()) <= 1 + 1e-4
    on_the_line = share[:, None] * one + (1 - share[:, None]) * other
    assert torch.allclose(texts.embedded[:, 1], on_the_line, atol=1e-4)


def test_making_texts_leaves_no_gradient_in_the_teacher() -> None:
    encoder = tiny_encoder()
    encoder.model.requires_grad_(True)
    made_texts(encoder, Band(0.98, 0.99), steps=2)
    assert all(parameter.grad is None for parameter in encoder.model.parameters())


# The losses (eq. 4 to 9).


def test_pseudo_texts_make_the_search_for_texts_harder_and_that_for_pictures_no_different() -> None:
    cosines, scale = random_cosines(4, 7), 10.0
    real = cosines[:, :4]
    index = torch.arange(4)
    assert float(contrast_beside(real, scale, eye(4))) == pytest.approx(
        float(multi_positive_info_nce(real, scale, index, index))
    )
    pictures = -torch.log_softmax(scale * real.T, dim=1).diagonal().mean()
    texts = -torch.log_softmax(scale * cosines, dim=1).diagonal().mean()
    alone = -torch.log_softmax(scale * real, dim=1).diagonal().mean()
    assert float(contrast_beside(cosines, scale, eye(4))) == pytest.approx(float(texts + pictures) / 2)
    assert float(texts) > float(alone)


def test_the_direction_of_the_divergence_is_the_one_asked_for() -> None:
    p, q = (torch.tensor(values, dtype=torch.float64).log() for values in ((0.7, 0.2, 0.1), (0.5, 0.3, 0.2)))
    # Rows over texts; over the pictures of one real text there is nothing to choose.
    found = {
        direction: float(divergence(p[None], q[None], real=1, direction=direction))
        for direction in ("reverse", "forward")
    }
    assert found["reverse"] == pytest.approx(0.085123 / 2, abs=1e-6), "KL(new || old)"
    assert found["forward"] == pytest.approx(0.092033 / 2, abs=1e-6), "KL(old || new)"


@pytest.mark.parametrize("direction", ["reverse", "forward"])
def test_nothing_is_paid_where_nothing_changed_and_nothing_flows_into_the_old(direction: str) -> None:
    old = (10 * random_cosines(4, 6)).requires_grad_(True)
    new = old.detach().clone().requires_grad_(True)
    loss = divergence(new, old, real=4, direction=direction)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == pytest.approx(0, abs=1e-12)
    assert new.grad is not None
    assert float(new.grad.abs().max()) < 1e-12
    assert old.grad is None


def test_pseudo_texts_reach_the_blocks_and_never_the_token_table() -> None:
    encoder = tiny_encoder()
    encoder.model.requires_grad_(True)
    maker = PseudoTextMaker(encoder, english_memory(encoder))
    texts = maker.make(5, 8, steps=1, turn=0.02)
    assert not texts.embedded.requires_grad
    texts.features(encoder).sum().backward()  # type: ignore[no-untyped-call]
    assert encoder.model.get_parameter("token_embedding.weight").grad is None
    assert encoder.model.get_parameter("transformer.resblocks.0.mlp.c_fc.weight").grad is not None


# The parts, together and each alone.


def loss_of(**options: Any) -> dict[str, float]:
    strategy, batch = begun(tiny_encoder(), **options)
    return {name: float(value.detach()) for name, value in strategy.terms(batch).items()}


def test_each_part_can_be_left_out() -> None:
    whole = loss_of(batch_size=16)
    plain = loss_of(batch_size=16, negatives=False)
    assert whole["contrastive"] > plain["contrastive"]
    assert set(loss_of(distillation=0.0)) == {"contrastive"}
    assert set(whole) == {"contrastive", "distillation"}
    assert plain["distillation"] == pytest.approx(0, abs=1e-6), (
        "towers that have not moved, at their own temperature"
    )
    assert loss_of(negatives=False, old_temperature=0.01)["distillation"] > 0.01


def test_the_first_update_has_no_negatives_and_holds_to_the_base_unless_that_knows_nothing() -> None:
    for options, terms in (({}, {"contrastive", "distillation"}), ({"from_scratch": True}, {"contrastive"})):
        strategy = make_strategy("incclip", **options)
        report = teach(tiny_encoder(), strategy)
        assert set(report.history[0]) == terms
        assert isinstance(strategy, Incclip)
        assert strategy._maker is None


def test_negatives_of_a_foreign_tower_are_refused_and_the_rest_works_without() -> None:
    foreign = tiny_encoder()
    foreign.vocabulary = None
    facts = Prospect(foreign, frozenset({"en"}), frozenset({DOMAIN}), frozenset({"en"}), frozenset())
    assert (
        "takes no embeddings, of which incclip makes its negative texts. Use negatives=no to leave them out"
        in str(make_strategy("incclip").fits(facts))
    )
    assert make_strategy("incclip", negatives=False).fits(facts) is None


def test_it_trains_by_lamb_with_the_papers_decay() -> None:
    encoder = tiny_encoder()
    schedule = make_strategy("incclip", from_scratch=True).schedule(encoder)
    assert (schedule.optimizer, schedule.learning_rate, schedule.weight_decay) == ("lamb", 3e-3, 3e-3)


def test_what_was_trained_before_takes_a_smaller_rate_the_larger_it_is() -> None:
    encoder = tiny_encoder()
    assert make_strategy("incclip").schedule(encoder).learning_rate == 2e-3
    encoder.dim = 512
    assert make_strategy("incclip").schedule(encoder).learning_rate == 2e-4


def test_half_as_many_pseudo_texts_as_pairs_stand_beside_them() -> None:
    strategy, batch = begun(tiny_encoder(), pseudo_texts=0, batch_size=8)
    assert strategy._seen_by_both(batch).now.shape == (len(batch.row), len(batch.row) + 4)


# The bound on lengths.


def test_a_weight_of_length_10_with_a_bound_of_6_is_scaled_by_point_6() -> None:
    weight = torch.tensor([[6.0, 0.0], [0.0, 8.0]])
    before = weight.clone()
    hold_lengths({"w": weight}, {"w": 6.0})
    assert torch.allclose(weight, 0.6 * before)
    assert float(torch.cosine_similarity(weight.flatten(), before.flatten(), dim=0)) == pytest.approx(1)
    hold_lengths({"w": weight}, {"w": 6.5})
    assert torch.allclose(weight, 0.6 * before), "below the bound nothing happens"


def test_only_matrices_and_kernels_outside_the_embeddings_have_a_bound() -> None:
    found = lengths(tiny_encoder().model)
    assert {"visual.conv1.weight", "text_projection", "transformer.resblocks.0.attn.in_proj_weight"} <= set(
        found
    )
    assert not [name for name in found if "embedding" in name or "ln_" in name or "bias" in name]
    assert "logit_scale" not in found
    assert lengths(nn.Linear(2, 2, bias=True)).keys() == {"weight"}


@pytest.mark.parametrize(
    ("options", "bounded"),
    [
        ({}, True),
        ({"bound_norms": False}, False),
    ],
)
def test_lengths_are_bound_by_those_of_the_base_unless_that_is_left_out(
    options: dict[str, Any], bounded: bool
) -> None:
    encoder, strategy = tiny_encoder(), make_strategy("incclip", norm_bound=0.5, **options)
    base = lengths(encoder.model)
    context = context_for(encoder, toy_pairs(), anchor=encoder.copy())
    run_update(strategy, context, lambda frozen: data_for(strategy, frozen))
    after = lengths(encoder.model)
    assert all(after[name] <= 0.5 * base[name] * (1 + 1e-4) for name in base) == bounded


def test_the_same_seed_makes_the_same_texts() -> None:
    made = []
    for _ in range(2):
        strategy, batch = begun(tiny_encoder())
        torch.manual_seed(3)
        made.append({name: value.detach() for name, value in strategy.terms(batch).items()})
    assert_same_state(*made)


def test_a_memory_of_one_pair_is_too_small_to_mix() -> None:
    encoder = tiny_encoder()
    first: Strategy = make_strategy("incclip", memory_size=1)
    teach(encoder, first, toy_pairs("en"))
    second = make_strategy("incclip", memory_size=1)
    second.carry(first.carried())
    report = teach(encoder, second, toy_pairs())
    assert math.isfinite(report.history[-1]["contrastive"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pseudo_texts": -1}, "pseudo_texts is not negative"),
        ({"generation_turn": 0}, "generation_turn is above 0"),
        ({"distillation": -1}, "distillation is not negative"),
        ({"norm_bound": 0}, "norm_bound is above 0"),
        ({"kd_direction": "both"}, "'reverse' or 'forward'"),
        ({"bound_norms": "maybe"}, "bound_norms is yes or no"),
    ],
)
def test_unusable_options_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(STRATEGIES["incclip"], given)
