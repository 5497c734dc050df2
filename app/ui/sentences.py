"""What the engine says in English, said in another language: sentence by sentence, by templates.

The engine speaks English to terminal, REST and page alike. A template is an English sentence with values in it,
`Chunk {chunk} is held.`, and the same in another language. A text is looked up whole, then piece by piece; what no
template fits stays as it is, so that nothing is ever left out or made up.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACE = re.compile(r"\{(\w+)\}")
_BETWEEN = (re.compile(r"((?<=[.!?]) +)"), re.compile(r"(\\?; | · )"))  # sentences, then parts of them
_LONGEST = 1_000  # characters that are looked for in the table; a template takes long over a long text
# What stands before a sentence: the marks of a heading or a list, and the name of a rule or check.
_MARKS = re.compile(r"(?:#+|[-✓✗?]) +|\*\*(?P<name>[^*]+)\*\*: +")
_CELLS = re.compile(r"( ?\| ?|<br>)")
_BOLD = "**"
# Around a value in a language from right to left: it keeps its own direction, and the words around it theirs.
_ISOLATE, _ISOLATED = "\u2068", "\u2069"


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
        self._templates = [(_pattern(english), table[english]) for english in placed]

    def said(self, text: str) -> str:
        """Returns a text of one or more lines, Markdown or plain; in a Markdown table only whole cells are known."""
        if text in self._exact:
            return self._exact[text]
        return "\n".join(
            self._row(line) if line.startswith("|") else self._line(line) for line in text.split("\n")
        )

    def _row(self, line: str) -> str:
        return "".join(self._exact.get(cell, cell) for cell in _CELLS.split(line))

    def _line(self, line: str) -> str:
        mark = _MARKS.match(line)
        if mark:
            name = mark["name"]
            said = mark[0].replace(name, self._exact.get(name, name)) if name else mark[0]
            return said + self._line(line[mark.end() :])
        found = self._whole(line)
        if found is not None:
            return found
        if line.count(_BOLD) == 2 and line.startswith(_BOLD) and line.endswith(_BOLD):
            return f"{_BOLD}{self._line(line[2:-2])}{_BOLD}"
        for between in _BETWEEN:
            pieces = between.split(line)
            if len(pieces) > 1:
                return "".join(piece if n % 2 else self._line(piece) for n, piece in enumerate(pieces))
        return line

    def _whole(self, text: str) -> str | None:
        """Returns a text that is one of the table's; the values in it may be sentences themselves."""
        if len(text) > _LONGEST:
            return None
        bare = text.replace("\\", "")
        if bare in self._exact:
            return self._exact[bare]
        for pattern, translated in self._templates:
            if match := pattern.fullmatch(text):
                return self._filled(translated, match.groupdict())
        return None

    def _filled(self, translated: str, values: Mapping[str, str]) -> str:
        before, after = self._around

        def value(place: re.Match[str]) -> str:
            is_code = translated[place.start() - 1 : place.start()] == "`"
            said = self._line(values[place[1]])
            return said if is_code or place[1] == "why" else f"{before}{said}{after}"

        return _PLACE.sub(value, translated)


def _pattern(english: str) -> re.Pattern[str]:
    """Compiles a template; its own words may come escaped, as `wording.escaped` does it for Markdown."""
    pieces = _PLACE.split(english)
    return re.compile(
        "".join(_place(piece) if n % 2 else _either_way(piece) for n, piece in enumerate(pieces))
    )


def _place(name: str) -> str:
    """What may stand in a place: a `count` is a number, `why` any sentences, and all else ends with its piece."""
    value = {"count": r"[\d,.\\]+?", "why": ".+?"}.get(name, r"(?:(?!; | · ).)+?")
    return f"(?P<{name}>{value})"


def _either_way(words: str) -> str:
    return "".join(
        re.escape(one) if one.isalnum() or one.isspace() else rf"\\?{re.escape(one)}" for one in words
    )
