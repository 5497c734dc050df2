"""DualPrompt: CLL-CLIP with prefixes that all texts share, and those of one expert that each text finds by itself.

Idea: beside the token table, general prefixes in the first blocks of the frozen text tower learn what languages have in
common, and an expert's in the blocks after them what is the language's own. Each expert has a key near the texts it was
trained on, so that a query finds its expert without saying its language.

Formula: ``L = L_cll + mean (1 - cos(q, k_t))``, q the text's feature without prefixes and without gradient, t the
language's expert, which training uses; a query takes the expert whose key is nearest by cosine. One key and one value
in blocks 1 and 2, eight and eight of an expert in blocks 3 to 5, all from U(-1, 1). Source: Wang et al., ECCV 2022, as
compared with in CLL-CLIP with TEIR (AAAI 2024), Table 2.

Where we differ: the reference never uses its last expert block and masks the last words of padded texts; both depress
its numbers, and neither is so here. There is an expert for each language taught, instead of 36 made at once; languages
of one chunk each have their own, and a language that comes again goes on with it. Small towers have fewer such blocks.
Keys learn ten times as fast as the rest, for small chunks. Prompts do not decay, so that experts of other languages
keep every bit.

Kept in the encoder: prefixes and keys, which every text reads from then on, English ones too. Carried between updates:
nothing.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from model_updates.checked import Count, NotNegative
from model_updates.inserts import ENCODER
from model_updates.pair_sets import Batch
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.queried_prefixes import DualPrompts, QueriedPrefixes, SharedPrompts
from model_updates.parts.shared_table import SharedTableOptions
from model_updates.parts.text_blocks import no_text_blocks
from model_updates.prospect import Prospect
from model_updates.strategy import Family, ParameterGroup, UpdateContext

# Nothing but the pull moves a key. At the rate of all, eight epochs over 918 pairs bring it from 1.01 to 0.98 of its
# texts; the paper's updates have a hundred times as many steps (docs/log.md).
KEY_RATE = 10.0


@dataclass(frozen=True)
class DualPromptOptions(SharedTableOptions):
    """Adds the prompts to the teaching options."""

    general: Count = 1  # keys, and values, that all texts share in a block (1).
    expert: Count = 8  # keys, and values, of an expert in a block (8).
    pull: NotNegative = 1.0  # weight of the distance between texts and the key of their expert (1).


class DualPrompt(LanguageTeaching):
    """General prompts and experts found by key."""

    name = "dualprompt"
    summary = (
        "Trains the word table and prompts in the text tower, of which each text finds its language's expert."
    )
    paper = "Wang et al., ECCV 2022, as in CLL-CLIP with TEIR (AAAI 2024), Table 2"
    family = Family.LANGUAGES
    trains = "the token table, general prompts, and an expert for each language"
    keeps = "nothing: the prompts are part of the encoder"
    overhead = "two runs of the text tower for every text"
    options: DualPromptOptions

    def __init__(self, options: DualPromptOptions | None = None) -> None:
        super().__init__(options)
        self.add(SharedPrompts(DualPrompts, self._grown))

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses a text tower without transformer blocks, too."""
        return super().fits(prospect) or no_text_blocks(self.name, prospect.encoder)

    def _grown(
        self, had: QueriedPrefixes | None, context: UpdateContext, generator: torch.Generator
    ) -> DualPrompts:
        """Adds an expert for each language of the chunk that has none."""
        model, options = context.encoder.model, self.options
        if not isinstance(had, DualPrompts):
            config = DualPrompts.configuration(model, general=options.general, expert=options.expert)
            had = DualPrompts.build(ENCODER, config, model)
        self._prompts = had.with_tasks(sorted(context.texts_by_language()), model, generator)
        return self._prompts

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the keys with a rate of their own: an update of a small chunk has too few steps for them."""
        *table, prompts = super().parameter_groups()
        keys = self._prompts.keys
        others = [parameter for parameter in prompts.parameters if parameter is not keys]
        return [
            *table,
            ParameterGroup(others, weight_decay=0.0),
            ParameterGroup([keys], rate_factor=KEY_RATE, weight_decay=0.0),
        ]

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns CLL-CLIP's terms and the pull of keys towards their texts."""
        self._prompts.distances.clear()
        terms = super().terms(batch)
        distances = torch.cat(self._prompts.distances)
        self._prompts.distances.clear()
        return terms | {"keys": self.options.pull * distances.mean()}

    def text_features(self, batch: Batch) -> Tensor:
        """Returns raw (b, dim) features, each text read with the expert of its language."""
        tasks, positions = self._prompts.config["tasks"], list[int]()
        rows = []
        for tag in sorted(set(batch.languages)):
            chosen = [n for n, language in enumerate(batch.languages) if language == tag]
            with self._prompts.told(tasks.index(tag)):
                rows.append(self._encoder.forward_tokens(batch.tokens[chosen], tag).float())
            positions += chosen
        return torch.cat(rows)[torch.tensor(positions, device=batch.tokens.device).argsort()]

    def notes(self) -> list[str]:
        return [*super().notes(), f"Experts: {', '.join(self._prompts.config['tasks'])}."]
