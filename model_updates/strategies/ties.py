"""TIES: task vectors that are trimmed, and merged only where they agree in sign.

Idea: most of what an update changes does not matter, and where two updates pull in opposite directions their mean
serves neither. So keep the largest changes of each, elect a sign for every weight, and average the changes that have
it.

Formula: of ``tau_i = theta_i - theta_0`` the largest 20 % are kept, by size over the whole vector; the sign of a
weight is that of the sum of its changes, where that is 0 the majority's; ``theta = theta_0 + scale * mean of the
changes with that sign``. Source: Yadav et al., NeurIPS 2023, scale 1, as in mammoth's library. Every update trains
from the base.

Where we differ: sums and counts by sign are kept instead of all vectors, which gives the same result and does not
grow. Running statistics are counted anew; rows that the base's table lacks keep what was trained. What another
strategy moved in the towers since the base gets lost, so do not alternate it with one that trains them.

Carried between updates: the sums of positive and of negative changes and how many there were of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated

from torch import Tensor

from model_updates.checked import Within
from model_updates.parts.merging import SignSums, added, task_vector, trimmed
from model_updates.parts.merging_towers import TaskVectors
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers
from model_updates.strategy import Family, State

PARTS = tuple(field.name for field in fields(SignSums))


@dataclass(frozen=True)
class TiesOptions(TwoTowerOptions):
    """Adds the merge to the options of two towers."""

    # share of a task vector's entries that is kept (paper: 0.2).
    keep: Annotated[float, Within("(0, 1]")] = 0.2
    scale: Annotated[float, Within("(0, 2]")] = 1.0  # of the merged vector (paper: 1).


class Ties(TwoTowers):
    """The base plus the changes that agree."""

    name = "ties"
    summary = (
        "Trains each chunk from the base encoder and releases the base plus the large changes that agree."
    )
    paper = "TIES-Merging, NeurIPS 2023"
    family = Family.MERGING
    keeps = "sums and counts of the changes by sign, three times the encoder"
    options: TiesOptions

    def __init__(self, options: TiesOptions | None = None) -> None:
        super().__init__(options)
        self.vectors = self.add(TaskVectors(self._merged, self._add_up))
        self._sums: SignSums | None = None

    def _merged(self, trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the base with the merged change added."""
        return added(self.vectors.base, self._summed(trained).merged(), trained, self.options.scale)

    def _add_up(self, trained: Mapping[str, Tensor]) -> None:
        """Adds an update's change to the sums."""
        self._sums = self._summed(trained)

    def notes(self) -> list[str]:
        return [f"The changes of {self.vectors.updates} updates are merged into the base."]

    def carried(self) -> State:
        if self._sums is None:
            return State()
        sums = {part: getattr(self._sums, part) for part in PARTS}
        tensors = {f"{part}/{name}": value for part, values in sums.items() for name, value in values.items()}
        return State(tensors, {"updates": self.vectors.updates})

    def carry(self, state: State) -> None:
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in PARTS}
        for key, value in state.tensors.items():
            part, _, name = key.partition("/")
            parts[part][name] = value.clone()
        self._sums, self.vectors.updates = SignSums(**parts), int(state.facts["updates"])

    def _summed(self, trained: Mapping[str, Tensor]) -> SignSums:
        change = trimmed(task_vector(self.vectors.base, trained), self.options.keep)
        if self._sums is None:
            return SignSums.none(change).with_one_more(change)
        return self._sums.to(self._encoder.device).with_one_more(change)
