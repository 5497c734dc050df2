"""Language tables: every language gets token rows of its own, so that none can be forgotten.

Idea: instead of merging vocabularies, give each new language its own segmentation and its own row for every
token its captions use, starting from the rows it overlaps; train only those. The query's language picks the
table. Vectors of every other language are bit-identical after the update (their fingerprint does not change).

Formula: CLL-CLIP's losses (AAAI 2024, section 3) with row scale 1 for the language's own rows and 0 for all others.
Source: our own, after the task-id rows of CLL-CLIP with TEIR (AAAI 2024), Table 2, where methods that know
the language do best. The price is one table a language on disk and a language to choose or detect at the
query.

Kept between updates: the tables, part of the encoder.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.token_table import table_statistics
from model_updates.strategy import UpdateContext
from model_updates.vocabulary import SHARED, Growth, Merge, Vocabulary


class LanguageTables(LanguageTeaching):
    """Trains rows that belong to the chunk's languages alone."""

    name = "language-tables"
    summary = (
        "Gives each new language word rows of its own; nothing known can be forgotten. "
        "The default for a language."
    )
    paper = "our own, after the task-id rows of CLL-CLIP with TEIR, AAAI 2024, Table 2"

    def first_values(self, table: Tensor) -> tuple[float, float]:
        """Returns TEIR's start for rows that overlap nothing."""
        return table_statistics(table)

    def grow(
        self, vocabulary: Vocabulary, merges: dict[str, tuple[Merge, ...]], context: UpdateContext
    ) -> Growth:
        """Gives each language of the chunk its table, or more tokens in the one it has."""
        texts = context.texts_by_language()
        growths = [
            vocabulary.grow_table(language, merges[language], texts[language]) for language in sorted(merges)
        ]
        shared = set(vocabulary.tables[SHARED].rows.values())
        own = {row for language in merges for row in vocabulary.tables[language].rows.values()} - shared
        self._own = torch.zeros(vocabulary.size)
        self._own[sorted(own)] = 1.0
        return Growth(
            np.concatenate([growth.new_rows for growth in growths]),
            np.concatenate([growth.start_from for growth in growths]),
        )

    def row_scales(self, rows: int) -> tuple[Tensor, Tensor]:
        """Returns 1 for the chunk's languages' own rows, 0 for everybody else's."""
        return self._own, self._own

    def notes(self) -> list[str]:
        """Says how many rows the languages own."""
        return [
            f"{int(self._own.sum())} token rows belong to the chunk's languages; no other row could move."
        ]
