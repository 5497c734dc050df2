"""CLL-CLIP: teach a language by training the token table alone, beside a growing vocabulary.

Idea: freeze both towers; merge a BPE learned on the new captions into the vocabulary; pull each foreign text
towards its picture and towards the English caption of the same picture. Every row of the table trains, so
rows that other languages share move and rows that this chunk does not use decay: that is what it forgets.

Formula: ``L = g1 * L_cm + g2 * L_cl``, in `parts.language_teaching`. Source: CLL-CLIP with TEIR (AAAI 2024),
section 3. Where we differ: the rate follows the encoder's size, and a pair
without an English caption drops L_cl. Kept between updates: vocabulary and table, both part of the encoder.
"""

from __future__ import annotations

import torch
from torch import Tensor

from model_updates.parts.language_teaching import LanguageTeaching, merge_into_shared
from model_updates.strategy import UpdateContext
from model_updates.vocabulary import Growth, Merge, Vocabulary


class CllClip(LanguageTeaching):
    """Trains the whole token table of a merged vocabulary."""

    name = "cll-clip"
    summary = "Grows the vocabulary and trains the word table alone; pictures need no new vectors."
    paper = "CLL-CLIP with TEIR, AAAI 2024, section 3"

    def grow(
        self, vocabulary: Vocabulary, merges: dict[str, tuple[Merge, ...]], context: UpdateContext
    ) -> Growth:
        """Appends each language's merges to the shared table."""
        growth, self._resegmented = merge_into_shared(vocabulary, merges, context)
        return growth

    def row_scales(self, rows: int) -> tuple[Tensor, Tensor]:
        """Returns ones: every row trains and decays."""
        return torch.ones(rows), torch.ones(rows)

    def notes(self) -> list[str]:
        """Says how much English text the new merges segment anew."""
        return [self._resegmented]
