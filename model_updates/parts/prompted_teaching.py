"""The shared token table with prompts that every text chooses from: what dualprompt and coda-prompt have in common.

The prompts belong to the encoder: no query has to say its language, and every text runs through the tower twice. They
do not decay, since decay would move those that an update leaves alone.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch

from model_updates.parts.queried_prefixes import QueriedPrefixes
from model_updates.parts.shared_table import SharedTableTeaching
from model_updates.parts.text_blocks import no_text_blocks
from model_updates.prospect import Prospect
from model_updates.strategy import Epochs, ParameterGroup, UpdateContext


class PromptedTeaching(SharedTableTeaching):
    """Base of the strategies that put prompts of the encoder into the text tower.

    Attributes:
        insert: the kind of the prompts.
    """

    insert: ClassVar[type[QueriedPrefixes]]

    @abstractmethod
    def grown(
        self, had: QueriedPrefixes | None, context: UpdateContext, generator: torch.Generator
    ) -> QueriedPrefixes:
        """Returns the prompts with room for what this update teaches; `had` are those of earlier updates."""

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses a text tower without transformer blocks, too."""
        return super().fits(prospect) or no_text_blocks(self.name, prospect.encoder)

    def before_update(self, context: UpdateContext) -> None:
        """Grows the table as cll-clip does, and the prompts by what this update needs."""
        super().before_update(context)
        inserts = context.encoder.inserts
        had = next((insert for insert in inserts if isinstance(insert, self.insert)), None)
        grown = self.grown(had, context, torch.Generator().manual_seed(context.seed))
        self._trained = grown.requires_grad_(True)
        if had is None:
            inserts.append(grown)
        else:
            inserts[inserts.index(had)] = grown
        context.encoder.forget_fingerprints()

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the prompts, too, which do not decay."""
        prompts = ParameterGroup(list(self._trained.parameters()), weight_decay=0.0)
        return [*super().parameter_groups(), prompts]

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Freezes the prompts."""
        super().after_update(context, batches)
        self._trained.requires_grad_(False)
