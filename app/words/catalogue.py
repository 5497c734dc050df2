"""What is said in the languages that the interface speaks: a gettext catalogue for each in `catalogues/`.

A message is found by its English template; what a catalogue lacks is said in English. `make docs` brings the catalogues
up to date with the sources (`extraction.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

from babel.messages.pofile import read_po

from ingest.sentence import PLACE, Sentence, Value

BASE = "en"
RIGHT_TO_LEFT = frozenset({"ar"})
HEADER = "header"
"""The context of messages that say something else where they head a column, a row or an axis."""
FOLDER = Path(__file__).with_name("catalogues")
LANGUAGES = (BASE, *sorted(path.stem for path in FOLDER.glob("*.po")))
# Values that people wrote. All others may be words of ours, such as a state, and are then translated, too.
_AS_WRITTEN = frozenset({"name", "query", "domain", "text", "caption", "word", "another"})
# Around a value in a language from right to left: it keeps its own direction, and the words around it theirs.
_ISOLATE, _ISOLATED = "\u2068", "\u2069"
# What a text begins with whose first words are in isolation, which says no direction for it.
_RIGHT_TO_LEFT = "\u200f"

Messages = Mapping[tuple[str, str], str]
"""What is said, by context and English."""


@cache
def messages(language: str) -> Messages:
    """Returns what a catalogue has; nothing for English."""
    if language == BASE:
        return {}
    with (FOLDER / f"{language}.po").open("rb") as file:
        return {
            (message.context or "", str(message.id)): str(message.string)
            for message in read_po(file, locale=language)
            if message.id and message.string and not message.fuzzy
        }


class Words:
    """What is said in one language.

    `known` is what its catalogue has; the one in `catalogues/` where none is given.
    """

    def __init__(self, language: str = BASE, known: Messages | None = None) -> None:
        self.language = language
        self._known = messages(language) if known is None else known
        self._is_isolating = language in RIGHT_TO_LEFT

    def __call__(self, template: str, /, **values: object) -> str:
        """Returns a template filled with values, as `ingest.sentence.phrase` has it, in the language."""
        return self.said(Sentence(template, **values))

    def said(self, text: str) -> str:
        """Returns a sentence of the engine or a word of ours in the language; any other text stays as it is."""
        if self.language == BASE:
            return text
        if not isinstance(text, Sentence):
            return self._known.get(("", text), text)
        return self._filled(self._known.get(("", text.template), text.template), text.values)

    def header(self, english: str) -> str:
        """Returns what heads a column, a row or an axis."""
        return self._known.get((HEADER, english)) or self.said(english)

    def _filled(self, template: str, values: Mapping[str, Value]) -> str:
        parts: list[str] = []
        end = 0
        for place in PLACE.finditer(template):
            before = template[end : place.start()]
            parts.append(before)
            in_code = template.count("`", 0, place.start()) % 2 == 1
            parts.append(self._value(place[1], values.get(place[1], place[0]), in_code=in_code))
            end = place.end()
        said = "".join([*parts, template[end:]])
        return _RIGHT_TO_LEFT + said if said.startswith(_ISOLATE) else said

    def _value(self, name: str, value: Value, *, in_code: bool) -> str:
        if isinstance(value, Sentence):
            return self.said(value)
        text = str(value)
        if in_code:
            return text
        if name not in _AS_WRITTEN:
            text = self.said(text)
        return f"{_ISOLATE}{text}{_ISOLATED}" if self._is_isolating else text


ENGLISH = Words()


def spoken(accepted: str) -> str:
    """Returns which of our languages suits a header such as "de-AT,de;q=0.9,en;q=0.8" best."""
    wanted: list[tuple[float, str]] = []
    for part in accepted.split(","):
        tag, _, weight = part.partition(";")
        wanted.append((_weight(weight), tag.strip().lower().partition("-")[0]))
    # A stable sort: of equal weights the first counts.
    for priority, tag in sorted(wanted, key=lambda one: -one[0]):
        if priority > 0 and tag in LANGUAGES:
            return tag
    return BASE


def _weight(stated: str) -> float:
    _, _, number = stated.partition("=")
    try:
        return float(number) if number else 1.0
    except ValueError:
        return 0.0
