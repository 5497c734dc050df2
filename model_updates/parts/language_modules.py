"""A module of each language in the text tower: what mla, p-tuning and lora give it beside the shared token table.

As in the comparison of CLL-CLIP with TEIR (AAAI 2024, Table 2) the token table trains too; the module of a language is
read by its queries alone, which is why these methods must know the language. The base's language gets no module: it is
what the text tower was trained on, and its texts run as they always did, on the table as it is now.

A foreign text tower has a table that cannot grow. There the module of a language is all that trains: its texts are
spelled as the tower's tokenizer spells them, and every other language keeps each bit of its vectors.
"""

from collections.abc import Mapping
from typing import Any

import torch

from ingest.pair import BASE_LANGUAGE
from model_updates.encoder import Encoder
from model_updates.inserts import Insert, language
from model_updates.parts.layer_inserts import LayerBottlenecks, LayerLowRank
from model_updates.parts.text_blocks import text_blocks
from model_updates.strategy import Epochs, ParameterGroup, Part, UpdateContext
from model_updates.towers import why_fixed


class LanguageModules(Part):
    """The modules of the languages of a chunk, new or those of earlier updates.

    `blocks` is the kind of module that goes into open_clip's own blocks, `layers` the same for the layers of a foreign
    tower; None where there is no such module.
    """

    def __init__(self, blocks: type[Insert], layers: type[Insert] | None, config: Mapping[str, Any]) -> None:
        self._blocks, self._layers, self._config = blocks, layers, dict(config)
        self.of: dict[str, Insert] = {}  # the modules, by language
        self._went_on: list[str] = []

    def no_place(self, strategy: str, encoder: Encoder) -> str | None:
        """Says that a tower whose table cannot grow has no place for a module either; None where it has one."""
        if text_blocks(encoder.model) or (self._layers is not None and _has_layers(encoder)):
            return None
        if encoder.vocabulary is not None:
            return encoder.vocabulary.cannot_grow
        instead = "lora, mla or finetune" if _has_layers(encoder) else "finetune or c-clip"
        return (
            f"the text tower of {encoder.architecture} {why_fixed(encoder.model)}, so its vocabulary cannot grow, and "
            f"{strategy} knows no place for its modules in it. Use {instead}, or an encoder with a text tower built "
            "like CLIP's"
        )

    def before_update(self, context: UpdateContext) -> None:
        """Gives each language its module, a new one or the one it has."""
        encoder = context.encoder
        torch.manual_seed(context.seed)  # new modules draw from the global generator
        languages = sorted(context.texts_by_language().keys() - {BASE_LANGUAGE})
        kind = self._kind(encoder)
        had = {i.owner.name: i for i in encoder.inserts if isinstance(i, kind)}
        self._went_on = [name for name in languages if name in had]
        self.of = {name: had.get(name) or self._new(encoder, kind, name) for name in languages}
        for module in self.of.values():
            module.requires_grad_(True)
        encoder.forget_fingerprints()

    def parameter_groups(self) -> list[ParameterGroup]:
        return [ParameterGroup([p for module in self.of.values() for p in module.parameters()])]

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        for module in self.of.values():
            module.requires_grad_(False)

    def notes(self) -> list[str]:
        return [
            f"{name}: {'its module went on learning' if name in self._went_on else 'a new module'}, "
            f"{sum(p.numel() for p in module.parameters()):,} values."
            for name, module in self.of.items()
        ]

    def _kind(self, encoder: Encoder) -> type[Insert]:
        is_ours = encoder.vocabulary is not None and encoder.vocabulary.segmenter is None
        if self._layers is None or is_ours or text_blocks(encoder.model):
            return self._blocks
        return self._layers

    def _new(self, encoder: Encoder, kind: type[Insert], name: str) -> Insert:
        made = kind.build(language(name), self._config, encoder.model)
        encoder.inserts.append(made)
        return made


def _has_layers(encoder: Encoder) -> bool:
    return bool(LayerLowRank.layers_in(encoder.model) and LayerBottlenecks.layers_in(encoder.model))
