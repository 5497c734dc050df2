"""The token table that all languages share: what cll-clip and every strategy compared on it begin with.

Each update appends its languages' merges to the one table and trains all rows of it. With an *oracle* vocabulary the
table grows once instead, by one BPE learned on captions of all languages to come, as the paper's upper reference does
(AAAI 2024, Table 3): later merges then never segment old text anew.
"""

from dataclasses import dataclass
from functools import lru_cache

from ingest.pair import BASE_LANGUAGE
from model_updates.byte_pairs import Merge, learn_merges
from model_updates.parts.table_rows import Rows, TeachingOptions, VocabularySize
from model_updates.strategy import UpdateContext
from model_updates.vocabulary import SHARED, Growth, Vocabulary, resegmented_share

SEGMENTED = 500  # known captions of a language that are looked at


@dataclass(frozen=True)
class SharedTableOptions(TeachingOptions):
    """Adds the oracle vocabulary to the teaching options."""

    # a chunk with captions of all languages to come, in the gallery or not; the table then grows by a BPE of
    # its training captions at the first update, and by nothing later. Empty: it grows with each language.
    oracle: str = ""
    oracle_vocabulary: VocabularySize = 200_000  # BPE entries learned on that chunk (paper: 200,000).


class SharedRows(Rows):
    """Rows that are appended to the shared table, all of which train, as in CLL-CLIP."""

    options: SharedTableOptions

    def merges(self, context: UpdateContext) -> dict[str, tuple[Merge, ...]]:
        """Returns each language's BPE, or the one of the oracle, of which a second update finds every entry known."""
        if self.options.oracle:
            captions = sorted(pair.text for pair in context.open_reference(self.options.oracle))
            return {SHARED: oracle_merges(tuple(captions), self.options.oracle_vocabulary)}
        return super().merges(context)

    def grow(self, vocabulary: Vocabulary, context: UpdateContext) -> Growth:
        growth, self._resegmented = merge_into_shared(vocabulary, self.merges(context), context)
        return growth

    def said(self) -> list[str]:
        return [self._resegmented]


def merge_into_shared(
    vocabulary: Vocabulary, merges: dict[str, tuple[Merge, ...]], context: UpdateContext
) -> tuple[Growth, str]:
    """Appends each language's merges to the shared table, as CLL-CLIP does.

    Returns:
        The rows that are new, and a sentence on how many known captions are now segmented otherwise, by language:
        forgetting that no row scale can prevent.
    """
    before = vocabulary.copy()
    growths = [vocabulary.grow_shared(merges[language]) for language in sorted(merges)]
    return Growth.joined(growths), _segmented_otherwise(before, vocabulary, context)


def _segmented_otherwise(before: Vocabulary, after: Vocabulary, context: UpdateContext) -> str:
    known: dict[str, set[str]] = {BASE_LANGUAGE: {p.english for p in context.pairs if p.english is not None}}
    for pair in context.open_known():
        known.setdefault(pair.language, set()).add(pair.text)
    shares = [
        f"{language} {100 * resegmented_share(before, after, sorted(texts)[:SEGMENTED], language):.1f} %"
        for language, texts in sorted(known.items())
        if texts
    ]
    said = ", ".join(shares) or "none is known"
    return f"Known captions that are segmented otherwise than before, by language: {said}."


@lru_cache(maxsize=1)  # the next update of a sequence asks for the same
def oracle_merges(captions: tuple[str, ...], size: int) -> tuple[Merge, ...]:
    """Learns one BPE of so many entries on captions of all languages to come."""
    return learn_merges(captions, size=size)
