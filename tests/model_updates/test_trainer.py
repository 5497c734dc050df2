"""The training loop: resume, the epoch it keeps, and when it stops."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from timm.optim.lamb import Lamb
from torch import Tensor

from model_updates import checkpoint
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption, TrainingDiverged
from model_updates.pair_sets import Batch
from model_updates.pairs import TrainingPair
from model_updates.progress import TrainingProgress
from model_updates.strategies.finetune import Finetune
from model_updates.strategy import Epochs, Schedule, Strategy, Tolerance
from model_updates.trainer import TrainingReport, learning_rate, run_update
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)


def finished(encoder: Encoder, strategy: Strategy, folder: Path) -> TrainingReport:
    return teach(encoder, strategy, validation=toy_pairs(), checkpoints=folder)


class LastDimensionNorm(torch.nn.BatchNorm1d):
    """Batch normalisation over (batch, length, width), in the place of a tower's last layer norm."""

    def forward(self, hidden: Tensor) -> Tensor:
        return super().forward(hidden.flatten(0, -2)).view_as(hidden)


def test_an_update_that_was_cut_off_after_its_last_epoch_only_finishes(tmp_path: Path) -> None:
    whole, again = tiny_encoder(), tiny_encoder()
    finished(whole, make_strategy("c-clip"), tmp_path)
    report = finished(again, make_strategy("c-clip"), tmp_path)
    assert_same_state(again.model.state_dict(), whole.model.state_dict())
    assert report.image_forwards == 0


def test_a_checkpoint_of_another_update_is_not_resumed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    finished(tiny_encoder(), make_strategy("finetune"), tmp_path)
    encoder, fresh = tiny_encoder(), tiny_encoder()
    teach(encoder, make_strategy("finetune"), checkpoints=tmp_path, seed=4)
    teach(fresh, make_strategy("finetune"), seed=4)
    assert_same_state(encoder.model.state_dict(), fresh.model.state_dict())
    assert "of another update" in caplog.text


@pytest.mark.parametrize("name", ["er", "evergreen", "finetune", "new-words", "tic"])
def test_a_checkpoint_of_other_pairs_beside_the_chunk_is_not_resumed(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def taught(beside: list[TrainingPair], checkpoints: Path | None) -> Encoder:
        encoder, strategy = tiny_encoder(), make_strategy(name)
        context = context_for(encoder, toy_pairs("en"))
        context = replace(context, open_earlier=lambda: beside, open_known=lambda: beside)
        run_update(strategy, context, lambda frozen: data_for(strategy, frozen), checkpoints=checkpoints)
        return encoder

    beside = [replace(pair, domain="other") for pair in toy_pairs()]
    withdrawn = [replace(pair, domain="other") for pair in toy_pairs("en")[:4]]
    taught([*beside, *withdrawn], tmp_path)
    again, fresh = taught(beside, tmp_path), taught(beside, None)
    assert_same_state(again.state(), fresh.state())
    assert "of another update" in caplog.text


def test_a_checkpoint_of_another_reference_is_not_resumed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def taught(reference: list[TrainingPair], checkpoints: Path | None) -> Encoder:
        encoder, strategy = tiny_encoder(), make_strategy("zscl", reference="c7")
        teach(encoder, strategy, checkpoints=checkpoints, reference=lambda chunk: reference)
        return encoder

    reference = toy_pairs("en")[:6]
    taught(toy_pairs("en")[:8], tmp_path)
    again, fresh = taught(reference, tmp_path), taught(reference, None)
    assert_same_state(again.state(), fresh.state())
    assert "of another update" in caplog.text


def test_a_damaged_checkpoint_costs_work_but_not_the_result(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole, again = tiny_encoder(), tiny_encoder()
    finished(whole, make_strategy("teir"), tmp_path)
    file = tmp_path / checkpoint.FILE
    file.write_bytes(file.read_bytes()[:-100])
    finished(again, make_strategy("teir"), tmp_path)
    assert_same_state(again.model.state_dict(), whole.model.state_dict())
    assert "is damaged" in caplog.text


class Spoiled(Finetune):
    """Finetune that remembers its weights after each step, and is spoiled for good after a number of them."""

    def __init__(self, options: object = None, *, good_steps: int = 0) -> None:
        super().__init__(options)
        self.good_steps = good_steps
        self.after: list[dict[str, Tensor]] = []

    def after_step(self) -> None:
        super().after_step()
        model = self._encoder.model
        if len(self.after) >= self.good_steps:
            with torch.no_grad():
                model.visual.proj.zero_()  # type: ignore[union-attr,operator]
        self.after.append({k: v.clone() for k, v in model.state_dict().items()})


def spoiled(encoder: Encoder, *, good_epochs: int) -> tuple[Spoiled, TrainingReport]:
    """Trains five epochs of two steps, the first of which are good."""
    options = make_strategy("finetune", epochs=5, batch_size=8).options
    strategy = Spoiled(options, good_steps=2 * good_epochs)
    report = teach(encoder, strategy, validation=toy_pairs())
    assert len(strategy.after) == 10
    return strategy, report


def test_the_weights_of_the_epoch_that_is_kept_are_what_is_left() -> None:
    encoder = tiny_encoder()
    strategy, report = spoiled(encoder, good_epochs=3)
    scores = [epoch["validation"] for epoch in report.history]
    assert scores[3:] == [0, 0], "every picture is the same to it"
    assert report.kept_epoch <= 3
    assert report.validation == scores[report.kept_epoch - 1]
    assert_same_state(encoder.model.state_dict(), strategy.after[2 * report.kept_epoch - 1])


def test_a_later_epoch_that_is_about_as_good_as_the_best_is_kept() -> None:
    _, report = spoiled(tiny_encoder(), good_epochs=5)
    scores = [epoch["validation"] for epoch in report.history]
    assert report.kept_epoch == 5 > 1 + scores.index(max(scores)), "the seed must give an earlier best"


def test_a_strategy_that_tolerates_more_keeps_a_later_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Spoiled.schedule

    def tolerant(self: Spoiled, encoder: Encoder) -> Schedule:
        return replace(plain(self, encoder), tolerance=Tolerance(errors=0, pictures=1000))

    monkeypatch.setattr(Spoiled, "schedule", tolerant)
    _, report = spoiled(tiny_encoder(), good_epochs=3)
    assert (report.history[-1]["validation"], report.kept_epoch) == (0, 5), "all that was found may be lost"


def test_where_what_is_known_can_move_the_epoch_is_the_best_for_both() -> None:
    known = toy_pairs("en")
    context = replace(context_for(tiny_encoder(), toy_pairs()), open_known=lambda: known)
    strategy = make_strategy("finetune", epochs=6, learning_rate=0.02)
    report = run_update(strategy, context, lambda frozen: data_for(strategy, frozen, validation=toy_pairs()))
    both = [(entry["validation"] + entry["known"]) / 2 for entry in report.history]
    assert both[report.kept_epoch - 1] == max(both)
    assert max(both) not in both[report.kept_epoch :], "the later of equal ones"
    assert report.validation == report.history[report.kept_epoch - 1]["validation"]


def test_where_nothing_known_can_move_it_is_not_looked_up() -> None:
    def refuse() -> list[TrainingPair]:
        raise AssertionError("nobody needs them")

    context = replace(context_for(tiny_encoder(), toy_pairs()), open_known=refuse)
    strategy = make_strategy("language-tables")
    report = run_update(strategy, context, lambda frozen: data_for(strategy, frozen, validation=toy_pairs()))
    assert "known" not in report.history[0]


def test_batch_norm_statistics_belong_to_the_epoch_that_is_kept() -> None:
    encoder = tiny_encoder()
    encoder.model.visual.ln_post = LastDimensionNorm(32)  # type: ignore[union-attr]
    strategy, report = spoiled(encoder, good_epochs=3)
    kept = strategy.after[2 * report.kept_epoch - 1]
    assert report.kept_epoch <= 3
    assert any("running_mean" in name for name in kept)
    assert_same_state(encoder.model.state_dict(), kept)


def test_without_validation_pairs_the_last_epoch_is_kept() -> None:
    report = teach(tiny_encoder(), make_strategy("finetune"))
    assert (report.kept_epoch, report.validation) == (2, None)


class Diverging(Finetune):
    """A loss that is not a number, or a gradient that is not one."""

    where = "loss"

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        term = super().terms(batch)["contrastive"]
        if self.where == "loss":
            return {"contrastive": term * math.nan}
        return {"contrastive": term + (term - term.detach()).sqrt() * 0}


@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_an_update_stops_when_its_loss_or_gradient_is_not_finite(where: str) -> None:
    encoder, strategy = tiny_encoder(), Diverging(make_strategy("finetune").options)
    strategy.where = where
    with pytest.raises(TrainingDiverged, match=f"the {where} became .* lower learning_rate"):
        teach(encoder, strategy)
    assert all(bool(torch.isfinite(value).all()) for value in encoder.model.state_dict().values())


def test_progress_counts_epochs_and_steps_to_their_end() -> None:
    seen: list[TrainingProgress] = []
    strategy = make_strategy("teir")
    context = context_for(tiny_encoder(), toy_pairs())
    run_update(strategy, context, lambda frozen: data_for(strategy, frozen), progress=seen.append)
    ends = [(at.epoch, at.epochs, at.step, at.steps) for at in seen if at.step == at.steps]
    assert ends == [(1, 2, 2, 2), (2, 2, 2, 2)]
    assert set(seen[-1].terms) == {"cross-modal", "cross-lingual"}
    assert seen[-1].seconds_left == 0


def test_warm_up_is_linear_and_then_constant() -> None:
    schedule = Schedule(learning_rate=1.0, warmup=0.1)
    rates = [learning_rate(schedule, step, 40) for step in range(6)]
    assert rates == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_cosine_ends_at_zero_and_is_half_way_down_in_the_middle() -> None:
    schedule = Schedule(learning_rate=1.0, warmup=0.1, decay="cosine")
    assert learning_rate(schedule, 10, 100) == 1.0
    assert learning_rate(schedule, 55, 100) == pytest.approx(0.5)
    assert learning_rate(schedule, 100, 100) == pytest.approx(0.0)


def test_one_epoch_shorter_than_a_warm_up_still_learns() -> None:
    assert learning_rate(Schedule(learning_rate=1.0), 0, 1) == 1.0


class Counting(Finetune):
    """Fine-tuning that looks at the batches before each epoch."""

    def __init__(self, options: object) -> None:
        super().__init__(options)
        self.seen: list[tuple[int, int]] = []

    def before_epoch(self, epoch: int, batches: Epochs) -> None:
        self.seen.append((epoch, sum(len(batch.row) for batch in batches.epoch(0))))


def test_a_strategy_may_pass_over_the_chunk_before_each_epoch() -> None:
    strategy = Counting(make_strategy("finetune").options)
    teach(tiny_encoder(), strategy)
    assert strategy.seen == [(0, 16), (1, 16)]


@pytest.mark.parametrize(
    ("name", "kind"), [("adamw", torch.optim.AdamW), ("sgd", torch.optim.SGD), ("lamb", Lamb)]
)
def test_the_schedule_names_the_optimizer(name: str, kind: type[torch.optim.Optimizer]) -> None:
    strategy = Finetune()
    context = context_for(tiny_encoder(), toy_pairs())
    strategy.before_update(context)
    made = Schedule(optimizer=name, betas=(0.9, 0.99)).over(strategy.parameter_groups())
    assert type(made) is kind
    assert name != "sgd" or made.defaults["momentum"] == 0.9


def test_an_unknown_optimizer_is_refused() -> None:
    with pytest.raises(BadStrategyOption, match="'adamw', 'sgd' or 'lamb'"):
        Schedule(optimizer="adam")
