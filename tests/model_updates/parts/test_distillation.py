"""LwF, Mod-X and DKR: values by hand, which rows count, and that an unchanged model pays nothing."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import log_softmax, normalize

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.options import options_of
from model_updates.pair_sets import Batch
from model_updates.pairs import TrainingPair
from model_updates.parts.distillation import (
    feature_divergence,
    reduced,
    right_rows,
    row_divergence,
)
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategies import STRATEGIES
from model_updates.strategies.dkr import rectified_divergence
from model_updates.strategies.mod_x import right_row_divergence
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

DISTIL = ("lwf", "mod-x", "dkr")
ROWS = ("mod-x", "dkr")


def cosines(n: int, seed: int, *, width: int = 24) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    image, text = (normalize(torch.randn(n, width, generator=generator).double(), dim=1) for _ in range(2))
    return image @ text.T


def own(n: int) -> Tensor:
    return torch.eye(n, dtype=torch.bool)


def made_right(similarities: Tensor) -> Tensor:
    return similarities + 2 * torch.eye(len(similarities)).to(similarities)


def test_the_divergence_is_from_old_to_new() -> None:
    p, q = torch.tensor([[0.7, 0.2, 0.1]]).log(), torch.tensor([[0.5, 0.3, 0.2]]).log()
    assert float(row_divergence(p, q)) == pytest.approx(0.085123, abs=1e-6)
    assert float(row_divergence(q, p)) == pytest.approx(0.092033, abs=1e-6)


def test_a_row_is_right_when_its_own_column_is_largest_and_a_tie_counts_as_right() -> None:
    similarities = torch.tensor([[0.9, 0.1, 0.2], [0.6, 0.5, 0.1], [0.4, 0.3, 0.4]])
    assert right_rows(similarities, own(3)).tolist() == [True, False, True]


def test_another_caption_of_the_same_picture_is_right_too() -> None:
    same = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 1]]).bool()
    similarities = torch.tensor([[0.1, 0.9, 0.2], [0.1, 0.2, 0.6], [0.0, 0.0, 1.0]])
    assert right_rows(similarities, same).tolist() == [True, False, True]


def test_mod_x_is_zero_without_gradient_where_nothing_changed() -> None:
    old = made_right(cosines(8, 0))
    new = old.clone().requires_grad_(True)
    loss = right_row_divergence(old, new, own(8)).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert new.grad is not None
    assert float(loss.detach()) == pytest.approx(0, abs=1e-12)
    assert float(new.grad.abs().max()) == pytest.approx(0, abs=1e-12)


def test_mod_x_keeps_nothing_of_a_model_that_was_wrong_everywhere() -> None:
    old = cosines(8, 0) - 2 * torch.eye(8)
    new = cosines(8, 1).requires_grad_(True)
    loss = right_row_divergence(old, new, own(8)).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == 0
    assert new.grad is not None
    assert float(new.grad.abs().max()) == 0


@pytest.mark.parametrize("detached", [True, False])
def test_leaving_wrong_rows_out_equals_replacing_them_by_the_new_models(detached: bool) -> None:
    old = cosines(16, 0)
    old[::2] = made_right(old)[::2]
    right = right_rows(old, own(16))
    assert 0 < int(right.sum()) < 16
    left_out = cosines(16, 1).requires_grad_(True)
    right_row_divergence(old, left_out, own(16)).sum().backward()  # type: ignore[no-untyped-call]
    replaced = cosines(16, 1).requires_grad_(True)
    target = torch.where(right[:, None], old, replaced.detach() if detached else replaced)
    before, now = log_softmax(target, dim=1), log_softmax(replaced, dim=1)
    loss = (before.exp() * (before - now)).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert left_out.grad is not None
    assert replaced.grad is not None
    value = right_row_divergence(old, left_out.detach(), own(16)).sum()
    assert float(value) == pytest.approx(float(loss.detach()), abs=1e-12)
    assert torch.allclose(left_out.grad, replaced.grad, rtol=0, atol=1e-12)


def test_mod_x_without_a_temperature_is_half_the_variance_of_what_changed() -> None:
    n, generator = 280, torch.Generator().manual_seed(0)
    old = made_right(torch.zeros(n, n).double()) * 0.05
    change = 0.05 * torch.randn(n, n, generator=generator).double()
    found = float(right_row_divergence(old, old + change, own(n)).sum())
    assert found == pytest.approx(float(change.var(dim=1, unbiased=False).sum() / 2), rel=0.01)


def test_reductions_agree_at_the_papers_batch() -> None:
    rows = torch.rand(280)
    assert float(reduced(rows, "scaled")) == pytest.approx(float(reduced(rows, "sum")), rel=1e-5)
    assert float(reduced(rows, "mean")) == pytest.approx(float(rows.mean()))
    half = rows[:140]
    assert float(reduced(half, "scaled")) == pytest.approx(2 * float(half.sum()), rel=1e-5)


def test_dkr_keeps_a_right_row_lets_a_better_one_be_and_teaches_the_rest() -> None:
    old = torch.tensor([[0.9, 0.1, 0.2], [0.8, 0.1, 0.0], [0.7, 0.2, 0.1]])
    new = torch.tensor([[0.3, 0.5, 0.2], [0.1, 0.9, 0.0], [0.2, 0.6, 0.1]], requires_grad=True)
    rows = rectified_divergence(old, new, own(3))
    rows.sum().backward()  # type: ignore[no-untyped-call]
    kept = row_divergence(old, new.detach())[0]
    truth = -log_softmax(new.detach(), dim=1)[2, 2]
    assert rows.tolist() == pytest.approx([float(kept), 0.0, float(truth)], abs=1e-6)
    assert new.grad is not None
    assert new.grad.abs().sum(dim=1)[1] == 0
    assert bool((new.grad.abs().sum(dim=1)[[0, 2]] > 0).all())


def test_dkr_shares_the_truth_among_captions_of_one_picture() -> None:
    same = torch.tensor([[1, 1, 0], [1, 1, 0], [0, 0, 1]]).bool()
    old = new = torch.tensor([[0.0, 0.0, 1.0]] * 3)
    rows = rectified_divergence(old, new, same)
    log_shares = log_softmax(new, dim=1)[0]
    assert float(rows[0]) == pytest.approx(-float(log_shares[0] + log_shares[1]) / 2)
    assert float(rows[2]) == pytest.approx(0, abs=1e-7)


def test_features_as_logits_diverge_by_hand() -> None:
    p, q = torch.tensor([[0.7, 0.2, 0.1]]).log() * 0.07, torch.tensor([[0.5, 0.3, 0.2]]).log() * 0.07
    assert float(feature_divergence((q, p), (p, p))) == pytest.approx(0.085123 / 2, abs=1e-6)


def begun(name: str, encoder: Encoder | None = None, /, **options: object) -> tuple[TwoTowers, Batch]:
    encoder, strategy = encoder or tiny_encoder(), make_strategy(name, **options)
    assert isinstance(strategy, TwoTowers)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    strategy.before_update(context)
    return strategy, next(iter(Batches(data.train, encoder, size=8, load_image=data.load_image).epoch(0)))


@pytest.mark.parametrize(
    ("name", "options"), [("lwf", {}), ("lwf", {"lwf_mode": "feature_logits"}), ("mod-x", {})]
)
def test_an_unchanged_model_pays_nothing(name: str, options: dict[str, object]) -> None:
    strategy, batch = begun(name, **options)
    term = strategy.terms(batch)["distillation"]
    term.backward()  # type: ignore[no-untyped-call]
    assert float(term.detach()) == pytest.approx(0, abs=1e-3)  # rounding, times 5600
    gradients = [p.grad for p in strategy._encoder.model.parameters() if p.grad is not None]
    assert max(float(gradient.abs().max()) for gradient in gradients) < 1e-2


def test_dkr_asks_an_unchanged_model_for_the_rows_that_it_has_wrong() -> None:
    strategy, batch = begun("dkr", reduction="mean", alpha=1.0)
    same = own(len(batch.row))
    image = normalize(batch.image_features, dim=-1)
    assert batch.text_features is not None
    m = image @ normalize(batch.text_features, dim=-1).T
    by_hand = [
        sum(-float(log_softmax(rows, dim=1)[n, n]) for n in range(8) if not right_rows(rows, same)[n]) / 8
        for rows in (m, m.T)
    ]
    term = strategy.terms(batch)["distillation"]
    assert float(term.detach()) == pytest.approx(sum(by_hand) / 2, abs=1e-5)
    assert sum(by_hand) > 0


def test_lwf_reads_similarities_under_each_models_own_temperature() -> None:
    strategy, batch = begun("lwf")
    with torch.no_grad():
        strategy._encoder.model.get_parameter("logit_scale").add_(math.log(2))
    assert float(strategy.terms(batch)["distillation"].detach()) > 1e-3


@pytest.mark.parametrize(
    ("old_image", "old_text", "expected"),
    [
        # Similarities were 1 on the diagonal: both rows and both columns diverge.
        ([[1.0, 0.0], [0.0, 1.0]], [[3.0, 0.0], [0.0, 2.0]], 0.443776),
        # Both pictures were the first text's: the rows diverge, each column was even and is.
        ([[1.0, 0.0], [5.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]], 0.221888),
        # The same the other way about.
        ([[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [5.0, 0.0]], 0.221888),
    ],
)
def test_lwf_is_t_squared_times_the_mean_of_both_directions(
    old_image: list[list[float]], old_text: list[list[float]], expected: float
) -> None:
    # Now everything is alike: even rows. With s = T = 2 a row that was (1, 0) keeps its cosines as logits, and diverges
    # by ln 2 - H(e/(e+1)) = 0.693147 - 0.582203; T**2 / 2 = 2.
    encoder = tiny_encoder()
    with torch.no_grad():
        encoder.model.get_parameter("logit_scale").fill_(math.log(2))
    strategy, batch = begun("lwf", encoder)
    now = torch.ones(2, 2)
    old = replace(batch, image_features=torch.tensor(old_image), text_features=torch.tensor(old_text))
    term = strategy.distillation((now, now), old)
    assert term is not None
    assert float(term.detach()) == pytest.approx(expected, abs=1e-6)


def drift(name: str, **options: object) -> float:
    """How far a tiny encoder's similarities on the pairs taught first move while it learns others."""
    encoder = tiny_encoder()
    teach(encoder, make_strategy("finetune", epochs=20, learning_rate=1e-3), toy_pairs("en"))
    before = similarities_of(encoder)
    new = [TrainingPair(p.image_id, p.text, p.language, DOMAIN, p.english) for p in toy_pairs()]
    teach(encoder, make_strategy(name, epochs=6, learning_rate=1e-3, **options), new)
    return float((similarities_of(encoder) - before).pow(2).mean())


def similarities_of(encoder: Encoder) -> Tensor:

    pictures = torch.from_numpy(encoder.encode_images([draw(name) for name in image_ids()]))
    texts = torch.from_numpy(encoder.encode_texts([pair.text for pair in toy_pairs("en")], "en"))
    return pictures @ texts.T


def test_old_similarities_move_less_the_more_they_count() -> None:
    free = drift("mod-x", alpha=0.0)
    assert drift("mod-x", alpha=200.0) < 0.8 * free
    assert drift("lwf", weight=20.0) < 0.8 * free


def test_mod_x_without_its_term_is_finetune() -> None:
    ours, theirs = tiny_encoder(), tiny_encoder()
    teach(ours, make_strategy("mod-x", alpha=0.0))
    teach(theirs, make_strategy("finetune"))
    assert_same_state(ours.state(), theirs.state())


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("lwf", {"lwf_mode": "classes"}, "lwf_mode is 'contrastive' or 'feature_logits'"),
        ("lwf", {"temperature": 0}, "temperature is above 0"),
        ("mod-x", {"alpha": -1}, "alpha is not negative"),
        ("dkr", {"kl_temperature": 0}, "kl_temperature is above 0"),
        ("dkr", {"reduction": "max"}, "reduction is 'scaled', 'sum' or 'mean'"),
    ],
)
def test_unusable_options_are_refused(name: str, given: dict[str, object], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        options_of(STRATEGIES[name], given)
