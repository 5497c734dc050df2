"""The words of the screens in the languages that the interface speaks; `languages/` has a table for each.

What stands on a page from the start (labels, buttons, hints) is translated in the browser, through Gradio's I18n; what
a function says is translated here, by the languages that the browser states. Both read the same tables. What a table
lacks is said in English, and so are the engine's own sentences: notes, errors and reports.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gradio as gr

BASE = "en"
RIGHT_TO_LEFT = frozenset({"ar", "fa", "he", "ur"})
_FOLDER = Path(__file__).with_name("languages")

Table = dict[str, str]


def _tables() -> dict[str, Table]:
    return {
        path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(_FOLDER.glob("*.json"))
    }


def _names(tag: str) -> tuple[str, ...]:
    # A browser says zh-CN where Gradio brings a table of that name, which would hide ours.
    return ("zh", "zh-CN", "zh-TW") if tag == "zh" else (tag,)


TABLES = _tables()
TRANSLATIONS = gr.I18n(**{name: TABLES[BASE] | TABLES[tag] for tag in TABLES for name in _names(tag)})


class Words:
    """What functions say, in one language."""

    def __init__(self, language: str = BASE) -> None:
        self.language = language
        self._table = TABLES[language]

    def __call__(self, key: str, **values: Any) -> str:
        """Returns the words of a key with values put in their places."""
        return self._table.get(key, TABLES[BASE][key]).format(**values)


ENGLISH = Words()


def label(key: str) -> Any:
    """Returns what stands on a page from the start, for the browser to translate.

    Raises:
        KeyError: no words have this key.
    """
    if key not in TABLES[BASE]:
        raise KeyError(key)
    return TRANSLATIONS(key)


def words_of(request: gr.Request) -> Words:
    """Returns the words in the first language of the browser that the interface speaks."""
    return Words(spoken(request.headers.get("accept-language", "")))


def spoken(accepted: str) -> str:
    """Returns which of our languages suits a header such as "de-AT,de;q=0.9,en;q=0.8" best."""
    wanted: list[tuple[float, str]] = []
    for part in accepted.split(","):
        tag, _, weight = part.partition(";")
        wanted.append((_weight(weight), tag.strip().lower().partition("-")[0]))
    # A stable sort: of equal weights the first counts.
    for priority, tag in sorted(wanted, key=lambda one: -one[0]):
        if priority > 0 and tag in TABLES:
            return tag
    return BASE


def _weight(stated: str) -> float:
    _, _, number = stated.partition("=")
    try:
        return float(number) if number else 1.0
    except ValueError:
        return 0.0
