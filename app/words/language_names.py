"""Languages by their names, from the CLDR that Babel brings: for menus, and in sentences."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from babel import Locale, UnknownLocaleError

NameOf = Callable[[str], str]
"""Returns what readers call a language, by its tag."""


def english_name(tag: str) -> str:
    """Returns a language's name in English."""
    return name_in(tag, "en")


@cache
def own_name(tag: str) -> str:
    """Returns a language's name in itself: "Deutsch" for `de`, "Português (BR)" for `pt-BR`; else the tag."""
    return name_in(tag, tag.partition("-")[0])


@cache
def name_in(tag: str, spoken: str) -> str:
    """Returns what the readers of a language call another: "German" for `de` in `en`; else the tag."""
    primary, _, rest = tag.partition("-")
    try:
        name = Locale.parse(spoken).languages.get(primary)
    except (ValueError, UnknownLocaleError):  # what a person typed need not be a language
        name = None
    if not name:
        return tag
    name = name[0].title() + name[1:]  # not upper: Georgian has another alphabet for that
    return f"{name} ({rest})" if rest else name
