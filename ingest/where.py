"""One grammar for filters: `taken = 2024 AND NOT folder = "Work" AND (meta.brand = Acme OR width >= 3000)`.

A condition is a field, an operator and a value; `=` takes a range, too, as in `2023..2024-06`, and `none` for what is
not known. `~` means that a text contains another. Dates count by their beginning: `taken > 2023` is from 2024 on.
"""

from __future__ import annotations

from functools import cache, lru_cache, partial
from typing import Any

from lark import Lark, Token, Transformer, Tree
from lark.exceptions import UnexpectedInput, VisitError
from sqlalchemy import and_, not_, or_

from ingest.conditions import FIELDS, OF_PLACES, Build, Condition, at_once, one_by_one
from ingest.errors import BadOption
from ingest.sentence import phrase

LONGEST = 1000
"""Characters of a filter."""
DEEPEST = 10
"""Conditions of a filter within each other; where pictures are counted, SQLite reads some sixteen."""
_FEW = 4  # conditions; with no more of them, a page is full sooner where each picture is asked by itself
_JOINED = frozenset({"either", "both", "opposite", "condition"})
_GRAMMAR = r"""
?start: either
?either: both (_OR both)*
?both: one (_AND? one)*
?one: _NOT one -> opposite
    | "(" either ")"
    | NAME OPERATOR value -> condition
value: side [".." side] | ".." side -> until
side: NAME | WORD | TEXT
_OR.2: /or\b/i
_AND.2: /and\b/i
_NOT.2: /not\b/i
OPERATOR: ">=" | "<=" | "!=" | "=" | "<" | ">" | "~"
NAME: /[^\W\d][\w.-]*(?<!\.)/
WORD: /[\w:+\/@#*-](?:[\w:+\/@#*-]|\.(?!\.))*/
TEXT: /"(?:[^"\\]|\\.)*"/
%ignore /\s+/
"""


def images_that(text: str) -> Condition:
    """Returns the condition on rows of `images` that a filter states.

    Raises:
        BadOption: it cannot be read; the sentence says where, or which field there is.
    """
    built: Condition = _built(text)[0]
    return built


def private_fields(text: str) -> list[str]:
    """Returns the fields of a filter that only those may use who may know where pictures lie; errors as above."""
    return sorted(_built(text)[1] & OF_PLACES.keys())


@lru_cache(maxsize=64)  # a page asks for what it shows, for counts of it, and then for the next page
def _built(text: str) -> tuple[Condition, set[str]]:
    if len(text) > LONGEST:
        raise BadOption(
            phrase(
                "The filter has {count} characters; at most {most} are read.", count=len(text), most=LONGEST
            )
        )
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        at = len(text) if error.column < 1 else error.column - 1
        raise BadOption(
            phrase(
                "The filter cannot be read from character {at} on: {rest}. Write it like {example}",
                at=at + 1,
                rest=repr(text[at : at + 20]) if text[at:] else phrase("it ends too early"),
                example='taken = 2024 AND (folder = "Italy" OR meta.brand ~ acme)',
            )
        ) from None
    if _depth(tree) > DEEPEST:
        raise BadOption(
            phrase(
                "The filter nests AND, OR and NOT more than {most} deep. Write it with fewer brackets.",
                most=DEEPEST,
            )
        )
    built = _Builder(is_long=sum(1 for _ in tree.find_data("condition")) > _FEW)
    try:
        condition: Condition = built.transform(tree)
    except VisitError as error:
        raise error.orig_exc from None
    return condition, built.used


def _depth(tree: Tree[Token]) -> int:
    """Returns how many conditions lie within each other, counted in a loop, which nothing can make too deep."""
    depth, level = 0, [tree]
    while level:
        depth += 1
        level = [
            inner
            for one in level
            for inner in one.children
            if isinstance(inner, Tree) and inner.data in _JOINED
        ]
    return depth


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="earley", lexer="dynamic", maybe_placeholders=True)


class _Builder(Transformer[Token, Any]):
    """Makes conditions of the tree; methods are named as the rules of the grammar."""

    def __init__(self, *, is_long: bool) -> None:
        super().__init__()
        self.used: set[str] = set()
        self._seen = at_once if is_long else one_by_one

    def side(self, found: list[Token]) -> str:
        text = str(found[0])
        return text[1:-1].replace('\\"', '"').replace("\\\\", "\\") if found[0].type == "TEXT" else text

    def value(self, found: list[str | None]) -> tuple[str | None, str | None]:
        first, last = found
        return (first, last) if last is not None else (first, first)

    def until(self, found: list[str]) -> tuple[str | None, str | None]:
        return None, found[0]

    def opposite(self, found: list[Condition]) -> Condition:
        return not_(found[0])

    def both(self, found: list[Condition]) -> Condition:
        return and_(*found)

    def either(self, found: list[Condition]) -> Condition:
        return or_(*found)

    def condition(self, found: list[Any]) -> Condition:
        name, operator, (low, high) = str(found[0]), str(found[1]), found[2]
        field, dot, inner = name.partition(".")
        field = field.casefold()
        build = self._build(field) if bool(dot and inner) == (field == "meta") else None
        if build is None:
            raise BadOption(
                phrase(
                    "There is no field {name} to filter by; there are {fields}.",
                    name=repr(name[:40]),
                    fields=", ".join([*FIELDS, *OF_PLACES]) + ".NAME",
                )
            )
        self.used.add(field)
        if operator == "!=":
            return not_(build(inner, "=", low, high))
        if low != high and operator != "=":
            raise BadOption(phrase("A range stands after =, not after {operator}.", operator=operator))
        return build(inner, operator, low, high)

    def _build(self, field: str) -> Build | None:
        of_places = OF_PLACES.get(field)
        return FIELDS.get(field) if of_places is None else partial(of_places, self._seen)
