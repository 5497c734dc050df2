"""WiSE-FT: fine-tuning, and then back half of the way.

Idea: fine-tuned weights and those before are connected by a line on which both tasks are done nearly as well as at
their own end. So train as finetune does, and release a point between. It costs nothing, and it is the control that
every method with a partial merge (C-CLIP) has to beat.

Formula: ``theta = (1 - alpha) * theta_ref + alpha * theta_t`` for every parameter. Source: Wortsman et al., CVPR
2022, section 3; alpha .5 without validation, as there. The reference is the encoder before the update (``previous``),
or the one that the line of versions started from (``base``), as in the paper.

Where we differ: running statistics are counted anew, not averaged; rows that the reference's table lacks keep what
was trained. The epoch is chosen on the weights that the merge will leave. Kept between updates: nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from model_updates.checked import OneOf, Share
from model_updates.parts.merging import interpolated
from model_updates.parts.merging_towers import Merging, values_of
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers
from model_updates.strategy import Family, UpdateContext


@dataclass(frozen=True)
class WiseFtOptions(TwoTowerOptions):
    """Adds the merge to the options of two towers."""

    alpha: Share = 0.5  # how far to go from the reference to the trained weights (paper: 0.5); 1 is finetune.
    # "previous": the encoder before this update; "base": the one that the line of versions started from.
    reference: Annotated[str, OneOf("previous", "base")] = "previous"


class WiseFt(TwoTowers):
    """Fine-tuning with an interpolated release."""

    name = "wise-ft"
    summary = (
        "Fine-tunes both towers and releases the mean of old and new weights; forgets about half as much."
    )
    paper = "WiSE-FT, CVPR 2022"
    family = Family.MERGING
    options: WiseFtOptions

    def __init__(self, options: WiseFtOptions | None = None) -> None:
        super().__init__(options)
        self.add(Merging(self._merged))

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter train; remembers where to go back to."""
        super().before_update(context)
        of_base = self.options.reference == "base"
        self._reference = values_of((context.open_anchor() if of_base else context.open_previous()).model)

    def _merged(self, trained: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Returns the point between."""
        return interpolated(self._reference, trained, self.options.alpha)
