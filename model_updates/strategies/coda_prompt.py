"""CODA-Prompt: CLL-CLIP with prefixes that each text puts together from components by itself.

Idea: beside the token table, each update adds a few components to prefixes in the frozen text tower, at right angles
to all earlier ones, and trains those alone. A text's prefix is the sum of all components weighted by how well each fits
it: nothing has to say which update or language it belongs to.

Formula: ``P = sum_m cos(q * A_m, K_m) P_m``, q the text's feature without prefixes and without gradient; the first half
of P is keys, the second values; five components an update in each of five blocks, length 2. New rows of P, K and A are
drawn by Gram and Schmidt against all earlier ones, at unit length. No further loss: the weight of the orthogonality
penalty is 0 in the authors' code. Source: Smith et al., CVPR 2023, as compared with in CLL-CLIP with TEIR (AAAI 2024),
Table 2.

Where we differ: the reference masks the last words of padded texts, which depresses its numbers; that is not so here.
The pool grows by five with each update, instead of being made for 36 at once. Components do not decay, so that earlier
ones keep every bit. A small encoder has fewer dimensions than many updates have components; then only the newest
earlier ones count.

Kept in the encoder: the components, which every text reads from then on, English ones too. Carried between updates:
nothing.
"""

from dataclasses import dataclass

import torch

from model_updates.checked import BatchSize, Count
from model_updates.errors import BadStrategyOption
from model_updates.inserts import ENCODER
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.queried_prefixes import CodaPrompts, QueriedPrefixes, SharedPrompts
from model_updates.parts.shared_table import SharedTableOptions
from model_updates.parts.text_blocks import no_text_blocks
from model_updates.prospect import Prospect
from model_updates.strategy import Family, UpdateContext


@dataclass(frozen=True)
class CodaPromptOptions(SharedTableOptions):
    """Adds the components to the teaching options."""

    components: Count = 5  # that an update adds (5).
    length: BatchSize = 2  # keys and values of a prefix together, an even number (2).

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.length % 2:
            raise BadStrategyOption(f"length is even, got {self.length}")


class CodaPrompt(LanguageTeaching):
    """Prompts put together from components."""

    name = "coda-prompt"
    summary = "Trains the word table and prompts in the text tower, which each text puts together by itself."
    paper = "Smith et al., CVPR 2023, as in CLL-CLIP with TEIR (AAAI 2024), Table 2"
    family = Family.LANGUAGES
    trains = "the token table and five new components of prompts"
    keeps = "nothing: the prompts are part of the encoder"
    overhead = "two runs of the text tower for every text"
    options: CodaPromptOptions

    def __init__(self, options: CodaPromptOptions | None = None) -> None:
        super().__init__(options)
        self.add(SharedPrompts(CodaPrompts, self._grown))

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses a text tower without transformer blocks, too."""
        return super().fits(prospect) or no_text_blocks(self.name, prospect.encoder)

    def _grown(
        self, had: QueriedPrefixes | None, context: UpdateContext, generator: torch.Generator
    ) -> CodaPrompts:
        """Adds this update's components."""
        model, options = context.encoder.model, self.options
        if not isinstance(had, CodaPrompts):
            config = CodaPrompts.configuration(model, length=options.length)
            had = CodaPrompts.build(ENCODER, config, model)
        self._prompts = had.with_components(options.components, model, generator)
        return self._prompts

    def notes(self) -> list[str]:
        count = self._prompts.config["components"]
        return [*super().notes(), f"{count} components, the newest {count - self._prompts.past} trained."]
