"""EWC: the penalty's values, the mean of Fisher diagonals, and what it is carried for."""

import pytest
import torch

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.parts.consolidation import ConsolidationOptions, fisher
from model_updates.parts.importance import fitted, mean_of_squared_gradients, quadratic_penalty, running_mean
from model_updates.parts.two_towers import contrastive
from model_updates.strategies.ewc import Ewc
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

CONVOLUTION = "visual.conv1.weight"


def one(value: float) -> dict[str, torch.Tensor]:
    return {"w": torch.tensor([value])}


def test_an_importance_of_two_and_a_move_of_a_half_cost_1250_at_the_librarys_strength() -> None:
    moved = quadratic_penalty(one(0.5), one(0.0), one(2.0))
    assert float(ConsolidationOptions().strength / 2 * moved) == 1250


def test_the_penalty_and_its_gradient_are_zero_where_nothing_moved() -> None:
    now = {"w": torch.tensor([1.5], requires_grad=True)}
    loss = quadratic_penalty(now, one(1.5), one(2.0))
    loss.backward()  # type: ignore[no-untyped-call]
    assert now["w"].grad is not None
    assert (float(loss.detach()), float(now["w"].grad)) == (0, 0)


def test_fisher_diagonals_of_4_8_and_0_give_running_means_of_4_6_and_4() -> None:
    kept: dict[str, torch.Tensor] = {}
    seen = []
    for updates, new in enumerate((4.0, 8.0, 0.0)):
        kept = running_mean(kept, one(new), updates)
        seen.append(float(kept["w"]))
    assert seen == pytest.approx([4, 6, 4])


def test_the_fisher_diagonal_is_the_mean_of_squared_gradients() -> None:
    w = torch.tensor([2.0], requires_grad=True)
    fisher = mean_of_squared_gradients({"w": w}, (w * x for x in (1.0, 3.0)))
    assert float(fisher["w"]) == pytest.approx((1 + 9) / 2)


def test_rows_that_a_table_has_gained_are_free() -> None:
    grown = fitted(torch.ones(2, 3), torch.zeros(4, 3))
    assert grown.tolist() == [[1] * 3, [1] * 3, [0] * 3, [0] * 3]
    with pytest.raises(ValueError, match="cannot have become"):
        fitted(torch.ones(2, 3), torch.zeros(4, 2))


def move_after_two_updates(strength: float) -> float:
    """How far a second update moved, each parameter weighted by how much it mattered for the first."""
    encoder = tiny_encoder()
    first = make_strategy("ewc", strength=strength, epochs=8)
    teach(encoder, first, toy_pairs("en"))
    before = {name: value.detach().clone() for name, value in encoder.model.named_parameters()}
    second = make_strategy("ewc", strength=strength, epochs=8)
    second.carry(first.carried())
    report = teach(encoder, second, toy_pairs())
    assert "consolidation" in report.history[-1]
    now = dict(encoder.model.named_parameters())
    return float(quadratic_penalty(now, before, first.carried().tensors).detach())


def test_what_mattered_moves_less_the_more_it_costs() -> None:
    assert move_after_two_updates(1e8) < 0.5 * move_after_two_updates(0.0)


@pytest.mark.parametrize("architecture", ["tiny", "tiny-resnet"])
def test_the_first_update_is_finetune_and_the_fisher_pass_changes_no_running_statistics(
    architecture: str,
) -> None:
    ours, theirs = tiny_encoder(architecture=architecture), tiny_encoder(architecture=architecture)
    strategy = make_strategy("ewc")
    report = teach(ours, strategy)
    teach(theirs, make_strategy("finetune"))
    assert all("consolidation" not in terms for terms in report.history)
    assert strategy.carried().facts == {"updates": 1}
    assert_same_state(ours.state(), theirs.state())


def squared_gradients(encoder: Encoder, strategy: Ewc, batches: Batches) -> torch.Tensor:
    """The mean over batches of the first convolution's squared gradient, in the mode the encoder is in."""
    weight = encoder.model.get_parameter(CONVOLUTION)
    squares = []
    for batch in batches.epoch(context_for(encoder, toy_pairs()).seed):
        encoder.model.zero_grad()
        contrastive(encoder, batch).backward()  # type: ignore[no-untyped-call]
        assert weight.grad is not None
        squares.append(weight.grad**2)
    return torch.stack(squares).mean(dim=0)


def test_the_fisher_pass_runs_in_train_mode_and_leaves_the_encoder_as_it_was() -> None:
    encoder, strategy = tiny_encoder(architecture="tiny-resnet"), make_strategy("ewc")
    assert isinstance(strategy, Ewc)
    context = context_for(encoder, toy_pairs())
    data = data_for(strategy, context)
    batches = Batches(data.train, encoder, size=8, load_image=data.load_image)
    strategy.before_update(context)
    before = {name: value.clone() for name, value in encoder.state().items()}
    found = fisher(context, batches)[CONVOLUTION]
    assert_same_state(encoder.state(), before)
    assert not encoder.model.training
    in_eval_mode, in_train_mode = encoder.copy(), encoder.copy()
    for copy in (in_eval_mode, in_train_mode):
        copy.model.requires_grad_(True)
    in_train_mode.train()
    assert torch.allclose(found, squared_gradients(in_train_mode, strategy, batches), rtol=1e-4)
    assert not torch.allclose(found, squared_gradients(in_eval_mode, strategy, batches), rtol=0.1)


def test_a_token_table_that_grew_in_between_is_fitted() -> None:
    encoder, first = tiny_encoder(), make_strategy("ewc")
    teach(encoder, first, toy_pairs("en"))
    teach(encoder, make_strategy("language-tables"), toy_pairs())
    second = Ewc(ConsolidationOptions(epochs=1, batch_size=8))
    second.carry(first.carried())
    teach(encoder, second, toy_pairs("en"))
    kept = second.carried().tensors["token_embedding.weight"]
    assert kept.shape == encoder.model.get_parameter("token_embedding.weight").shape
