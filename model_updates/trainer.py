"""The one training loop; it knows no strategy by name.

A fresh optimizer and a fresh schedule in every update; bf16 autocast on CUDA; the terms of each step summed
and logged by name; of the epochs that score within one standard error of the best on the chunk's validation
pairs the latest is kept (the last one when there are none); a checkpoint after every epoch, from which an
interrupted update goes on to the same weights.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from model_updates import checkpoint
from model_updates.batches import Batches
from model_updates.checkpoint import Progressed
from model_updates.encoder import training
from model_updates.errors import TrainingDiverged, WeightsMismatch
from model_updates.language_profiles import taught_profiles
from model_updates.pair_sets import Batch, UpdateData
from model_updates.progress import Pace, TrainingProgress
from model_updates.strategy import Schedule, Strategy, UpdateContext
from model_updates.teachers import Teachers
from model_updates.validation import Score, better, near, together, validation_scores


@dataclass(frozen=True)
class TrainingReport:
    """What an update did: its losses by epoch, the epoch kept and its validation score, and what it cost."""

    history: tuple[dict[str, float], ...]
    kept_epoch: int
    validation: float | None
    seconds: float
    image_forwards: int
    training_pairs: int
    english_share: float
    notes: tuple[str, ...]


def run_update(
    strategy: Strategy,
    context: UpdateContext,
    make_data: Callable[[UpdateContext], UpdateData],
    *,
    checkpoints: Path | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
) -> TrainingReport:
    """Runs one update on `context.encoder` in place.

    The strategy comes with what it carried from earlier updates. `make_data` (see `batches.gather`) is called before
    the strategy changes the encoder, so that features of frozen towers are those before this update, and with a context
    whose teachers are frozen. An existing checkpoint is resumed; `progress` is called about once a second and after
    each epoch.

    Raises:
        TrainingDiverged: a loss or a gradient is not finite.
        NothingToLearn: no pair to train on.
        TeacherMoved: the strategy changed an encoder that it may only look at.
    """
    started = time.monotonic()
    encoder = context.encoder
    forwards = encoder.image_forwards
    owner = "" if checkpoints is None else checkpoint.owner_of(strategy, context)
    teachers = Teachers(context)
    context = teachers.context
    data = make_data(context)
    torch.manual_seed(context.seed)
    strategy.before_update(context)
    strategy.take(data)
    if checkpoints is not None:
        known = () if data.known is None else data.known.pairs
        beside = [*data.memory.pairs, *strategy.trained_beside(), *known]
        owner = checkpoint.owner_beside(owner, encoder, beside)
    loop = _Loop(strategy, context, data, owner, progress)
    with training(encoder):
        loop.run(checkpoints)
    strategy.after_update(context, loop.batches)
    teachers.require_unmoved()
    for _, parameter in encoder.parameters():
        parameter.requires_grad_(False)
        parameter.grad = None
    encoder.train(False)
    encoder.profiles = taught_profiles(encoder.profiles, context.texts_by_language())
    encoder.forget_fingerprints()
    return TrainingReport(
        history=tuple(loop.progressed.history),
        kept_epoch=loop.progressed.kept_epoch,
        validation=loop.progressed.history[loop.progressed.kept_epoch - 1].get("validation"),
        seconds=time.monotonic() - started,
        image_forwards=encoder.image_forwards - forwards,
        training_pairs=len(data.train.pairs),
        english_share=data.train.english_share,
        notes=tuple(strategy.notes()),
    )


class _Loop:
    """Optimizer, schedule and counters of one update."""

    def __init__(
        self,
        strategy: Strategy,
        context: UpdateContext,
        data: UpdateData,
        owner: str,
        progress: Callable[[TrainingProgress], None] | None,
    ) -> None:
        encoder = context.encoder
        self.strategy, self.encoder, self.data, self.seed = strategy, encoder, data, context.seed
        self.owner = owner
        self.schedule = strategy.schedule(encoder)
        self.batches = Batches(
            data.train,
            encoder,
            size=self.schedule.batch_size,
            load_image=data.load_image if strategy.reads_pictures else None,
            memory=data.memory,
            replay=strategy.replay,
        )
        self.optimizer = self.schedule.over(strategy.parameter_groups())
        self.trained = [p for group in self.optimizer.param_groups for p in group["params"]]
        self.progressed = Progressed()
        self.kept = checkpoint.Kept()
        self.report_progress = progress or (lambda _: None)

    def run(self, checkpoints: Path | None) -> None:
        """Trains the epochs that are left and loads the one that is kept; scores what has nothing to train."""
        if not self.trained:  # solved at once when the strategy took its data
            new, _ = validation_scores(
                self.encoder, self.data.validation, None, self.strategy, self.data.load_image
            )
            self.progressed.history.append({} if new is None else {"validation": new.mean})
            self.progressed.kept_epoch = 1
            return
        if checkpoints is not None:
            self._resume(checkpoints)
        for epoch in range(self.progressed.epoch, self.schedule.epochs):
            self.strategy.before_epoch(epoch, self.batches)
            terms = self._epoch(epoch)
            with self.strategy.deployed():
                new, known = validation_scores(
                    self.encoder, self.data.validation, self.data.known, self.strategy, self.data.load_image
                )
            self.encoder.train()
            self._remember(epoch, terms, new, known)
            if checkpoints is not None:
                checkpoint.save(
                    checkpoints,
                    self.progressed,
                    owner=self.owner,
                    weights=self._weights(),
                    kept=self.kept,
                    strategy=self.strategy.progress(),
                    optimizer=self.optimizer,
                )
        self._put_back(self.kept.weights)
        self.strategy.load_progress(self.kept.strategy)

    def _epoch(self, epoch: int) -> dict[str, float]:
        steps = len(self.batches)
        pace = Pace(epoch, self.schedule.epochs, steps, self.schedule.batch_size, self.report_progress)
        for done, batch in enumerate(self.batches.epoch(self.seed * 1_000 + epoch)):
            pace.step(self._step(batch, epoch * steps + done))
        return pace.means()

    def _step(self, batch: Batch, step: int) -> dict[str, float]:
        strategy, device = self.strategy, self.encoder.device
        rate = learning_rate(self.schedule, step, len(self.batches) * self.schedule.epochs)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["rate_factor"]
        terms = strategy.terms(batch.to(device))
        loss = torch.stack(list(terms.values())).sum()
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.trained, self.schedule.clip_norm)
        # All at once: a card waits each time that a number of its own is read.
        *each, value, size = torch.stack([*terms.values(), loss, norm.to(loss.device)]).tolist()
        for what, number in (("loss", value), ("gradient", size)):
            if not math.isfinite(number):
                raise TrainingDiverged(_diverged(what, number, step, terms, rate))
        strategy.after_backward(rate)
        self.optimizer.step()
        strategy.after_step()
        return dict(zip(terms, each, strict=True))

    def _remember(self, epoch: int, terms: dict[str, float], new: Score | None, known: Score | None) -> None:
        done = self.progressed
        done.epoch = epoch + 1
        found = {"validation": new, "known": known}
        done.history.append(terms | {name: score.mean for name, score in found.items() if score is not None})
        if new is not None:
            score = new if known is None else together(new, known)
            done.best = better(done.best, score)
            tolerance = self.schedule.tolerance
            if not (near(score, done.best, tolerance) if known is None else score.mean >= done.best.mean):
                return
        done.kept_epoch = epoch + 1
        self.kept = checkpoint.Kept(
            {name: value.clone() for name, value in self._weights().items()},
            {name: value.detach().clone() for name, value in self.strategy.progress().items()},
        )

    def _weights(self) -> dict[str, Tensor]:
        """The part of the encoder's state that may have changed: what trains, and buffers."""
        trained = {id(parameter) for parameter in self.trained}
        frozen = {name for name, p in self.encoder.parameters() if id(p) not in trained}
        return {k: v.detach() for k, v in self.encoder.state().items() if k not in frozen}

    def _put_back(self, weights: dict[str, Tensor]) -> None:
        # Not strict, because the frozen part is not in it; so what is in it must be all of the rest.
        if weights.keys() != self._weights().keys():
            wrong = sorted(weights.keys() ^ self._weights().keys())
            raise WeightsMismatch(
                f"these weights are not the trained part of the encoder: {wrong[:3]} are in one of them only; "
                "remove the checkpoints of this update and start it again"
            )
        self.encoder.load_state(weights)

    def _resume(self, folder: Path) -> None:
        loaded = checkpoint.load(folder, owner=self.owner)
        if loaded is None:
            return
        self._put_back(loaded.weights)
        self.strategy.load_progress(loaded.strategy)
        loaded.restore_optimizer(self.optimizer)
        self.kept, self.progressed = loaded.kept, loaded.progressed
        loaded.restore_random(self.encoder.device)


def _diverged(what: str, value: float, step: int, terms: Mapping[str, Tensor], rate: float) -> str:
    parts = ", ".join(f"{name} {float(term.detach()):.3g}" for name, term in terms.items())
    return (
        f"the {what} became {value} at step {step} ({parts}); lower learning_rate (now {rate:.2g}) and start "
        "again. The live model is as it was"
    )


def learning_rate(schedule: Schedule, step: int, steps: int) -> float:
    """Returns the rate of a step: linear warm-up, then constant or cosine to zero."""
    warmup = max(1, round(steps * schedule.warmup))
    if step < warmup:
        return schedule.learning_rate * (step + 1) / warmup
    if schedule.decay == "constant":
        return schedule.learning_rate
    return schedule.learning_rate * 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))
