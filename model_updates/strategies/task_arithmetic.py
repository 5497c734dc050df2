"""Task arithmetic: every update trained from the base, all their differences from it added up.

Idea: what an update changes, theta_i - theta_0, is a *task vector*; vectors of different tasks hardly overlap, so a
sum of them does all the tasks, if each is taken a little shorter. An update knows nothing of the others; what is
released does.

Formula: ``tau_i = theta_i - theta_0``, ``theta = theta_0 + scale * sum tau_i``; with ``scale = 1/T`` it is the mean
of all trained models. Source: Ilharco et al., ICLR 2023; .3 to .4 is what about eight tasks take.

Where we differ: running statistics are counted anew; rows that the base's table lacks keep what was trained, for
there is nothing to be added to. Two towers only: what another strategy moved in them since the base is not part of
any vector and gets lost, so do not alternate it with one that trains them.

Carried between updates: the sum of the task vectors, and how many they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from model_updates.checked import Within
from model_updates.parts.merging import added, task_vector
from model_updates.parts.merging_towers import TaskVectors
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers
from model_updates.strategy import Family, State


@dataclass(frozen=True)
class TaskArithmeticOptions(TwoTowerOptions):
    """Adds the sum to the options of two towers."""

    # of the summed task vectors (0.3 to 0.4 for about eight tasks); 0 means 1/T, the mean of all models.
    scale: Annotated[float, Within("[0, 2]")] = 0.4


class TaskArithmetic(TwoTowers):
    """The base plus a share of every update's task vector."""

    name = "task-arithmetic"
    summary = "Trains each chunk from the base encoder and releases the base plus a share of every change."
    paper = "Editing Models with Task Arithmetic, ICLR 2023"
    family = Family.MERGING
    keeps = "the sum of all changes, as large as the encoder"
    options: TaskArithmeticOptions

    def __init__(self, options: TaskArithmeticOptions | None = None) -> None:
        super().__init__(options)
        self.vectors = self.add(TaskVectors(self._merged, self._add_up))
        self._sum: dict[str, Tensor] = {}

    def _merged(self, trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the base with all changes added."""
        return added(
            self.vectors.base,
            self._summed(trained),
            trained,
            self.options.scale or 1 / (self.vectors.updates + 1),
        )

    def _add_up(self, trained: Mapping[str, Tensor]) -> None:
        """Adds an update's change to the sum."""
        self._sum = self._summed(trained)

    def notes(self) -> list[str]:
        return [f"The changes of {self.vectors.updates} updates are added to the base."]

    def carried(self) -> State:
        return State(self._sum, {"updates": self.vectors.updates}) if self.vectors.updates else State()

    def carry(self, state: State) -> None:
        self._sum = {name: value.clone() for name, value in state.tensors.items()}
        self.vectors.updates = int(state.facts["updates"])

    def _summed(self, trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
        change = task_vector(self.vectors.base, trained)
        return {
            name: value + self._sum[name].to(value) if name in self._sum else value
            for name, value in change.items()
        }
