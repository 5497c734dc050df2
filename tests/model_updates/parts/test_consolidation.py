"""SI, MAS, RWalk and AFEC: what they measure, what moving costs, and what they carry on."""

from typing import Any

import pytest
import torch
from torch import Tensor

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.options import options_of
from model_updates.pair_sets import Batch
from model_updates.parts.consolidation import DAMPING, HeldWeights
from model_updates.parts.importance import (
    PathIntegral,
    gain_for_distance,
    mean_of_absolute_gradients,
    quadratic_penalty,
)
from model_updates.strategies import STRATEGIES
from model_updates.strategies.afec import Afec
from model_updates.strategies.ewc import Ewc
from model_updates.strategies.rwalk import Rwalk
from model_updates.strategy import Epochs
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    make_strategy,
    quick,
    teach,
    tiny_encoder,
    toy_pairs,
)

WEIGH = ("ewc", "si", "mas", "rwalk", "afec")


def one(value: float) -> dict[str, Tensor]:
    return {"w": torch.tensor([value])}


def walked(penalty: float = 0.0) -> tuple[PathIntegral, Tensor]:
    """Three steps of gradient descent from 0 on (w - 1)**2 / 2 at rate 0.1, with a penalty that the path ignores."""
    w = torch.tensor([0.0], requires_grad=True)
    path = PathIntegral({"w": w})
    for _ in range(3):
        loss = ((w - 1) ** 2 / 2).sum()
        path.before_step(loss)
        (gradient,) = torch.autograd.grad(loss + penalty * w.sum(), [w])
        with torch.no_grad():
            w -= 0.1 * gradient
        path.after_step()
    return path, w


def test_the_path_to_a_quadratic_gains_what_hand_arithmetic_says() -> None:
    path, w = walked()
    assert float(path.gained["w"]) == pytest.approx(0.24661)
    assert float(w.detach()) == pytest.approx(0.271)
    omega = gain_for_distance(path.gained, {"w": w}, one(0.0), damping=DAMPING)
    assert float(omega["w"]) == pytest.approx(1.42187, abs=1e-5)


def test_a_penalty_changes_the_steps_of_a_path_but_not_its_gradients() -> None:
    path, w = walked(penalty=10.0)
    steps, at = 0.0, 0.0
    for _ in range(3):
        gradient = at - 1
        step = -0.1 * (gradient + 10)
        steps -= gradient * step
        at += step
    assert float(path.gained["w"]) == pytest.approx(steps)
    assert float(w.detach()) == pytest.approx(at)


def test_a_parameter_whose_steps_cost_loss_matters_nothing_and_is_not_paid_for_moving() -> None:
    scores = gain_for_distance(one(-3.0), one(1.0), one(0.0), damping=DAMPING)
    assert float(scores["w"]) == 0
    walk = gain_for_distance(one(-3.0), one(1.0), one(0.0), damping=DAMPING, fisher=one(2.0))
    assert float(walk["w"]) == 0


def test_a_riemannian_distance_is_weighted_by_the_fisher_diagonal() -> None:
    score = gain_for_distance(one(3.0), one(2.0), one(0.0), damping=DAMPING, fisher=one(0.5))
    assert float(score["w"]) == pytest.approx(3 / (0.5 * 4 + 0.1))


def test_the_sensitivity_of_w_times_3_is_3_whatever_its_sign() -> None:
    w = torch.tensor([2.0], requires_grad=True)
    assert float(mean_of_absolute_gradients({"w": w}, iter([(w * 3).norm()]))["w"]) == 3
    assert float(mean_of_absolute_gradients({"w": w}, iter([-(w * 3).norm()]))["w"]) == 3


def test_mas_looks_at_lengths_so_that_the_temperature_does_not_matter() -> None:
    encoder, strategy = tiny_encoder(), consolidation("mas")
    teach(encoder, strategy)
    assert float(strategy.held.importance["logit_scale"]) == 0
    assert float(strategy.held.importance["visual.proj"].sum()) > 0
    assert float(strategy.held.importance["text_projection"].sum()) > 0


def consolidation(name: str, **options: object) -> Any:
    strategy: Any = make_strategy(name, **options)
    assert isinstance(strategy.held, HeldWeights)
    return strategy


@pytest.mark.parametrize("name", WEIGH)
def test_an_unchanged_model_pays_nothing_in_its_second_update(name: str) -> None:
    encoder, first = tiny_encoder(), consolidation(name)
    teach(encoder, first, toy_pairs("en"))
    second = consolidation(name)
    second.carry(first.carried())
    report = teach(encoder, second, toy_pairs())
    assert all(float(value.min()) >= 0 for value in second.held.weights().values())
    assert report.history[-1]["consolidation"] > 0
    again = consolidation(name)
    again.carry(first.carried())
    context = context_for(encoder, toy_pairs())
    again.before_update(context)
    held = again.held
    penalty = quadratic_penalty(held.now, held.anchors, held.held)
    penalty.backward()  # type: ignore[no-untyped-call]
    assert float(penalty.detach()) == 0
    assert all(float(p.grad.abs().sum()) == 0 for p in held.now.values() if p.grad is not None)


@pytest.mark.parametrize("name", WEIGH)
def test_the_first_update_has_nothing_to_hold_back(name: str) -> None:
    report = teach(tiny_encoder(), consolidation(name))
    assert all(set(terms) == {"contrastive"} for terms in report.history)


def moved(name: str, strength: float) -> float:
    """How far a second update moved, each parameter weighted by how much it mattered for the first."""
    encoder, first = tiny_encoder(), consolidation(name, strength=strength, epochs=8)
    teach(encoder, first, toy_pairs("en"))
    before = {n: value.detach().clone() for n, value in encoder.model.named_parameters()}
    weights = {n: value.clone() for n, value in first.held.weights().items()}
    second = consolidation(name, strength=strength, epochs=8)
    second.carry(first.carried())
    teach(encoder, second, toy_pairs())
    now = dict(encoder.model.named_parameters())
    return float(quadratic_penalty(now, before, weights).detach())


@pytest.mark.parametrize(("name", "strength"), [("si", 1e5), ("mas", 1e3), ("rwalk", 1e5)])
def test_what_mattered_moves_less_the_more_it_costs(name: str, strength: float) -> None:
    assert moved(name, strength) < 0.5 * moved(name, 0.0)


def after_two_updates(name: str, rate: float) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    encoder, first = tiny_encoder(), consolidation(name, learning_rate=rate)
    teach(encoder, first)
    second = consolidation(name, learning_rate=rate)
    second.carry(first.carried())
    teach(encoder, second)
    return first.held.importance, second.held.importance


def test_mas_takes_the_mean_over_updates() -> None:
    # At a rate of nearly nothing both updates measure the same model on the same pairs.
    first, second = after_two_updates("mas", 1e-12)
    assert torch.allclose(second["visual.proj"], first["visual.proj"], rtol=1e-3)


def test_si_adds_what_each_update_gains() -> None:
    first, second = after_two_updates("si", 1e-3)
    assert bool((second["visual.proj"] >= first["visual.proj"]).all())
    assert float(second["visual.proj"].sum()) > 1.05 * float(first["visual.proj"].sum())


def test_rwalk_carries_fisher_and_score() -> None:
    encoder, strategy = tiny_encoder(), consolidation("rwalk")
    teach(encoder, strategy)
    state = strategy.carried()
    names = {name for name, _ in encoder.model.named_parameters()}
    assert set(state.tensors) == names | {f"score.{name}" for name in names}
    again = consolidation("rwalk")
    again.carry(state)
    assert_same_state(again.carried().tensors, state.tensors)
    assert_same_state(dict(again.held.weights()), dict(strategy.held.weights()))
    assert float(sum(state.tensors[f"score.{name}"].sum() for name in names)) > 0


def walked_update(strategy: Any, encoder: Encoder) -> dict[str, Tensor]:
    """Runs one epoch of an update by hand; returns what each parameter gained for its Riemannian distance."""
    context = context_for(encoder, toy_pairs())
    strategy.before_update(context)
    assert isinstance(strategy, Rwalk)
    data = data_for(strategy, context)
    batches = Batches(data.train, encoder, size=8, load_image=data.load_image)
    start = {name: value.detach().clone() for name, value in encoder.model.named_parameters()}
    optimizer = torch.optim.SGD(encoder.model.parameters(), lr=0.1)
    for batch in batches.epoch(0):
        optimizer.zero_grad()
        sum(strategy.terms(batch).values(), torch.zeros(())).backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        strategy.after_step()
    gained = {name: value.clone() for name, value in strategy.path.integral.gained.items()}
    strategy.after_update(context, batches)
    now = dict(encoder.model.named_parameters())
    return gain_for_distance(gained, now, start, damping=DAMPING, fisher=strategy.held.importance)


def score_of(strategy: Any) -> dict[str, Tensor]:
    tensors = strategy.carried().tensors
    return {name.removeprefix("score."): v for name, v in tensors.items() if name.startswith("score.")}


def test_the_score_of_rwalk_is_half_of_what_it_was_and_half_of_what_the_update_finds() -> None:
    encoder, first = tiny_encoder(), consolidation("rwalk")
    new = walked_update(first, encoder)
    assert sum(float(value.sum()) for value in new.values()) > 0
    assert_same_state(score_of(first), {name: value / 2 for name, value in new.items()})
    second = consolidation("rwalk")
    second.carry(first.carried())
    newer = walked_update(second, encoder)
    assert sum(float(value.sum()) for value in newer.values()) > 0
    expected = {name: (score_of(first)[name] + value) / 2 for name, value in newer.items()}
    assert_same_state(score_of(second), expected)


def after_ewc(strategy: Any) -> dict[str, Tensor]:
    """The weights after a second update by a strategy, on what an update by ewc carried."""
    encoder, first = tiny_encoder(), consolidation("ewc", epochs=4)
    teach(encoder, first, toy_pairs("en"))
    strategy.carry(first.carried())
    teach(encoder, strategy, toy_pairs())
    return encoder.state()


def test_afec_that_is_not_pulled_is_ewc() -> None:
    ewc, afec = consolidation("ewc"), consolidation("afec", pull=0.0)
    assert_same_state(after_ewc(ewc), after_ewc(afec))


class NowhereSteep(Afec):
    """AFEC whose free model is steep in nothing."""

    def steepness(self, free: Encoder, batches: Epochs) -> dict[str, Tensor]:
        return {name: torch.zeros_like(f) for name, f in super().steepness(free, batches).items()}


def test_afec_whose_free_model_is_steep_in_nothing_is_ewc() -> None:
    ewc, afec = consolidation("ewc"), NowhereSteep(options_of(Afec, {**quick(Afec), "pull": 100.0}))
    assert_same_state(after_ewc(ewc), after_ewc(afec))


def batch_of(strategy: Any, encoder: Encoder) -> Batch:
    data = data_for(strategy, context_for(encoder, toy_pairs()))
    return next(iter(Batches(data.train, encoder, size=8, load_image=data.load_image).epoch(0)))


def test_afec_is_drawn_towards_a_model_that_learned_freely() -> None:
    encoder, first = tiny_encoder(), consolidation("afec")
    teach(encoder, first, toy_pairs("en"))
    strategy = consolidation("afec", epochs=1)
    assert isinstance(strategy, Afec)
    strategy.carry(first.carried())
    start = encoder.copy()
    context = context_for(encoder, toy_pairs())
    strategy.before_update(context)
    assert "active-forgetting" not in strategy.terms(batch_of(strategy, encoder))
    data = data_for(strategy, context)
    strategy.before_epoch(0, Batches(data.train, encoder, size=8, load_image=data.load_image))
    free = strategy._free
    assert free is not None
    assert_same_state(encoder.model.state_dict(), start.model.state_dict())  # the candidate waits
    assert not torch.equal(free.state()["visual.proj"], start.state()["visual.proj"])
    term = strategy.terms(batch_of(strategy, encoder))["active-forgetting"]
    there = free.model.state_dict()
    by_hand = sum(
        float((strategy._steep[name] * (here.detach() - there[name]) ** 2).double().sum())
        for name, here in encoder.model.named_parameters()
    )
    assert by_hand > 0
    assert float(term.detach()) == pytest.approx(by_hand / 2, rel=1e-5)  # lambda_e is 1
    encoder.model.load_state_dict(there)
    assert float(strategy.terms(batch_of(strategy, encoder))["active-forgetting"].detach()) == 0


def test_strengths_that_are_negative_are_refused() -> None:
    for name in WEIGH:
        with pytest.raises(BadStrategyOption, match="strength is not negative"):
            options_of(STRATEGIES[name], {"strength": -1})
    with pytest.raises(BadStrategyOption, match="pull is not negative"):
        options_of(STRATEGIES["afec"], {"pull": -1})


def test_each_method_has_the_strength_of_the_library() -> None:
    strengths = {name: STRATEGIES[name]().options.strength for name in WEIGH}
    assert strengths == {"ewc": 5000, "si": 1, "mas": 1, "rwalk": 1000, "afec": 5000}
    factors = {name: consolidation(name).held.factor for name in WEIGH}
    assert factors == {"ewc": 2500, "si": 1, "mas": 0.5, "rwalk": 1000, "afec": 2500}
    assert isinstance(consolidation("ewc"), Ewc)
