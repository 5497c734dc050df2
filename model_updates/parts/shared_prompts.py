"""Prompts that every text chooses from: what dualprompt and coda-prompt have beside the shared token table.

The prompts belong to the encoder: no query has to say its language, and every text runs through the tower twice. They
do not decay, since decay would move those that an update leaves alone.
"""

from collections.abc import Callable

import torch

from model_updates.parts.queried_prefixes import QueriedPrefixes
from model_updates.strategy import Epochs, ParameterGroup, Part, UpdateContext

Grown = Callable[[QueriedPrefixes | None, UpdateContext, torch.Generator], QueriedPrefixes]
"""The prompts with room for what an update teaches, made of those of earlier updates, if there are any."""


class SharedPrompts(Part):
    """Prompts of the encoder in the text tower, which an update grows and trains."""

    def __init__(self, kind: type[QueriedPrefixes], grown: Grown) -> None:
        self._kind, self._grown = kind, grown

    def before_update(self, context: UpdateContext) -> None:
        """Grows the prompts by what this update needs."""
        inserts = context.encoder.inserts
        had = next((insert for insert in inserts if isinstance(insert, self._kind)), None)
        self._trained = self._grown(had, context, torch.Generator().manual_seed(context.seed))
        self._trained.requires_grad_(True)
        if had is None:
            inserts.append(self._trained)
        else:
            inserts[inserts.index(had)] = self._trained
        context.encoder.forget_fingerprints()

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the prompts, which do not decay."""
        return [ParameterGroup(list(self._trained.parameters()), weight_decay=0.0)]

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        self._trained.requires_grad_(False)
