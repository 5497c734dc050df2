"""Claims about the interface's languages."""

from __future__ import annotations

import re
import string

import pytest

from app.ui.words import BASE, TABLES, Words, label, spoken


def _places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", sorted(TABLES))
def test_a_language_says_everything_and_puts_the_same_values_in(language: str) -> None:
    assert TABLES[language].keys() == TABLES[BASE].keys()
    for key, text in TABLES[language].items():
        assert _places(text) == _places(TABLES[BASE][key]), key
        # A link that leads elsewhere in one language would be found by nobody who reads another.
        assert re.findall(r"\]\((.*?)\)", text) == re.findall(r"\]\((.*?)\)", TABLES[BASE][key]), key


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("en-US,en;q=0.9", "en"),
        ("xx", "en"),
        ("xx,en;q=0.5", "en"),
        ("en;q=0", "en"),
        ("en;q=nonsense", "en"),
    ],
)
def test_a_browser_is_answered_in_the_first_of_its_languages_that_is_known(
    accepted: str, language: str
) -> None:
    assert spoken(accepted) == language


def test_words_have_their_values_and_unknown_keys_are_refused() -> None:
    assert Words()("pictures", count=3) == "3 pictures"
    with pytest.raises(KeyError):
        label("no such words")
