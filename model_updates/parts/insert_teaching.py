"""The shared token table with an insert for each language: what mla, p-tuning and lora have in common.

As in the comparison of CLL-CLIP with TEIR (AAAI 2024, Table 2) the token table trains too; the module of a language is
read by its queries alone, which is why these methods must know the language. The base's language gets no module: it is
what the text tower was trained on, and its texts run as they always did, on the table as it is now.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import torch

from ingest.pair import BASE_LANGUAGE
from model_updates.encoder import Encoder
from model_updates.inserts import Insert, language
from model_updates.parts.shared_table import SharedTableTeaching
from model_updates.parts.text_blocks import no_text_blocks
from model_updates.prospect import Prospect
from model_updates.strategy import Epochs, ParameterGroup, UpdateContext


class InsertTeaching(SharedTableTeaching):
    """Base of the strategies that put a module of each language into the text tower.

    Attributes:
        insert: the kind of module.
    """

    language_at_query = True
    insert: ClassVar[type[Insert]]

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self._modules: dict[str, Insert] = {}
        self._went_on: list[str] = []

    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Returns the configuration of a new module."""

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses a text tower without transformer blocks, too."""
        return super().fits(prospect) or no_text_blocks(self.name, prospect.encoder)

    def before_update(self, context: UpdateContext) -> None:
        """Grows the table as cll-clip does, and gives each language its module, a new one or the one it has."""
        super().before_update(context)
        encoder = context.encoder
        torch.manual_seed(context.seed)  # new modules draw from the global generator
        languages = sorted(context.texts_by_language().keys() - {BASE_LANGUAGE})
        had = {i.owner.name: i for i in encoder.inserts if isinstance(i, self.insert)}
        self._went_on = [name for name in languages if name in had]
        self._modules = {name: had.get(name) or self._new(encoder, name) for name in languages}
        for module in self._modules.values():
            module.requires_grad_(True)
        encoder.forget_fingerprints()

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the modules, too."""
        modules = [p for module in self._modules.values() for p in module.parameters()]
        return [*super().parameter_groups(), ParameterGroup(modules)]

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Freezes the modules."""
        super().after_update(context, batches)
        for module in self._modules.values():
            module.requires_grad_(False)

    def notes(self) -> list[str]:
        """Says which languages have a module, and how large it is."""
        return [
            *super().notes(),
            *(
                f"{name}: {'its module went on learning' if name in self._went_on else 'a new module'}, "
                f"{sum(p.numel() for p in module.parameters()):,} values."
                for name, module in self._modules.items()
            ),
        ]

    def _new(self, encoder: Encoder, name: str) -> Insert:
        made = self.insert.build(language(name), self.configuration(), encoder.model)
        encoder.inserts.append(made)
        return made
