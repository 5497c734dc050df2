"""MLA: CLL-CLIP with a small bottleneck for each language in every block of the text tower.

Idea: beside the token table, which all languages share, each language gets modules of its own in the frozen text
tower. A query is read with those of its language, so that what a language learned there is never overwritten.

Formula: ``h + W_up relu(W_down h)`` behind the MLP of every block, bottleneck half as wide as the tower, W_up zero at
first; the losses are CLL-CLIP's. Source: Houlsby et al., ICML 2019, as MLA (Zhang et al., 2022) was compared with in
CLL-CLIP with TEIR (AAAI 2024), Table 2. Where we differ: the base's language, which the tower was trained on, has none.

Behind a foreign text tower, whose table cannot grow, the modules alone train; nothing that is known can move there.

Kept in the encoder: one module a language, read by its texts alone. Carried between updates: nothing.
"""

from dataclasses import dataclass

from model_updates.checked import Count
from model_updates.parts.language_modules import LanguageModules
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.layer_inserts import LayerBottlenecks
from model_updates.parts.shared_table import SharedTableOptions
from model_updates.parts.text_inserts import TextBottlenecks
from model_updates.strategy import Family


@dataclass(frozen=True)
class MlaOptions(SharedTableOptions):
    """Adds the bottleneck to the teaching options."""

    reduction: Count = 2  # how many times narrower than the tower the bottleneck is (2).


class Mla(LanguageTeaching):
    """A bottleneck for each language."""

    name = "mla"
    summary = "Trains the word table and gives each language a small module in every block of the text tower."
    paper = "Houlsby et al., ICML 2019, as in CLL-CLIP with TEIR (AAAI 2024), Table 2"
    family = Family.LANGUAGES
    trains = "the token table and a module for each language"
    keeps = "nothing: the modules are part of the encoder"
    overhead = "a twelfth more text tower"
    language_at_query = True
    options: MlaOptions

    def __init__(self, options: MlaOptions | None = None) -> None:
        super().__init__(options)
        config = {"reduction": self.options.reduction}
        self.modules = self.add(LanguageModules(TextBottlenecks, LayerBottlenecks, config))
