"""What of a drawing or table is the same in English and in another language, for the tests of translations.

A message that nobody has translated yet is no fault of the code that says it. The tests therefore read a catalogue in
which each message has a translation, be it only its English with other vowels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

from app.ui.words import BASE, Words
from app.ui.words import LANGUAGES as SPOKEN
from app.words.catalogue import Messages, messages
from app.words.extraction import described_texts, headers, marked, trees
from ingest.sentence import PLACE

LANGUAGES = sorted(set(SPOKEN) - {BASE})
WHEN = "2026-11-21T10:00:00+00:00"
SAME = {
    "any": {"UTC", "min", "h 12 min", "Hindi"},
    "de": {
        "in B",
        "live",
        "Name",
        "Release",
        "Releases",
        "Slice",
        "Commit",
        "Commits",
        "Installation",
        "Update",
        "Chunk",
    },
    "fr": {
        "validation",
        "installation",
        "commit",
        "commits",
        "base",
        "source",
        "part",
        "images",
        "place",
        "points",
        "mode",
        "release",
        "releases",
    },
    "es": {"base", "no", "slice", "slices", "commit", "commits", "release", "releases"},
}
"""Words that are the same in English and in the language."""
Draw = Callable[[Words], str]

_NAMED = re.compile(r'(?:title|aria-label)="([^"]*)"|!\[(.*?)\]\(')
_UNSEEN = re.compile(r"<[^>]*>|!?\[.*?\]\(.*?\)|`[^`]*`")
_BETWEEN = re.compile(r"\n|\||\*\*| · |● |: (?=\S)|[()]|[,;] ")
_VOWELS = str.maketrans("aeiouyAEIOU", "äëïöüÿÄËÏÖÜ")
_SIZE = re.compile(r"\S+ [\d.]+ [kMG]?B")


def left(language: str, draw: Draw, *names: str) -> set[str]:
    """Returns the texts that stay English in a language, without names that are nobody's words."""
    english, said = _seen(draw(Words())), _seen(draw(Words(language, whole(language))))
    assert english, "nothing is drawn"
    return (english & said) - {_bare(name) for name in names} - SAME.get(language, set()) - SAME["any"]


def whole(language: str) -> Messages:
    """Returns a catalogue with each message, those that nobody has translated with other vowels."""
    return {("", text): _with_other_vowels(text) for text in _said()} | {**messages(language)}


@cache
def _said() -> frozenset[str]:
    """Every message that the sources say, as `make docs` finds them."""
    in_code = {text for _, tree in trees() for text in (*marked(tree), *headers(tree))}
    return frozenset(in_code | {text for text, _ in described_texts()})


def _with_other_vowels(text: str) -> str:
    ends = [0, *(end for place in PLACE.finditer(text) for end in place.span()), len(text)]
    parts = [text[a:b] for a, b in zip(ends, ends[1:], strict=False)]
    return "".join(part if n % 2 else part.translate(_VOWELS) + "\u0307" for n, part in enumerate(parts))


def table(heads: Sequence[str], rows: Callable[[Words], Sequence[Sequence[str]]]) -> Draw:
    """Returns what draws a table of data: its headers and cells, a line each."""

    def draw(say: Words) -> str:
        return "\n".join([*map(say.header, heads), *(cell for row in rows(say) for cell in row)])

    return draw


def _seen(drawn: str) -> set[str]:
    """What a person can see of HTML or Markdown or has read to them, text by text; code and links are left out."""
    named = [one for found in _NAMED.findall(drawn) for one in found]
    texts = [*_BETWEEN.split(_UNSEEN.sub("\n", drawn).replace("\\", "")), *named]
    return {
        _bare(text) for text in texts if re.search(r"[A-Za-z]{2}", _bare(text)) and not _SIZE.search(text)
    }


def _bare(text: str) -> str:
    """A text without the figures and marks around it."""
    return text.strip(" -+−#.◐“”0123456789")
