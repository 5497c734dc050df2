"""EMA-merge: release the running mean of the weights of all updates.

Idea: what each update trained lies around what all of them need; their mean forgets less than the last one. The mean
is the encoder that is live, so a merge needs no more than that one.

Formula: ``mean_t = (1 - w) * mean_{t-1} + w * theta_t``; w = 1/t (``weight=0``) is the uniform mean of theta_1 ..
theta_t. Where an update starts is a choice of three: from the live mean (``merged``, called EMA-merge in the source),
from the weights that the last update trained (``trained``, finetune-merge), or from the encoder that the line of
versions started from (``base``, zero-shot-merge). Source: FoMo-in-Flux (NeurIPS 2024), from summaries; its code is
not public.

Where we differ: running statistics are counted anew, not averaged; rows that a table has gained keep what was trained.
The source merges on top of replay (``ema-merge+er``) and lets the peak rate fall with the updates, which no option does
here: say ``learning_rate``. When another strategy moved the weights in between, ``trained`` starts from the live
encoder and says so.

Carried between updates: their number, and with ``start=trained`` the weights that the last one trained.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from model_updates.checked import OneOf, Share
from model_updates.parts.merging import interpolated, return_to
from model_updates.parts.merging_towers import Merging, put, values_of
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers
from model_updates.strategy import Epochs, Family, State, UpdateContext


@dataclass(frozen=True)
class EmaMergeOptions(TwoTowerOptions):
    """Adds the mean to the options of two towers."""

    weight: Share = 0.0  # w, of this update in the mean; 0 means 1/t, the uniform mean of all updates.
    # "merged": train on from the live mean; "trained": from what the last update trained; "base": from the
    # encoder that the line of versions started from.
    start: Annotated[str, OneOf("merged", "trained", "base")] = "merged"


class EmaMerge(TwoTowers):
    """The running mean of updates."""

    name = "ema-merge"
    summary = "Fine-tunes both towers and releases the mean of what all updates trained."
    paper = "model merging as in FoMo-in-Flux, NeurIPS 2024"
    family = Family.MERGING
    keeps = "how many updates there were; with start=trained, the last trained weights"
    options: EmaMergeOptions

    def __init__(self, options: EmaMergeOptions | None = None) -> None:
        super().__init__(options)
        self.add(Merging(self._merged))
        self._updates = 0
        self._trained: dict[str, Tensor] = {}
        self._made_in = 0
        self._interrupted = False

    def before_update(self, context: UpdateContext) -> None:
        """Goes to where training starts; the mean so far is the encoder before this update."""
        super().before_update(context)
        model = context.encoder.model
        self._mean = values_of(context.open_previous().model)
        self._interrupted = bool(self._trained) and self._made_in not in {0, context.update_number - 1}
        if self.options.start == "base":
            return_to(model, context.open_anchor().model)
        elif self.options.start == "trained" and self._trained and not self._interrupted:
            last = {name: value.to(context.encoder.device) for name, value in self._trained.items()}
            put(model, interpolated(last, values_of(model), 0.0))

    def _merged(self, trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the mean with this update in it."""
        weight = self.options.weight or 1 / (self._updates + 1)
        return interpolated(self._mean, trained, weight)

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Keeps what was trained if the next update starts there, and merges."""
        if self.options.start == "trained":
            self._trained = {name: value.clone() for name, value in values_of(context.encoder.model).items()}
        super().after_update(context, batches)
        self._updates += 1
        self._made_in, self._mean = context.update_number, {}

    def notes(self) -> list[str]:
        said = [f"The mean of {self._updates} updates is released."]
        if self._interrupted:
            said.append(
                "Another strategy taught since the last update; training went on from the live encoder."
            )
        return said

    def carried(self) -> State:
        """Returns the number of updates, and the trained weights if they are needed."""
        return State(self._trained, {"updates": self._updates}) if self._updates else State()

    def carry(self, state: State) -> None:
        self._trained = {name: value.clone() for name, value in state.tensors.items()}
        self._updates, self._made_in = int(state.facts["updates"]), state.update
