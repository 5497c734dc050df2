"""New words: rows for words that no earlier caption contains, appended to a known language's table.

Idea: a known language meets words it never learned (a product's name, a craft's terms). Each gets one row of its own,
beside the pieces it was spelled with; a text without such a word is segmented as before and keeps its vector bit by
bit (a test asserts it).

Formula: multi-positive InfoNCE between the captions and the pictures as they are; only the new rows move. A row starts
from the mean of the rows of its word's pieces.
Source: our own; appended rows are CLL-CLIP's (AAAI 2024), whole words instead of merges, since a merge would fire
inside old words too.

Kept between updates: the rows, part of the encoder.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model_updates.checked import NotNegative
from model_updates.encoder import Encoder
from model_updates.errors import NothingToLearn
from model_updates.parts.language_teaching import LanguageTeaching
from model_updates.parts.table_rows import Rows, TeachingOptions
from model_updates.prospect import Prospect
from model_updates.strategy import Family, UpdateContext
from model_updates.vocabulary import Growth, Vocabulary


@dataclass(frozen=True)
class NewWordsOptions(TeachingOptions):
    """Options of `new-words`: the pictures teach, and nothing pulls a caption back to how it was spelled."""

    cross_modal: NotNegative = 1.0
    cross_lingual: NotNegative = 0.0


class WordRows(Rows):
    """A row for each word that no earlier caption contains."""

    def grow(self, vocabulary: Vocabulary, context: UpdateContext) -> Growth:
        """Appends the new words of each language of the chunk.

        Raises:
            NothingToLearn: every word of the chunk is known.
        """
        fresh = new_words(vocabulary, context)
        if not any(fresh.values()):
            raise NothingToLearn(
                "every word of this chunk is known already, so there is no row to teach. Use evergreen, which then "
                "teaches how the pictures look"
            )
        self._pieces = [pieces for words in fresh.values() for pieces in words.values()]
        growths = [vocabulary.grow_words(language, list(words)) for language, words in fresh.items()]
        self._own = torch.zeros(vocabulary.size)
        for growth in growths:
            self._own[growth.new_rows] = 1.0
        return Growth.joined(growths)

    def start(
        self, table: nn.Parameter, growth: Growth, generator: torch.Generator, first: tuple[float, float]
    ) -> None:
        """Starts each new row from the mean of its word's pieces."""
        with torch.no_grad():
            for row, pieces in zip(growth.new_rows.tolist(), self._pieces, strict=True):
                table[row] = table[list(pieces)].mean(dim=0)

    def own(self) -> Tensor:
        """Returns the new rows: they alone cost moments."""
        return self._own.nonzero()[:, 0]

    def scales(self, rows: int) -> tuple[Tensor, Tensor]:
        """Returns 1 for the new rows, 0 for everybody else's."""
        return self._own, self._own

    def said(self) -> list[str]:
        return [f"{len(self._pieces)} words are new and got a row each; no other row could move."]


class NewWords(LanguageTeaching):
    """Trains rows of words that are new in a known language."""

    name = "new-words"
    summary = "Gives words that no earlier caption contains a row each; texts without them cannot change."
    can_forget = False
    paper = "our own, after the appended rows of CLL-CLIP, AAAI 2024"
    family = Family.OURS
    trains = "token rows of new words"
    keeps = "nothing"
    overhead = "none"
    rows_kind = WordRows
    options: NewWordsOptions

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses an encoder whose words are not ours: it spells in pieces of its own."""
        vocabulary = prospect.encoder.vocabulary
        if vocabulary is not None and vocabulary.segmenter is None:
            return None
        return (
            f"{self.name} gives words rows of their own, and {prospect.encoder.architecture} spells them by rules that "
            "are not ours. Use domain-adapters, which teaches how the pictures look"
        )


def new_words(vocabulary: Vocabulary, context: UpdateContext) -> dict[str, dict[str, tuple[int, ...]]]:
    """Returns for each language the words of a chunk that are spelled in pieces and in no earlier caption.

    A word that is one token already is known to the base encoder, whose own captions nobody keeps.

    Returns:
        The rows of each new word's pieces, words in the order of the alphabet.
    """
    earlier: dict[str, set[str]] = {}
    for pair in (*context.open_earlier(), *context.open_known()):
        earlier.setdefault(pair.language, set()).add(pair.text)
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    for language, texts in sorted(context.texts_by_language().items()):
        met = vocabulary.words(sorted(earlier.get(language, ())), language)
        ours: Mapping[str, tuple[int, ...]] = vocabulary.words(sorted(set(texts)), language)
        found[language] = {
            word: pieces
            for word, pieces in sorted(ours.items())
            if len(pieces) > 1 and word not in met and not word.startswith("'")  # 's and 'll end any word
        }
    return found


def has_new_words(encoder: Encoder, context: UpdateContext) -> bool:
    """Says whether a chunk brings a word that an encoder could give a row."""
    return encoder.vocabulary is not None and any(new_words(encoder.vocabulary, context).values())
