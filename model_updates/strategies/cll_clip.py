"""CLL-CLIP: teach a language by training the token table alone, beside a growing vocabulary.

Idea: freeze both towers; merge a BPE learned on the new captions into the vocabulary; pull each foreign text
towards its picture and towards the English caption of the same picture. Every row of the table trains, so
rows that other languages share move and rows that this chunk does not use decay: that is what it forgets.

Formula: ``L = g1 * L_cm + g2 * L_cl``, in `parts.language_teaching`. Source: CLL-CLIP with TEIR (AAAI 2024),
section 3. Where we differ: the rate follows the encoder's size, and a pair
without an English caption drops L_cl. Kept between updates: vocabulary and table, both part of the encoder.
"""

from dataclasses import dataclass

from torch import nn

from model_updates.checked import NotNegative
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.shared_table import SharedTableOptions
from model_updates.strategy import Family, ParameterGroup, UpdateContext
from model_updates.towers import token_table

OTHER_THAN_TEXT = ("visual.", "logit_scale", "logit_bias")


@dataclass(frozen=True)
class CllClipOptions(SharedTableOptions):
    """Adds the paper's control to the options of the shared table."""

    # learning rate of everything else in the text tower. 0: frozen, which is the method; above it, all that
    # reads a text trains, which the paper shows to collapse.
    body_rate: NotNegative = 0.0


class CllClip(LanguageTeaching):
    """Trains the whole token table of a merged vocabulary."""

    name = "cll-clip"
    summary = "Grows the vocabulary and trains the word table alone; pictures need no new vectors."
    paper = "CLL-CLIP with TEIR, AAAI 2024, section 3"
    family = Family.LANGUAGES
    trains = "the token table"
    keeps = "nothing"
    overhead = "none"
    options: CllClipOptions

    def before_update(self, context: UpdateContext) -> None:
        """Prepares the table; thaws the rest of the text tower where the control is asked for."""
        super().before_update(context)
        for parameter in self._body():
            parameter.requires_grad_(True)

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the table and the temperature, and the text tower's other weights where they train."""
        groups = super().parameter_groups()
        if self.options.body_rate:
            factor = self.options.body_rate / self.schedule(self._encoder).learning_rate
            groups.append(ParameterGroup(self._body(), rate_factor=factor))
        return groups

    def _body(self) -> list[nn.Parameter]:
        named = self._encoder.model.named_parameters() if self.options.body_rate else ()
        table = token_table(self._encoder.model)
        return [p for name, p in named if p is not table and not name.startswith(OTHER_THAN_TEXT)]
