"""What the engine says in English, said in another language: sentence by sentence, by templates.

The engine speaks English to terminal, REST and page alike. A template is an English sentence with values in it,
`Chunk {chunk} is held.`, and the same in another language. A text is looked up whole, then piece by piece; what no
template fits stays as it is, so that nothing is ever left out or made up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_PLACE = re.compile(r"\{(\w+)\}")
_BETWEEN = (re.compile(r"((?<=[.!?]) +)"), re.compile(r"(\\?; | · )"))  # sentences, then parts of them
_LONGEST = 1_000  # characters that are looked for in the table; a template takes long over a long text
# What stands before a sentence: the marks of a heading or a list, and the name of a rule or check.
_MARKS = re.compile(r"(?:#+|[-✓✗?]) +|\*\*(?P<name>[^*]+)\*\*: +")
_MOST_MARKS = 4  # before one sentence
_DEEPEST = 4  # sentences in the places of sentences
_COUNT = re.compile(r"[\d,.\\]+")
_APART = ("; ", " · ")
_END = re.compile(r"[.!?] ")
_CELLS = re.compile(r"( ?\| ?|<br>)")
_BOLD = "**"
_AS_WRITTEN = {"name", "query", "domain"}  # places of what people called something or asked for
# Around a value in a language from right to left: it keeps its own direction, and the words around it theirs.
_ISOLATE, _ISOLATED = "\u2068", "\u2069"
_RIGHT_TO_LEFT = (
    "\u200f"  # what a line begins with whose words are all in isolation, which say no direction for it
)


class Sentences:
    """The templates of one language.

    Args:
        table: English templates and the same in the language.
        right_to_left: whether it is written so.
    """

    def __init__(self, table: Mapping[str, str], *, right_to_left: bool = False) -> None:
        self._around = (_ISOLATE, _ISOLATED) if right_to_left else ("", "")
        self._exact = {english: text for english, text in table.items() if not _PLACE.search(english)}
        # Those that say most come first: a general template must not swallow what a particular one says better.
        placed = sorted(table.keys() - self._exact.keys(), key=lambda english: -len(_PLACE.sub("", english)))
        self._templates = [_Template(english, table[english]) for english in placed]

    def said(self, text: str) -> str:
        """Returns a text of one or more lines, Markdown or plain; in a Markdown table only whole cells are known."""
        if text in self._exact:
            return self._exact[text]
        return "\n".join(
            self._row(line) if line.startswith("|") else self._line(line) for line in text.split("\n")
        )

    def _row(self, line: str) -> str:
        return "".join(self._exact.get(cell, cell) for cell in _CELLS.split(line))

    def _line(self, line: str, depth: int = 0) -> str:
        before = ""
        for _ in range(_MOST_MARKS):
            if mark := _MARKS.match(line):
                name = mark["name"]
                before += mark[0].replace(name, self._exact.get(name, name)) if name else mark[0]
                line = line[mark.end() :]
        return before + self._unmarked(line, depth)

    def _unmarked(self, line: str, depth: int) -> str:
        found = self._whole(line, depth)
        if found is not None or depth >= _DEEPEST:
            return line if found is None else found
        if line.count(_BOLD) == 2 and line.startswith(_BOLD) and line.endswith(_BOLD):
            return f"{_BOLD}{self._line(line[2:-2], depth + 1)}{_BOLD}"
        for between in _BETWEEN:
            pieces = between.split(line)
            if len(pieces) > 1:
                said = [piece if n % 2 else self._line(piece, depth + 1) for n, piece in enumerate(pieces)]
                return line if said == pieces else self._joined(said)
        return line

    def _joined(self, pieces: Sequence[str]) -> str:
        """Returns a line of parts; whatever the direction of one's words, it stays in its place among the others."""
        before, after = self._around
        if not before:
            return "".join(pieces)
        apart = (
            piece if n % 2 or not piece.strip() else f"{before}{piece}{after}"
            for n, piece in enumerate(pieces)
        )
        return _RIGHT_TO_LEFT + "".join(apart)

    def _whole(self, text: str, depth: int) -> str | None:
        """Returns a text that is one of the table's; the values in it may be sentences themselves."""
        if len(text) > _LONGEST:
            return None
        bare = text.replace("\\", "")
        if bare in self._exact:
            return self._exact[bare]
        for template in self._templates:
            if values := template.values(text):
                return self._filled(template.translated, values, depth)
        return None

    def _filled(self, translated: str, values: Mapping[str, str], depth: int) -> str:
        before, after = self._around

        def value(place: re.Match[str]) -> str:
            found = values[place[1]]
            if translated.count("`", 0, place.start()) % 2:  # in code, where a backslash is one to be read
                return found if "`" in found else found.replace("\\", "")
            is_ours = place[1] not in _AS_WRITTEN and depth < _DEEPEST
            said = self._line(found, depth + 1) if is_ours else found
            return said if place[1] == "why" else f"{before}{said}{after}"

        return _PLACE.sub(value, translated)


class _Template:
    """An English sentence with places; its own words may come escaped, as `wording.escaped` does it for Markdown.

    Words are looked for from left to right, each once, the first time it comes. A regular expression that tries
    every way to share a text among places takes minutes over a text made for it, and captions come from anybody.
    """

    def __init__(self, english: str, translated: str) -> None:
        pieces = _PLACE.split(english)
        self.translated = translated
        self._names = pieces[1::2]
        self._words = [re.compile(_either_way(words)) for words in pieces[::2]]

    def values(self, text: str) -> dict[str, str] | None:
        """Returns what stands in the places of a text, or None where it is not of this template."""
        first, *between = self._words
        start = first.match(text)
        if start is None:
            return None
        found: dict[str, str] = {}
        place = start.end()
        for name, words, is_last in zip(
            self._names, between, [*[False] * (len(between) - 1), True], strict=True
        ):
            after = _ending(words, text, place + 1) if is_last else words.search(text, place + 1)
            if after is None or not _may_stand(name, text[place : after.start()]):
                return None
            if found.setdefault(name, text[place : after.start()]) != text[place : after.start()]:
                return None
            place = after.end()
        return found


def _ending(words: re.Pattern[str], text: str, start: int) -> re.Match[str] | None:
    """Returns the words where they end the text, no earlier than `start`."""
    if not words.pattern:
        return words.match(text, len(text)) if start <= len(text) else None
    for place in range(max(start, len(text) - 2 * len(words.pattern)), len(text)):
        found = words.match(text, place)
        if found is not None and found.end() == len(text):
            return found
    return None


def _may_stand(name: str, value: str) -> bool:
    """Says what may stand in a place: a `count` is a number, `why` any sentences, all else ends with its sentence."""
    if name == "count":
        return _COUNT.fullmatch(value) is not None
    return bool(value) and (
        name == "why" or not (any(mark in value for mark in _APART) or _END.search(value))
    )


def _either_way(words: str) -> str:
    return "".join(
        re.escape(one) if one.isalnum() or one.isspace() else rf"\\?{re.escape(one)}" for one in words
    )
