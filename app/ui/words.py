"""The words of the screens in the languages that the interface speaks; `languages/` has a table for each.

What stands on a page from the start (labels, buttons, hints) is translated in the browser, through Gradio's I18n; what
a function says is translated here, by the languages that the browser states. A table has *words* by key, which the
Search tab and the frame of the pages ask for, *labels* by the English ones that the other tabs carry, *headers* of
tables (`tables.py`) and axes, and *sentences* by what the engine says: notes, errors and reports (`sentences.py`). What
it lacks is said in English.
"""

from __future__ import annotations

import json
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import gradio as gr

from app.ui.sentences import Sentences

BASE = "en"
RIGHT_TO_LEFT = {"ar"}
_FOLDER = Path(__file__).with_name("languages")
_TRANSLATED = ("label", "info", "placeholder")
_SAID = (gr.Button, gr.Markdown)
"""Components whose value is what they say, and no data."""

Table = dict[str, str]


def _tables(part: str) -> dict[str, Table]:
    paths = sorted(_FOLDER.glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8"))[part] for path in paths}


def _names(tag: str) -> tuple[str, ...]:
    # A browser says zh-CN where Gradio brings a table of that name, which would hide ours.
    return ("zh", "zh-CN", "zh-TW") if tag == "zh" else (tag,)


def _key(english: str) -> str:
    """Returns a key for a label: one without dots, which Gradio would take for a path."""
    return f"label_{zlib.crc32(english.encode()):08x}"


TABLES = _tables("words")
LABELS = _tables("labels")
HEADERS = _tables("headers")
SENTENCES = _tables("sentences")
_ENGLISH_LABELS = {english: english for labels in LABELS.values() for english in labels}


def _translations(tag: str) -> Table:
    labels = _ENGLISH_LABELS | LABELS[tag]
    return TABLES[BASE] | TABLES[tag] | {_key(english): text for english, text in labels.items()}


TRANSLATIONS = gr.I18n(**{name: _translations(tag) for tag in TABLES for name in _names(tag)})


class Words:
    """What functions say, in one language."""

    def __init__(self, language: str = BASE) -> None:
        self.language = language
        self._table = TABLES[language]

    def __call__(self, key: str, **values: Any) -> str:
        """Returns the words of a key with values put in their places."""
        return self._table.get(key, TABLES[BASE][key]).format(**values)

    def said(self, english: str) -> str:
        """Returns what the engine or a screen says in English, of which one sentence may be known and another not."""
        if self.language == BASE:
            return english
        return LABELS[self.language].get(english) or _sentences(self.language).said(english)

    def header(self, english: str) -> str:
        """Returns what heads a column, a row or an axis; apart from labels, as one word may ask for something there."""
        return HEADERS[self.language].get(english, english)


@cache
def _sentences(language: str) -> Sentences:
    return Sentences(SENTENCES[language], right_to_left=language in RIGHT_TO_LEFT)


ENGLISH = Words()


def label(key: str) -> Any:
    """Returns what stands on a page from the start, for the browser to translate.

    Raises:
        KeyError: no words have this key.
    """
    if key not in TABLES[BASE]:
        raise KeyError(key)
    return TRANSLATIONS(key)


def translate(blocks: gr.Blocks) -> None:
    """Has the browser translate the labels of a page that a table knows; call at the end of its context."""
    for component in blocks.blocks.values():
        names = (*_TRANSLATED, "value") if isinstance(component, _SAID) else _TRANSLATED
        for name in names:
            english = getattr(component, name, None)
            if isinstance(english, str) and english in _ENGLISH_LABELS:
                setattr(component, name, str(TRANSLATIONS(_key(english))))


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
