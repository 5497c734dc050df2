"""LwF: fine-tuning whose similarities on the new pairs stay like those of the old model.

Idea: nothing old is at hand, but the old model is; what it says of the new pairs is a target, too.

Formula: ``L = L_contrastive + weight * T**2 / 2 * (KL(sm(Z_old / T) || sm(Z / T)) + the same of the transposes)``,
Z the similarities times the model's own inverse temperature, the mean over rows, T = 2. Source: Li and Hoiem, ECCV
2016; for two towers in this form as compared with in Mod-X (ICML 2023), "contrastive" LwF without correction.

Where we differ: no paper prints T and the weight of this form; T = 2 and its square are those of Li and Hoiem.
``lwf_mode=feature_logits`` is the form of CTP's library (ICCV 2023): raw coordinates of a feature are its logits, under
a fixed temperature of 0.07, averaged over both towers. The third form there is, ZSCL's, distils texts of classes, which
captions do not have.

Kept between updates: nothing but the encoder itself, the teacher of the next one.
"""

from dataclasses import dataclass
from typing import Annotated

from torch import Tensor

from model_updates.checked import NotNegative, OneOf, Positive
from model_updates.losses import kl_rows
from model_updates.pair_sets import Batch
from model_updates.parts.distillation import Features, feature_divergence, old_features, sides
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers, inverse_temperature
from model_updates.strategy import Family, UpdateContext


@dataclass(frozen=True)
class LwfOptions(TwoTowerOptions):
    """Adds the distillation to the options of two towers."""

    # "contrastive" (similarities) or "feature_logits" (coordinates, as in CTP's library).
    lwf_mode: Annotated[str, OneOf("contrastive", "feature_logits")] = "contrastive"
    weight: NotNegative = 1.0  # of the distillation.
    temperature: Positive = 2.0  # T of the contrastive form.


class Lwf(TwoTowers):
    """Learning without forgetting, for two towers."""

    name = "lwf"
    summary = (
        "Fine-tunes both towers and keeps what they say of the new pairs close to what the old ones said."
    )
    paper = "Li and Hoiem, ECCV 2016, as compared with in Mod-X (ICML 2023) and CTP (ICCV 2023)"
    family = Family.DISTILLATION
    trains = "both towers"
    keeps = "nothing: the encoder before the update is the teacher"
    overhead = "about a fifth more time an epoch (CTP: 4.0 h against 3.4 h)"
    needs = frozenset({"text_features"})
    options: LwfOptions

    def before_update(self, context: UpdateContext) -> None:
        """Lets every parameter train, and notes the old temperature."""
        super().before_update(context)
        self._old_scale = inverse_temperature(context.encoder).detach().clone()

    def distillation(self, new: Features, batch: Batch) -> Tensor:
        """Returns the divergence of similarities, or of coordinates."""
        old = old_features(batch)
        if self.options.lwf_mode == "feature_logits":
            return self.options.weight * feature_divergence(new, old)
        seen, temperature = sides(new, old), self.options.temperature
        before = self._old_scale * seen.old_similarities / temperature
        now = inverse_temperature(self._encoder) * seen.similarities / temperature
        both = (kl_rows(before, now) + kl_rows(before.T, now.T)) / 2
        return self.options.weight * temperature**2 * both
