"""The query grammar: texts, pictures and items with weights and signs, such as `2:red car + ./a.jpg - fruit`.

A `+` or `-` with spaces around it joins parts, so hyphens and signs inside words are left alone. A number and a colon
before a part say how much it counts. A part is a text; a picture, written as a path or a file's name (`./a.jpg`,
`beach.png`); or a picture of the gallery, written as `#` and the beginning of its id. Quotation marks make text of
anything: `"./a.jpg"`, `"salt + pepper"`. The signs and weights are those of rclip (github.com/yurijmikhalevich/rclip).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from app.desk.errors import BadQuery
from app.desk.hits import HEAVIEST, MOST_PARTS
from ingest.readers.names import READ_SUFFIXES
from ingest.sentence import phrase

_OPERATOR = re.compile(r"(?:(?<=\s)|^)([+-])(?=\s|$)")
_OPENING = re.compile(r'(?:(?<=[\s:])|^)"')
# No digit after the colon: "12:30 at the station" is a time.
_WEIGHT = re.compile(r"([0-9]+(?:[.,][0-9]+)?|[.,][0-9]+)\s*:(?!\d)\s*")
_ITEM = re.compile(r"#([0-9a-f]{6,64})", re.IGNORECASE)
_PATH = re.compile(r"(?:\.{1,2}|~)?/(?=\S)")
_PICTURE_FILE = re.compile(rf"\S+(?:{'|'.join(map(re.escape, sorted(READ_SUFFIXES)))})", re.IGNORECASE)
_ADDRESS = re.compile(r"(?:https?|ftp|file)://|data:image/", re.IGNORECASE)
_EXAMPLE = "such as: 2:red car + ./a.jpg - fruit"


class Kind(StrEnum):
    """What a part of a query is."""

    TEXT = "text"
    IMAGE = "image"
    ITEM = "item"
    VECTOR = "vector"


@dataclass(frozen=True)
class Term:
    """One part of a query."""

    kind: Kind  # what it is
    value: str  # the text, the picture's name, or the item's id or its beginning
    weight: float = 1.0  # how much it counts; below zero for what should not be in the picture
    at: int = 0  # where it begins in the query, from 0
    vector: tuple[float, ...] = ()  # of a `VECTOR`


def parse(query: str) -> tuple[Term, ...]:
    """Reads a query.

    Raises:
        BadQuery: it cannot be read; the sentence and `at` say where.
    """
    operators = _operators(query)
    terms = []
    for n, (sign, start) in enumerate(operators):
        end = operators[n + 1][1] - 1 if n + 1 < len(operators) else len(query)
        terms.append(_term(query, sign, start, end, alone=len(operators) == 1))
    if len(terms) > MOST_PARTS:
        at = terms[MOST_PARTS].at
        raise BadQuery(f"The query has {len(terms)} parts{_here(at)}; at most {MOST_PARTS} are read.", at=at)
    return tuple(terms)


def quoted(text: str) -> str:
    """Returns a text as a query that means it literally, whatever it contains."""
    plain = text.replace('"', " ").strip()
    return f'"{plain}"'


def as_text(query: str) -> str | None:
    """Returns the text of a query that is one text and to be found; None of any other, and of one that is wrong."""
    try:
        terms = parse(query)
    except BadQuery:
        return None
    (first, *others) = terms
    return first.value if not others and first.kind is Kind.TEXT and first.weight == 1 else None


def literal(text: str) -> str:
    """Returns a query that means a text: as it is, or in quotation marks where it would be read as something else."""
    return text if as_text(text) == text.strip() else quoted(text)


def written(terms: Sequence[Term]) -> str:
    """Returns parts as one query."""
    said = []
    for n, term in enumerate(terms):
        sign = "-" if term.weight < 0 else "+" if n else ""
        weight = "" if abs(term.weight) == 1 else f"{abs(term.weight):g}:"
        said.append(f"{sign} {weight}{_value(term)}".strip())
    return " ".join(said)


def _value(term: Term) -> str:
    if term.kind is Kind.ITEM:
        return f"#{term.value[:12]}"
    if term.kind is Kind.TEXT:
        return literal(term.value)
    # A picture that was sent without a name, such as `image 1`, would be read as a text.
    return term.value if as_text(term.value) is None else f"./{term.value}"


def _operators(query: str) -> list[tuple[int, int]]:
    """Returns the sign of each part and where it begins; what is in quotation marks joins nothing."""
    hidden = _without_quotes(query)
    found = [(1 if match[1] == "+" else -1, match.end()) for match in _OPERATOR.finditer(hidden)]
    first = found[0][1] - 1 if found else len(query)
    # Nothing before the first sign: it belongs to the first part.
    return found if found and not query[:first].strip() else [(1, 0), *found]


def _without_quotes(query: str) -> str:
    """Returns the query with everything between quotation marks made letters of no meaning."""
    hidden, position = query, 0
    while match := _OPENING.search(hidden, position):
        end = hidden.find('"', match.end())
        if end < 0:
            at = match.start()
            said = phrase(
                "The quotation mark at character {at} is not closed. Close it, or leave it out.", at=at + 1
            )
            raise BadQuery(said, at=at)
        inside = end - match.end()
        hidden = hidden[: match.end()] + "x" * inside + hidden[end:]
        position = end + 1
    return hidden


def _term(query: str, sign: int, start: int, end: int, *, alone: bool) -> Term:
    part = query[start:end]
    at = start + len(part) - len(part.lstrip())
    part = part.strip()
    if not part:
        if alone and start == 0:
            return Term(Kind.TEXT, "")
        where = start - 1
        operator = "-" if sign < 0 else "+"
        missing = f"Nothing follows the {operator}{_here(where)}" if start else f"Nothing is before{_here(0)}"
        raise BadQuery(f"{missing}. Write a text, a picture or #id there, {_EXAMPLE}.", at=where)
    weight = 1.0
    if match := _WEIGHT.match(part):
        weight = _weight(match[1], at)
        part, at = part[match.end() :], at + match.end()
        if not part:
            raise BadQuery(f"Nothing follows the weight {match[1]}:{_here(at)}, {_EXAMPLE}.", at=at)
    kind, value = _kind(part, at)
    return Term(kind, value, sign * weight, at)


def _weight(number: str, at: int) -> float:
    weight = float(number.replace(",", "."))
    if not 0 < weight <= HEAVIEST:
        raise BadQuery(
            f"The weight {number}{_here(at)} is not between 0 and {HEAVIEST:g}. "
            "To take a part away, put - before it.",
            at=at,
        )
    return weight


def _kind(part: str, at: int) -> tuple[Kind, str]:
    if len(part) > 1 and part[0] == '"' and part.find('"', 1) == len(part) - 1:
        return Kind.TEXT, part[1:-1]
    if match := _ITEM.fullmatch(part):
        return Kind.ITEM, match[1].lower()
    if _ADDRESS.match(part):
        raise BadQuery(
            f"The part{_here(at)} is an address; nothing is fetched from the network. Save the picture and name "
            "its file, or put the words in quotation marks.",
            at=at,
        )
    if _PATH.match(part) or _PICTURE_FILE.fullmatch(part):
        return Kind.IMAGE, part
    return Kind.TEXT, part


def _here(at: int) -> str:
    return f" at character {at + 1}"
