"""RWalk: fine-tuning that pays for moving what the loss is steep in, and what brought it down.

Idea: EWC looks at the weights that an update ends with, SI at the way there; their sum sees both.

Formula: F and its running mean as in `ewc`, omega as in `si`; at the end of an update ``score <- (score + relu(omega /
(F (theta - theta*)**2 + 0.1))) / 2``; ``L = L_contrastive + lambda * sum (F + score) (theta - theta*)**2``. Source:
Chaudhry et al., ECCV 2018, as extended in CTP's library (ICCV 2023): the Fisher diagonal of the end of an update and
not a moving average along the way, the score starting at 0, lambda 1000.

Where we differ: the library does not say which F divides omega; ours is the running mean, as in the penalty. The
gradient in omega comes from a second backward pass, so that neither the penalty nor clipping enters it.

Carried between updates: F, score and how many updates they are of. theta* is the encoder before the update.
"""

from dataclasses import dataclass

from torch import Tensor

from model_updates.checked import NotNegative
from model_updates.pair_sets import Batch
from model_updates.parts.consolidation import ConsolidationOptions, HeldWeights, Path, fisher
from model_updates.parts.importance import fitted
from model_updates.parts.two_towers import TwoTowers
from model_updates.strategy import Epochs, Family, State, UpdateContext

SCORE = "score."


@dataclass(frozen=True)
class RwalkOptions(ConsolidationOptions):
    """Sets the penalty of RWalk."""

    strength: NotNegative = 1000.0  # lambda, the weight of the penalty (1000 in CTP's library).


class Rwalk(TwoTowers):
    """Fine-tuning with Riemannian walk."""

    name = "rwalk"
    summary = "Fine-tunes both towers and holds back what ewc and what si would hold back."
    paper = "Chaudhry et al., ECCV 2018, as in CTP (ICCV 2023)"
    family = Family.HELD_WEIGHTS
    trains = "both towers"
    keeps = "a Fisher diagonal and a score, twice as large as the encoder"
    overhead = "one more backward pass a step and one more pass over the chunk (CTP: 6.2 h against 3.4 h)"
    options: RwalkOptions

    def __init__(self, options: RwalkOptions | None = None) -> None:
        super().__init__(options)
        self.held = self.add(HeldWeights(self.options.strength, self._measured, self._weights))
        self.path = self.add(Path())
        self._score: dict[str, Tensor] = {}

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the terms, and notes the gradient of the contrastive one alone."""
        terms = super().terms(batch)
        self.path.before_step(terms["contrastive"])
        return terms

    def _weights(self) -> dict[str, Tensor]:
        """Returns ``F + score``."""
        return {name: importance + self._score[name] for name, importance in self.held.importance.items()}

    def _measured(self, context: UpdateContext, batches: Epochs) -> dict[str, Tensor]:
        """Returns the mean Fisher diagonal, and takes the mean of the old score and the new."""
        importance, earlier = self.held.mean_with(fisher(context, batches)), self._score
        self._score = {
            name: (value + fitted(earlier[name], value)) / 2 if name in earlier else value / 2
            for name, value in self.path.gain(self.held, importance).items()
        }
        return importance

    def carried(self) -> State:
        state = super().carried()
        return State({**state.tensors, **{f"{SCORE}{n}": v for n, v in self._score.items()}}, state.facts)

    def carry(self, state: State) -> None:
        super().carry(state)
        scores = [name for name in self.held.importance if name.startswith(SCORE)]
        self._score = {name.removeprefix(SCORE): self.held.importance.pop(name) for name in scores}
