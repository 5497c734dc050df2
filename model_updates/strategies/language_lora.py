"""LoRA per language: CLL-CLIP with low-rank deltas for each language on the text tower's queries and values.

Idea: beside the token table, which all languages share, each language gets low-rank deltas of its own on the frozen
text tower's attention. A query is read with those of its language, so that what a language learned there is never
overwritten. They are never merged: merged deltas would be read by everybody.

Formula: ``W x + (alpha / r) B A x`` on W_q and W_v of every block, r = alpha = 8, A Kaiming-uniform, B zero at first,
no dropout; the losses are CLL-CLIP's. Source: Hu et al., ICLR 2022, as compared with in CLL-CLIP with TEIR (AAAI
2024), Table 2. Where we differ: the base's language, which the tower was trained on, has none.

Behind a foreign text tower, whose table cannot grow, the deltas alone train; nothing that is known can move there.

Kept in the encoder: one set of deltas a language, read by its texts alone. Carried between updates: nothing.
"""

from dataclasses import dataclass

from model_updates.checked import Count, Positive
from model_updates.parts.language_modules import LanguageModules
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.layer_inserts import LayerLowRank
from model_updates.parts.shared_table import SharedTableOptions
from model_updates.parts.text_inserts import TextLowRank
from model_updates.strategy import Family


@dataclass(frozen=True)
class LanguageLoraOptions(SharedTableOptions):
    """Adds the deltas to the teaching options."""

    rank: Count = 8  # r, of each delta (8).
    alpha: Positive = 8.0  # numerator of the factor alpha / r (8).


class LanguageLora(LanguageTeaching):
    """Low-rank deltas for each language."""

    name = "lora"
    summary = "Trains the word table and gives each language low-rank deltas on the text tower's attention."
    paper = "Hu et al., ICLR 2022, as in CLL-CLIP with TEIR (AAAI 2024), Table 2"
    family = Family.LANGUAGES
    trains = "the token table and low-rank deltas for each language"
    keeps = "nothing: the deltas are part of the encoder"
    overhead = "two thin matrices a block"
    language_at_query = True
    options: LanguageLoraOptions

    def __init__(self, options: LanguageLoraOptions | None = None) -> None:
        super().__init__(options)
        config = {"rank": self.options.rank, "alpha": self.options.alpha}
        self.modules = self.add(LanguageModules(TextLowRank, LayerLowRank, config))
