"""Language tables: every language gets token rows of its own, so that none can be forgotten.

Idea: instead of merging vocabularies, give each new language its own segmentation and its own row for every
token its captions use, starting at the English words that translate it (`parts.translations`), or where no English
caption stands beside any, at the row it overlaps; train only those. The query's language picks the table. Vectors of
every other language are bit-identical after the update (their fingerprint does not change). Beside a second text tower,
which reads the language untaught, a table counts as far as its held-out captions ask for (`parts.second_reading`).

Formula: CLL-CLIP's losses (AAAI 2024, section 3) with row scale 1 for the language's own rows and 0 for all others.
Source: our own, after the task-id rows of CLL-CLIP with TEIR (AAAI 2024), Table 2, where methods that know
the language do best. The price is one table a language on disk and a language to choose or detect at the
query.

Kept between updates: the tables, part of the encoder.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from ingest.pair import BASE_LANGUAGE
from model_updates.encoder import Encoder
from model_updates.pair_sets import UpdateData
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.second_reading import SecondReading, read_beside
from model_updates.parts.table_rows import Rows, TeachingOptions, table_statistics
from model_updates.parts.translations import start_from_translations, translations
from model_updates.prospect import Prospect, listed
from model_updates.strategy import Epochs, Family, Foresight, Schedule, UpdateContext
from model_updates.vocabulary import SHARED, Growth, Vocabulary

# Behind foreign rows, where few captions have an English one beside them to start from: held-out captions found first
# 6 % after three epochs, 11 after ten (docs/log.md).
UNTRANSLATED_EPOCHS = 10


class LanguageRows(Rows):
    """Rows of the chunk's languages, in tables of their own."""

    grows_shared = False

    def first_values(self, table: Tensor) -> tuple[float, float]:
        """Returns TEIR's start for rows that overlap nothing."""
        return table_statistics(table)

    def grow(self, vocabulary: Vocabulary, context: UpdateContext) -> Growth:
        """Gives each language of the chunk its table, or more tokens in the one it has."""
        merges, texts = self.merges(context), context.texts_by_language()
        growths = [
            vocabulary.grow_table(language, merges[language], texts[language]) for language in sorted(merges)
        ]
        _, shared = vocabulary.segmentation(SHARED)
        own = {row for language in merges for row in vocabulary.tables[language].rows.values()}
        self._own = torch.zeros(vocabulary.size)
        self._own[sorted(own - set(shared.tolist()))] = 1.0
        self._beside = {language: _beside(vocabulary, context, language) for language in sorted(merges)}
        return Growth.joined(growths)

    def start(
        self, table: nn.Parameter, growth: Growth, generator: torch.Generator, first: tuple[float, float]
    ) -> None:
        """Starts rows at their translations, and those without one where they overlap."""
        super().start(table, growth, generator, first)
        self._translated = sum(
            start_from_translations(table, growth.new_rows, translations(*beside))
            for beside in self._beside.values()
        )

    def own(self) -> Tensor:
        return self._own.nonzero()[:, 0]

    def scales(self, rows: int) -> tuple[Tensor, Tensor]:
        """Returns 1 for the chunk's languages' own rows, 0 for everybody else's."""
        return self._own, self._own

    def said(self) -> list[str]:
        said = [
            f"{int(self._own.sum())} token rows belong to the chunk's languages; no other row could move."
        ]
        if self._translated:
            said.append(f"{self._translated} of them start at the English words that stand beside them.")
        return said


class LanguageTables(LanguageTeaching):
    """Trains rows that belong to the chunk's languages alone."""

    name = "language-tables"
    summary = "Gives each new language word rows of its own; nothing known can be forgotten."
    can_forget = False
    paper = "our own, after the task-id rows of CLL-CLIP with TEIR, AAAI 2024, Table 2"
    family = Family.OURS
    trains = "token rows of the new languages"
    keeps = "nothing: the tables are part of the encoder"
    overhead = "none"
    language_at_query = True
    options: TeachingOptions
    rows_kind = LanguageRows
    _is_translated = True
    _weighed: Sequence[SecondReading] = ()

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses, too, a chunk whose languages are all known without a table of their own."""
        vocabulary, languages = prospect.encoder.vocabulary, prospect.languages
        refused = super().fits(prospect)
        if refused is not None or vocabulary is None:
            return refused
        own = {language for language in languages if language in vocabulary.tables}
        if own or languages - prospect.learned_languages:
            return None
        return (
            f"the languages of this chunk ({listed(languages)}) are known already, by words that languages share, so "
            f"{self.name} has none to give words of its own. Leave the strategy out, and one that fits is chosen"
        )

    def before_update(self, context: UpdateContext) -> None:
        """Grows the languages' tables, and sees whether their rows start from translations."""
        super().before_update(context)
        self._is_translated = _is_translated(context)

    def take(self, data: UpdateData) -> None:
        """Keeps the pairs, which a second tower beside the table is weighed by."""
        super().take(data)
        self._data = data

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Ends the update, and weighs each language's table against a second tower, where there is one."""
        super().after_update(context, batches)
        data, taught = self._data, sorted({pair.language for pair in context.pairs})
        del self._data  # features of a whole chunk, which nobody needs any more
        weighed = [read_beside(context.encoder, tag, data.train, data.validation) for tag in taught]
        self._weighed = [insert for insert in weighed if insert is not None]

    def notes(self) -> list[str]:
        return [*super().notes(), *(insert.said() for insert in self._weighed)]

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns the schedule of all that teach a table, with more epochs where foreign rows start from nothing."""
        return self._planned(encoder, is_translated=self._is_translated)

    def foreseen(self, context: UpdateContext) -> Foresight:
        """Returns what an update would do; a chunk without English captions takes longer."""
        epochs = self._planned(context.encoder, is_translated=_is_translated(context)).epochs
        return replace(super().foreseen(context), epochs=epochs)

    def _planned(self, encoder: Encoder, *, is_translated: bool) -> Schedule:
        planned = super().schedule(encoder)
        is_foreign = encoder.vocabulary is not None and encoder.vocabulary.segmenter is not None
        if self.options.epochs or is_translated or not is_foreign:
            return planned
        return replace(planned, epochs=UNTRANSLATED_EPOCHS)


def _is_translated(context: UpdateContext) -> bool:
    """Whether most captions have an English one beside them."""
    return 2 * sum(pair.english is not None for pair in context.pairs) >= len(context.pairs)


def _beside(
    vocabulary: Vocabulary, context: UpdateContext, language: str
) -> tuple[list[list[int]], list[list[int]]]:
    """Returns the rows of a language's captions and of the English ones beside them, start and end left out.

    None of English itself: its captions stand beside themselves, and its words are where they should be.
    """
    pairs = [pair for pair in context.pairs if pair.language == language != BASE_LANGUAGE and pair.english]
    rows = vocabulary.encode([pair.text for pair in pairs], language)
    english = vocabulary.encode([pair.english or "" for pair in pairs], BASE_LANGUAGE)
    return [row[1:-1] for row in rows], [row[1:-1] for row in english]
