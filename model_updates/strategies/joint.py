"""Joint training: both towers on the chunk and on all pairs of all chunks before it; the upper bound.

Idea: nothing can be forgotten that is trained on again. It keeps every pair and trains longer with every chunk, which
is what continual learning is there to avoid; what it reaches is what the others are measured against from above.

Formula: finetune's loss over the union of the chunks. Source: the "JointT" of CTP (ICCV 2023), the "Joint" of IncCLIP
(ECCV 2022): one training from the pre-trained weights on everything. So each update starts from the encoder that the
line of versions started from (``start=base``); ``warm`` goes on from the live one, which costs fewer epochs for the
same result and is then an upper bound with a history.

Where we differ: only what both encoders have starts anew. Rows that the token table has gained keep what they are,
and inserts stay; the notes say so. Kept between updates: nothing but the catalog's pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from model_updates.checked import OneOf
from model_updates.pairs import TrainingPair
from model_updates.parts.merging import return_to
from model_updates.parts.replaying import unlike
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers
from model_updates.strategy import Family, Replay, UpdateContext


@dataclass(frozen=True)
class JointOptions(TwoTowerOptions):
    """Adds the start to the options of two towers."""

    # "base": from the encoder that the line of versions started from; "warm": from the live one.
    start: Annotated[str, OneOf("base", "warm")] = "base"


class Joint(TwoTowers):
    """Trains everything on everything."""

    name = "joint"
    summary = "Trains both towers on this chunk and all before it together; the upper bound, and the dearest."
    paper = "joint training, the upper bound of CTP (ICCV 2023) and IncCLIP (ECCV 2022)"
    family = Family.BOUNDS
    keeps = "every pair of every chunk"
    overhead = "epochs as long as everything so far"
    replay = Replay.JOINED
    trains_on_all = True
    options: JointOptions

    def __init__(self, options: JointOptions | None = None) -> None:
        super().__init__(options)
        self._earlier: list[TrainingPair] = []
        self._went_on: list[str] = []

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns the training pairs of all earlier chunks, without those that this chunk has again."""
        self._earlier = unlike(context.pairs, context.open_earlier())
        return self._earlier

    def before_update(self, context: UpdateContext) -> None:
        """Goes back to the base where it should, and lets every parameter train."""
        model = context.encoder.model
        self._went_on = return_to(model, context.open_anchor().model) if self.options.start == "base" else []
        super().before_update(context)

    def notes(self) -> list[str]:
        said = [f"{len(self._earlier)} pairs of earlier chunks were learned again."]
        if self._went_on:
            said.append(
                "Not everything could start from the base, whose shapes are others; what it lacks of these went on "
                f"from the live encoder: {', '.join(self._went_on)}."
            )
        return said
