"""Which language a query is in, among those the live encoder has learned.

Detection is lingua's, restricted to the learned languages. Two things it cannot know are added here: a text in Han
characters alone may be Chinese or Japanese, and a learned language that lingua has no model for can only be chosen.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from langcodes import Language as Tag
from lingua import IsoCode639_1, Language, LanguageDetector, LanguageDetectorBuilder

SURE = 0.8  # below this share the two likeliest languages are both searched

Guess = tuple[str, float]


def detect(text: str, learned: Sequence[str]) -> tuple[Guess, ...]:
    """Returns the learned languages with their likelihood, likeliest first; they add up to 1.

    Args:
        text: the query.
        learned: BCP-47 tags of the learned languages; a text that fits none is given to the first.
    """
    known = {_lingua(tag): tag for tag in learned if _lingua(tag) is not None}
    if len(learned) == 1 or not known:
        return ((learned[0], 1.0),)
    if len(known) == 1:
        return tuple((tag, 1.0 if tag == next(iter(known.values())) else 0.0) for tag in learned)
    detector = _detector(frozenset(language for language in known if language is not None))
    values = {
        known[value.language]: value.value for value in detector.compute_language_confidence_values(text)
    }
    if _only_han(text):
        shared = [tag for tag in values if Tag.get(tag).language in {"zh", "ja"}]
        values = {tag: (1 / len(shared) if tag in shared else 0.0) for tag in values} if shared else values
    if not any(values.values()):
        values = {learned[0]: 1.0}
    return tuple(sorted(values.items(), key=lambda guess: (-guess[1], learned.index(guess[0]))))


def candidates(guesses: Sequence[Guess]) -> tuple[str, ...]:
    """Returns the languages to search in: the likeliest, or the two likeliest when it is unsure."""
    first = guesses[0]
    if first[1] >= SURE or len(guesses) == 1 or guesses[1][1] == 0:
        return (first[0],)
    return (first[0], guesses[1][0])


def warm_up(learned: Sequence[str]) -> None:
    """Loads the language models now, which costs seconds, rather than in the first query."""
    detect("warm up", list(learned))


@lru_cache(maxsize=64)
def _lingua(tag: str) -> Language | None:
    code = Tag.get(tag).language or ""
    if code in {"no", "fil"}:
        code = {"no": "nb", "fil": "tl"}[code]
    iso = getattr(IsoCode639_1, code.upper(), None) if len(code) == 2 else None
    return None if iso is None else Language.from_iso_code_639_1(iso)


@lru_cache(maxsize=8)
def _detector(languages: frozenset[Language]) -> LanguageDetector:
    return LanguageDetectorBuilder.from_languages(*sorted(languages, key=str)).build()


def _only_han(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    return bool(letters) and all(unicodedata.name(c, "").startswith("CJK UNIFIED") for c in letters)
