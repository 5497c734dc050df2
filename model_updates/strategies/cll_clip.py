"""CLL-CLIP: teach a language by training the token table alone, beside a growing vocabulary.

Idea: freeze both towers; merge a BPE learned on the new captions into the vocabulary; pull each foreign text
towards its picture and towards the English caption of the same picture. Every row of the table trains, so
rows that other languages share move and rows that this chunk does not use decay: that is what it forgets.

Formula: ``L = g1 * L_cm + g2 * L_cl``, in `parts.language_teaching`. Source: CLL-CLIP with TEIR (AAAI 2024),
section 3. Where we differ: the rate follows the encoder's size, and a pair
without an English caption drops L_cl. Kept between updates: vocabulary and table, both part of the encoder.
"""

from __future__ import annotations

from model_updates.families import Family
from model_updates.parts.shared_table import SharedTableTeaching


class CllClip(SharedTableTeaching):
    """Trains the whole token table of a merged vocabulary."""

    name = "cll-clip"
    summary = "Grows the vocabulary and trains the word table alone; pictures need no new vectors."
    paper = "CLL-CLIP with TEIR, AAAI 2024, section 3"
    family = Family.LANGUAGES
    trains = "the token table"
    keeps = "nothing"
    overhead = "none"
