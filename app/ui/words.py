"""What the screens say in the language of the browser, from the catalogues of `app.words.catalogue`.

What stands on a page from the start (labels, buttons, hints) is translated in the browser, through Gradio's I18n; what
a function says is translated here, by the languages that the browser states.
"""

from __future__ import annotations

import zlib
from typing import Any

import gradio as gr

from app.words.catalogue import BASE, ENGLISH, LANGUAGES, Words, spoken

__all__ = [
    "BASE",
    "ENGLISH",
    "LANGUAGES",
    "TRANSLATIONS",
    "Words",
    "label",
    "spoken",
    "translate",
    "words_of",
]

_TRANSLATED = ("label", "info", "placeholder")
_SAID = (gr.Button, gr.Markdown)
"""Components whose value is what they say, and no data."""
# A browser says zh-CN where Gradio brings a table of that name, which would hide ours.
_NAMES = {"zh": ("zh", "zh-CN", "zh-TW")}

TRANSLATIONS = gr.I18n(**{name: {} for tag in LANGUAGES for name in _NAMES.get(tag, (tag,))})
"""What the browser translates: what a page was given by `label` or `translate`."""


def label(english: str, key: str = "") -> Any:
    """Returns what stands on a page from the start, for the browser to translate.

    Args:
        english: what it says.
        key: under which a script of ours finds it.
    """
    # No dots in it, which Gradio would take for a path.
    key = key or f"label_{zlib.crc32(english.encode()):08x}"
    for tag in LANGUAGES:
        for name in _NAMES.get(tag, (tag,)):
            TRANSLATIONS.translations[name][key] = str(Words(tag).said(english))
    return TRANSLATIONS(key)


def translate(blocks: gr.Blocks) -> None:
    """Has the browser translate the labels of a page that a catalogue knows; call at the end of its context."""
    for component in blocks.blocks.values():
        names = (*_TRANSLATED, "value") if isinstance(component, _SAID) else _TRANSLATED
        for name in names:
            english = getattr(component, name, None)
            if isinstance(english, str) and any(Words(tag).said(english) != english for tag in LANGUAGES):
                setattr(component, name, str(label(english)))


def words_of(request: gr.Request) -> Words:
    """Returns the words in the first language of the browser that the interface speaks."""
    return Words(spoken(request.headers.get("accept-language", "")))
