"""ZSCL: fine-tuning that must say of reference data what the first encoder said, and releases its average weights.

Idea: what an encoder knew at first shows on pictures and texts of any kind, none of them taught. Keep its answers
there, keep near the weights of before, and let the mean of the weights along the way go live.

Formula: ``L = L_task + D(rows) + D(columns) + 1 * |theta - theta_{t-1}|**2``; ``D = T**2 * KL(sm(s U_0 Z' / T) || sm(s
U Z' / T))`` with U the features of reference pictures, U_0 and Z those of the first encoder's pictures and texts, T =
2. L_task is the contrastive loss. ``mean <- (n mean + theta) / (n + 1)`` at the first step, every 100 of 1000 and the
last, starting from the weights of before: twelve terms; it is validated, released, and the next update's start. Source:
Zheng et al., ICCV 2023, and the authors' code (class-incremental training; for captions InfoNCE takes the place of the
cross-entropy over classes, which is ours).

Since old and new logits both use the first encoder's text features, no gradient of D reaches the text tower (the
paper's prose suggests that it does): the weights alone hold it. The temperature does not train.

Where we differ: labels, smoothed by 0.2 in the paper, are not unless told: InfoNCE under a fixed temperature then
pushes wrong pairs together (docs/log.md). KL in the place of the cross-entropy has the same gradient and is 0 where
nothing changed. The steps between two terms are a tenth of the update, however long it is, and running statistics are
averaged, too.
The reference is a chunk that may lie outside the gallery; without one, what people find today, else chunks learned
before, else the chunk itself: the update's notes say which. ImageNet and Conceptual Captions, the paper's, are not at
hand. What C-CLIP (ICLR 2025) compares with under this name distils within the batch alone and averages nothing.

Kept between updates: nothing but the encoder itself; the first encoder of the line is the teacher.
"""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.checked import BatchSize, CountOrZero, NotNegative, Positive, Within
from model_updates.losses import kl_rows
from model_updates.pair_sets import Batch, UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.importance import quadratic_penalty
from model_updates.parts.reference_data import TeacherOutputs, chosen_reference
from model_updates.parts.two_towers import (
    TwoTowerOptions,
    TwoTowers,
    contrastive,
    groups_of,
    inverse_temperature,
)
from model_updates.parts.weight_average import WeightAverage
from model_updates.strategy import Epochs, Family, ParameterGroup, UpdateContext

TERMS_AN_UPDATE = 10


@dataclass(frozen=True)
class ZsclOptions(TwoTowerOptions):
    """Adds reference data, the distance to the old weights and the average to the options of two towers."""

    reference: str = ""  # id of the chunk with reference pictures and texts; empty for what is known already.
    reference_size: BatchSize = 1000  # most pictures of the reference.
    reference_batch: BatchSize = 64  # of them, how many a step looks at (64).
    distillation: NotNegative = 1.0  # weight of D in both directions (1); 0 looks at no reference.
    temperature: Positive = 2.0  # T (2).
    # weight of the squared distance to the weights before, summed over all weights (1).
    stay: NotNegative = 1.0
    # of the contrastive loss (0.2 of a loss over classes; see above why none here).
    label_smoothing: Annotated[float, Within("[0, 1)")] = 0.0
    # steps between two terms of the average (100 of 1000); 0 takes a tenth of the update.
    average_every: CountOrZero = 0
    weight_decay: NotNegative = 0.0  # on matrices (0).


class Zscl(TwoTowers):
    """Zero-shot continual learning."""

    name = "zscl"
    summary = "Fine-tunes both towers, keeps what the first encoder says of reference pictures, and averages weights."
    paper = "Zheng et al., ICCV 2023"
    family = Family.DISTILLATION
    trains = "both towers, not the temperature"
    keeps = "nothing: the first encoder of the line is the teacher"
    overhead = "a batch of reference pictures through the image tower at each step"
    options: ZsclOptions

    def __init__(self, options: ZsclOptions | None = None) -> None:
        super().__init__(options)
        self._average: WeightAverage | None = None
        self._taught: TeacherOutputs | None = None

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter but the temperature train, and chooses the reference."""
        super().before_update(context)
        self._encoder.model.logit_scale.requires_grad_(False)
        self._anchor, self._seed = context.open_anchor, context.seed
        self._reference = chosen_reference(context, self.options.reference, self.options.reference_size)
        self._now = {n: p for n, p in self._encoder.model.named_parameters() if p.requires_grad}
        self._start = {name: value.detach().clone() for name, value in self._now.items()}
        self._ones = {name: torch.ones((), device=value.device) for name, value in self._now.items()}

    def take(self, data: UpdateData) -> None:
        """Has the first encoder look at the reference, and starts the average."""
        full, rest = divmod(len(data.train), self.options.batch_size)
        steps = (full + (rest > 1)) * self.options.epochs
        every = self.options.average_every or math.ceil(steps / TERMS_AN_UPDATE)
        self._average = WeightAverage(self._encoder.model, every, steps)
        if self.options.distillation:
            self._taught = TeacherOutputs(self._reference, self._anchor(), data.load_image)

    def trained_beside(self) -> Sequence[TrainingPair]:
        return self._reference.pairs if self.options.distillation else ()

    def parameter_groups(self) -> list[ParameterGroup]:
        scale = self._encoder.model.logit_scale
        groups = groups_of(self._encoder)
        for group in groups:
            group.parameters = [parameter for parameter in group.parameters if parameter is not scale]
        return groups

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the contrastive term, the distillation and the distance to the weights before."""
        smoothing = self.options.label_smoothing
        terms = {"contrastive": contrastive(self._encoder, batch, smoothing=smoothing)}
        if self._taught is not None:
            terms["distillation"] = self.options.distillation * self._distilled(self._taught)
        moved = quadratic_penalty(self._now, self._start, self._ones)
        return terms | {"stay": self.options.stay * moved}

    def _distilled(self, taught: TeacherOutputs) -> Tensor:
        step = 0 if self._average is None else self._average.steps
        rows = taught.draw(self.options.reference_batch, self._seed * 1_000_003 + step)
        pictures, domains = taught.pictures(rows)
        now = normalize(self._encoder.forward_images(pictures, domains).float(), dim=-1)
        scale, temperature = inverse_temperature(self._encoder), self.options.temperature
        before = scale * taught.images(rows) @ taught.texts.T / temperature
        after = scale * now @ taught.texts.T / temperature
        return temperature**2 * (kl_rows(before, after) + kl_rows(before.T, after.T))

    def after_step(self) -> None:
        """Keeps the temperature in range, counts the step and averages."""
        super().after_step()
        if self._average is not None:
            self._average.after_step()

    def deployed(self) -> AbstractContextManager[None]:
        return super().deployed() if self._average is None else self._average.in_place()

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Releases the average, and lets go of the reference."""
        if self._average is not None:
            self._terms = self._average.terms
            self._average.put()
        self._average, self._taught, self._start = None, None, {}

    def notes(self) -> list[str]:
        used = (
            f"{len(self._reference.pairs)} reference pictures from {self._reference.origin}."
            if self.options.distillation
            else "No reference pictures."
        )
        return [used, f"The mean of {self._terms} weights along the way."]

    def progress(self) -> dict[str, Tensor]:
        return {} if self._average is None else self._average.state()

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        if self._average is not None:
            self._average.restore(progress)
