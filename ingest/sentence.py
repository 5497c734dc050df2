"""A sentence for people, which keeps its template and its values so that it can be said in another language.

It is the English text itself, a `str`, wherever one is wanted: in an error, in JSON, in a terminal. A screen looks its
template up in the catalogue of a language and fills that with the same values, so nothing is parsed back. Templates are
filled without being interpreted: braces in a value stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias

Value: TypeAlias = "str | int"
PLACE = re.compile(r"\{(\w+)\}")
_TEMPLATE, _VALUES = "$template", "values"


class Sentence(str):
    """The English text of a template, filled."""

    __slots__ = ("template", "values")
    template: str  # english, with names of values in braces: `Chunk {chunk} is held.`
    values: Mapping[str, Value]  # by name: numbers, texts, and sentences, which are translated themselves

    def __new__(cls, template: str, /, **values: object) -> Sentence:
        """Fills a template, which is also the key for translators; neither number nor text is turned into text.

        Raises:
            KeyError: a place has no value.
        """
        kept = {name: _value(value) for name, value in values.items()}
        sentence = super().__new__(cls, filled(template, lambda name: str(kept[name])))
        sentence.template = template
        sentence.values = kept
        return sentence

    def __str__(self) -> str:
        # Or the text of an error would lose the template of the sentence that it was raised with.
        return self

    def __add__(self, other: str) -> Sentence:
        return joined((self, other), "")

    def __radd__(self, other: str) -> Sentence:
        return joined((other, self), "")

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Value]]:
        return (self.template,), dict(self.values)

    def __deepcopy__(self, _: object) -> Sentence:
        return self


phrase = Sentence


def template(english: str) -> str:
    """Marks English for the catalogues that is made a sentence elsewhere."""
    return english


def filled(template: str, value: Callable[[str], str]) -> str:
    """Returns a template with what `value` gives for the name of each place."""
    return PLACE.sub(lambda place: value(place[1]), template)


def joined(parts: Iterable[str], between: str = " ") -> Sentence:
    """Returns sentences after one another as one; each is translated by itself, and what is empty is left out."""
    values: dict[str, str] = {}
    shown = []
    for part in parts:
        if part and not any(map(str.isalnum, part)) and not PLACE.search(part):
            shown.append(part)  # spaces and marks belong to the template
        elif part:
            name = f"part{len(values)}"
            values[name] = part
            shown.append(f"{{{name}}}")
    return Sentence(between.join(shown), **values)


def to_stored(document: Any) -> Any:
    """Returns JSON values in which sentences keep template and values, for what `from_stored` reads."""
    if isinstance(document, Sentence):
        values = {name: to_stored(value) for name, value in document.values.items()}
        return {_TEMPLATE: document.template, _VALUES: values}
    if isinstance(document, Mapping):
        return {name: to_stored(value) for name, value in document.items()}
    if isinstance(document, (list, tuple)):
        return [to_stored(value) for value in document]
    return document


def from_stored(document: Any) -> Any:
    """Returns what `to_stored` was given; a text of an older home stays a plain one."""
    if isinstance(document, dict):
        read = {name: from_stored(value) for name, value in document.items()}
        return _sentence(read) if read.keys() == {_TEMPLATE, _VALUES} else read
    if isinstance(document, list):
        return [from_stored(value) for value in document]
    return document


def known_fields(record: type[Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what a dataclass has fields for of a stored document, to which a newer Perennial may have added some."""
    return {one.name: document[one.name] for one in fields(record) if one.name in document}


def _sentence(read: dict[str, Any]) -> Any:
    template, values = read[_TEMPLATE], read[_VALUES]
    if not isinstance(template, str) or not isinstance(values, dict):
        return read
    if not all(isinstance(value, (str, int)) for value in values.values()):
        return read
    return Sentence(template, **values) if values.keys() >= set(PLACE.findall(template)) else read


def _value(value: object) -> Value:
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value)
    return str(value)
