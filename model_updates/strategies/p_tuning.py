"""P-Tuning: CLL-CLIP with prefixes for each language before the tokens of every block of the text tower.

Idea: beside the token table, which all languages share, each language gets keys and values of its own that every token
of its texts can attend to. A query is read with those of its language, so that what a language learned there is never
overwritten.

Formula: 30 keys and 30 values a block are put before a text's own; they come out of a 30 x width embedding by a
network of width 512 with a tanh; the losses are CLL-CLIP's. Source: P-Tuning v2 (Liu et al., ACL 2022), as compared
with in CLL-CLIP with TEIR (AAAI 2024), Table 2. The causal mask is widened on its left, where the prefixes are.

Where we differ: after a language's first update the network is folded away, and later updates of the language train
the prefixes themselves; the base's language, which the tower was trained on, has none.

Behind a foreign text tower with blocks of open_clip, whose table cannot grow, the prefixes alone train.

Kept in the encoder: one set of prefixes a language, read by its texts alone. Carried between updates: nothing.
"""

from dataclasses import dataclass

from model_updates.checked import Count
from model_updates.parts.language_modules import LanguageModules
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.shared_table import SharedTableOptions
from model_updates.parts.text_inserts import TextPrefixes
from model_updates.strategy import Epochs, Family, UpdateContext


@dataclass(frozen=True)
class PTuningOptions(SharedTableOptions):
    """Adds the prefixes to the teaching options."""

    length: Count = 30  # keys, and values, before the tokens of a block (30).
    hidden: Count = 512  # width of the network that they come out of at first (512).


class PTuning(LanguageTeaching):
    """Prefixes for each language."""

    name = "p-tuning"
    summary = "Trains the word table and gives each language prefixes in every block of the text tower."
    paper = "P-Tuning v2, ACL 2022, as in CLL-CLIP with TEIR (AAAI 2024), Table 2"
    family = Family.LANGUAGES
    trains = "the token table and prefixes for each language"
    keeps = "nothing: the prefixes are part of the encoder"
    overhead = "30 keys and values more a block"
    language_at_query = True
    options: PTuningOptions

    def __init__(self, options: PTuningOptions | None = None) -> None:
        super().__init__(options)
        config = {"length": self.options.length, "hidden": self.options.hidden, "folded": False}
        self._prefixes = self.modules = self.add(LanguageModules(TextPrefixes, None, config))

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Folds the networks of new prefixes away."""
        super().after_update(context, batches)
        encoder = context.encoder
        for place, insert in enumerate(encoder.inserts):
            if isinstance(insert, TextPrefixes) and not insert.config["folded"]:
                folded = insert.folded(encoder.model).requires_grad_(False)
                encoder.inserts[place] = self._prefixes.of[insert.owner.name] = folded
        encoder.forget_fingerprints()
