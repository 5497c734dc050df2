"""What of a drawing or table is the same in English and in another language, for the tests of translations."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from app.ui.words import BASE, Words, filled
from app.ui.words import LANGUAGES as SPOKEN

LANGUAGES = sorted(set(SPOKEN) - {BASE})
WHEN = "2026-11-21T10:00:00+00:00"
SAME = {
    "any": {"UTC", "min", "h 12 min"},
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
_SIZE = re.compile(r"\S+ [\d.]+ [kMG]?B")


def left(language: str, draw: Draw, *names: str) -> set[str]:
    """Returns the texts that stay English in a language, without names that are nobody's words."""
    english, said = _seen(draw(Words())), _seen(draw(Words(language)))
    assert english, "nothing is drawn"
    return (english & said) - {_bare(name) for name in names} - SAME.get(language, set()) - SAME["any"]


def table(headers: Sequence[str], rows: Callable[[Words], Sequence[Sequence[str]]]) -> Draw:
    """Returns what draws a table of data: its headers and cells, a line each."""

    def draw(say: Words) -> str:
        shown = filled(headers, rows(say), say)
        return "\n".join([*shown["headers"], *(cell for row in shown["data"] for cell in row)])

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
