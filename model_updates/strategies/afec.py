"""AFEC: EWC that is pulled, too, towards a model which learns the new chunk with no regard for the old.

Idea: holding back what mattered hinders what is new. A second model starts from the same weights and fine-tunes freely;
where the new chunk makes it steep, the first one is drawn to it, so that what stands in the way is forgotten.

Formula: ``L = L_contrastive + (lambda / 2) sum F (theta - theta*)**2 + (lambda_e / 2) sum F_e (theta - theta_e)**2``, F
and theta* as in `ewc`, theta_e the free model and F_e its Fisher diagonal on the chunk. Source: Wang et al., NeurIPS
2021, as extended in CTP's library (ICCV 2023), which takes turns: one epoch of theta_e, F_e, one epoch of theta; lambda
5000, lambda_e 1.

Where we differ: the rate of theta_e follows the cosine by epochs and not by steps, since its epoch runs as a whole. In
the first update there is nothing to forget, and no free model.

Carried between updates: F and how many updates it is of. theta_e lives within one update.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from model_updates.checked import NotNegative
from model_updates.encoder import Encoder, training
from model_updates.pair_sets import Batch
from model_updates.parts.consolidation import ConsolidationOptions, HeldWeights, fisher
from model_updates.parts.importance import quadratic_penalty
from model_updates.parts.two_towers import TwoTowers, clamp_scale, contrastive, groups_of
from model_updates.strategy import Epochs, Family, UpdateContext

FREE, STEEP, MOMENT = "free.", "steep.", "moment."


@dataclass(frozen=True)
class AfecOptions(ConsolidationOptions):
    """Adds the pull towards the free model."""

    pull: NotNegative = 1.0  # lambda_e, the weight of the distance to the free model (1 in CTP's library).


class Afec(TwoTowers):
    """EWC with active forgetting."""

    name = "afec"
    summary = "Like ewc, and drawn towards a second model that learns the new pairs freely; the slowest of its kind."
    paper = "Wang et al., NeurIPS 2021, as in CTP (ICCV 2023)"
    family = Family.HELD_WEIGHTS
    trains = "both towers"
    keeps = "a Fisher diagonal, as large as the encoder"
    overhead = "a second model that trains as long, and a Fisher pass an epoch (CTP: 8.7 h against 3.4 h)"
    options: AfecOptions

    def __init__(self, options: AfecOptions | None = None) -> None:
        super().__init__(options)
        self.held = self.add(HeldWeights(self.options.strength / 2, self._measured))
        self._free: Encoder | None = None
        self._steep: dict[str, Tensor] = {}

    def before_update(self, context: UpdateContext) -> None:
        """Remembers where the parameters stand and starts the free model, where there is something to forget."""
        super().before_update(context)
        self._context, self._steep, self._free = context, {}, None
        if self.held.updates:
            self._free = context.encoder.copy()
            self._free.model.requires_grad_(True)
            self._optimizer = self.schedule(self._free).over(groups_of(self._free))

    def before_epoch(self, epoch: int, batches: Epochs) -> None:
        """Trains the free model for an epoch and measures where it is steep."""
        if self._free is None:
            return
        schedule = self.schedule(self._free)
        for group in self._optimizer.param_groups:
            group["lr"] = schedule.learning_rate * (1 + math.cos(math.pi * epoch / schedule.epochs)) / 2
        with training(self._free):
            for batch in batches.epoch(self._context.seed * 1_000 + epoch):
                self._free_step(self._free, batch.to(self._context.encoder.device), schedule.clip_norm)
        self._steep = self.steepness(self._free, batches)

    def steepness(self, free: Encoder, batches: Epochs) -> dict[str, Tensor]:
        """Returns the Fisher diagonal of the free model on the chunk."""
        return fisher(self._context, batches, free)

    def _free_step(self, free: Encoder, batch: Batch, clip_norm: float) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        contrastive(free, batch).backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(free.model.parameters(), clip_norm)
        self._optimizer.step()
        clamp_scale(free)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        terms = super().terms(batch)
        if self._free is not None and self._steep:
            free = dict(self._free.model.named_parameters())
            there = {name: free[name].detach() for name in self._steep}
            terms["active-forgetting"] = (
                self.options.pull / 2 * quadratic_penalty(self.held.now, there, self._steep)
            )
        return terms

    def _measured(self, context: UpdateContext, batches: Epochs) -> dict[str, Tensor]:
        """Returns the mean Fisher diagonal of all updates so far."""
        self._free, self._steep = None, {}
        return self.held.mean_with(fisher(context, batches))

    def progress(self) -> dict[str, Tensor]:
        if self._free is None:
            return {}
        state = {f"{FREE}{name}": value for name, value in self._free.model.state_dict().items()}
        state |= {f"{STEEP}{name}": value for name, value in self._steep.items()}
        for number, moments in self._optimizer.state_dict()["state"].items():
            state |= {f"{MOMENT}{number}.{name}": torch.as_tensor(v) for name, v in moments.items()}
        return state

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        if self._free is None:
            return
        self._free.model.load_state_dict(_under(FREE, progress))
        steep = _under(STEEP, progress)
        self._steep = {name: value.to(self.held.now[name], copy=True) for name, value in steep.items()}
        moments: dict[int, dict[str, Tensor]] = {}
        for name, value in _under(MOMENT, progress).items():
            number, _, moment = name.partition(".")
            moments.setdefault(int(number), {})[moment] = value.clone()
        self._optimizer.load_state_dict({**self._optimizer.state_dict(), "state": moments})


def _under(prefix: str, progress: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {n.removeprefix(prefix): v for n, v in progress.items() if n.startswith(prefix)}
