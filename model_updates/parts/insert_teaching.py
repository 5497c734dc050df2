"""The shared token table with an insert for each language: what mla, p-tuning and lora have in common.

As in the comparison of CLL-CLIP with TEIR (AAAI 2024, Table 2) the token table trains too; the module of a language is
read by its queries alone, which is why these methods must know the language. The base's language gets no module: it is
what the text tower was trained on, and its texts run as they always did, on the table as it is now.

A foreign text tower has a table that cannot grow. There the module of a language is all that trains: its texts are
spelled as the tower's tokenizer spells them, and every other language keeps each bit of its vectors.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor

from ingest.pair import BASE_LANGUAGE
from model_updates.encoder import Encoder
from model_updates.errors import ForeignTokenizer
from model_updates.inserts import Insert, language
from model_updates.pairs import Batch
from model_updates.parts.language_teaching import EPOCHS
from model_updates.parts.layer_inserts import LayerBottlenecks, LayerLowRank
from model_updates.parts.shared_table import SharedTableTeaching
from model_updates.parts.text_blocks import no_text_blocks, text_blocks
from model_updates.prospect import Prospect
from model_updates.strategy import Epochs, ParameterGroup, Schedule, UpdateContext
from model_updates.towers import is_small, text_tower, why_fixed

# Of modules that learn a language without the table: where low-rank deltas are commonly trained, and more for small
# towers, as everywhere. Neither was tuned on captions yet.
MODULES_RATE, SMALL_MODULES_RATE = 1e-3, 1e-2
UNIT_LENGTH = 1e-3
"""How far from 1 a feature's length may lie to count as a unit vector's."""


class InsertTeaching(SharedTableTeaching):
    """Base of the strategies that put a module of each language into the text tower.

    Attributes:
        insert: the kind of module that goes into open_clip's own blocks.
        layered: the same for the layers of a foreign tower; None where there is no such module.
    """

    language_at_query = True
    needs_table = False
    insert: ClassVar[type[Insert]]
    layered: ClassVar[type[Insert] | None] = None

    def __init__(self, options: Any = None) -> None:
        super().__init__(options)
        self._modules: dict[str, Insert] = {}
        self._went_on: list[str] = []

    @abstractmethod
    def configuration(self) -> dict[str, Any]:
        """Returns the configuration of a new module."""

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses a text tower without a place for a module, too; one whose table cannot grow will do."""
        encoder = prospect.encoder
        if self.leaves_table(encoder):
            return self._no_place(encoder) or self.no_language(prospect)
        return super().fits(prospect) or no_text_blocks(self.name, encoder)

    def leaves_table(self, encoder: Encoder) -> bool:
        """Whether the modules are all that would train, because the table of an encoder cannot grow."""
        return not self.needs_table and (
            encoder.vocabulary is None or encoder.vocabulary.segmenter is not None
        )

    def before_update(self, context: UpdateContext) -> None:
        """Grows the table as cll-clip does where it can, and gives each language its module, new or the one it has."""
        encoder = context.encoder
        if self.leaves_table(encoder):
            refused = self._no_place(encoder)
            if refused is not None:
                raise ForeignTokenizer(refused)
            encoder.model.requires_grad_(False)
            self._rows = None
            self.begin(encoder, of_unit_length=_gives_unit_vectors(encoder))
        else:
            super().before_update(context)
        torch.manual_seed(context.seed)  # new modules draw from the global generator
        languages = sorted(context.texts_by_language().keys() - {BASE_LANGUAGE})
        kind = self._kind(encoder)
        had = {i.owner.name: i for i in encoder.inserts if isinstance(i, kind)}
        self._went_on = [name for name in languages if name in had]
        self._modules = {name: had.get(name) or self._new(encoder, kind, name) for name in languages}
        for module in self._modules.values():
            module.requires_grad_(True)
        encoder.forget_fingerprints()

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns the schedule of all that teach a table; modules that learn alone take a rate of their own."""
        planned = super().schedule(encoder)
        if not self.leaves_table(encoder):
            return planned
        rate = SMALL_MODULES_RATE if is_small(encoder.dim) else MODULES_RATE
        return replace(
            planned,
            epochs=self.options.epochs or EPOCHS,
            learning_rate=self.options.learning_rate or rate,
            decay="cosine",
        )

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the modules, too."""
        modules = [p for module in self._modules.values() for p in module.parameters()]
        return [*super().parameter_groups(), ParameterGroup(modules)]

    def text_features(self, batch: Batch) -> Tensor:
        """Returns raw (b, dim) features of the batch's texts; a foreign tower reads as in search, without dropout."""
        if self._rows is None:
            text_tower(self._encoder.model).eval()
        return super().text_features(batch)

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Freezes the modules."""
        super().after_update(context, batches)
        for module in self._modules.values():
            module.requires_grad_(False)

    def notes(self) -> list[str]:
        """Says which languages have a module, and how large it is."""
        alone = "The words of this text tower cannot grow, so the modules are all that learned."
        return [
            *([alone] if self._rows is None else super().notes()),
            *(
                f"{name}: {'its module went on learning' if name in self._went_on else 'a new module'}, "
                f"{sum(p.numel() for p in module.parameters()):,} values."
                for name, module in self._modules.items()
            ),
        ]

    def _no_place(self, encoder: Encoder) -> str | None:
        if text_blocks(encoder.model) or (self.layered is not None and _has_layers(encoder)):
            return None
        if encoder.vocabulary is not None:
            return encoder.vocabulary.cannot_grow
        instead = "lora, mla or finetune" if _has_layers(encoder) else "finetune or c-clip"
        return (
            f"the text tower of {encoder.architecture} {why_fixed(encoder.model)}, so its vocabulary cannot grow, and "
            f"{self.name} knows no place for its modules in it. Use {instead}, or an encoder with a text tower built "
            "like CLIP's"
        )

    def _kind(self, encoder: Encoder) -> type[Insert]:
        if self.layered is None or text_blocks(encoder.model) or not self.leaves_table(encoder):
            return self.insert
        return self.layered

    def _new(self, encoder: Encoder, kind: type[Insert], name: str) -> Insert:
        made = kind.build(language(name), self.configuration(), encoder.model)
        encoder.inserts.append(made)
        return made


def _has_layers(encoder: Encoder) -> bool:
    return bool(LayerLowRank.layers_in(encoder.model) and LayerBottlenecks.layers_in(encoder.model))


def _gives_unit_vectors(encoder: Encoder) -> bool:
    (feature,) = torch.from_numpy(encoder.text_features(["a picture"], BASE_LANGUAGE))
    return abs(float(feature.norm()) - 1) < UNIT_LENGTH
