"""Dataclasses whose fields say in their annotations what they may be, which is checked whenever one is made.

::

    @dataclass(frozen=True)
    class MyOptions(Checked):
        rank: Count = 16
        share: Annotated[float, Within("(0, 1]")] = 0.5
        start: Annotated[str, OneOf("base", "warm")] = "base"
"""

import ast
import dataclasses
import inspect
import math
import sys
from functools import cache
from typing import Annotated, ClassVar

from model_updates.errors import BadStrategyOption


class Within:
    """Numbers of an interval as mathematics writes it: ``[0, 1)`` holds 0 and not 1.

    Either end may be ``inf``. A `default` lies outside and is allowed; `why` is said after all else.
    """

    def __init__(self, interval: str, *, default: float | None = None, why: str = "") -> None:
        self._low, self._high = (float(end) for end in interval[1:-1].split(","))
        self._with_low, self._with_high = interval[0] == "[", interval[-1] == "]"
        self._default, self._why = default, why

    def allows(self, value: float) -> bool:
        """Says whether a number lies in the interval; one that is none lies in no interval."""
        above = value >= self._low if self._with_low else value > self._low
        below = value <= self._high if self._with_high else value < self._high
        return (above and below) or value == self._default

    def __str__(self) -> str:
        said = f"at least {self._low:g}" if self._with_low else f"above {self._low:g}"
        if not math.isinf(self._high):
            said += f" and {'at most' if self._with_high else 'below'} {self._high:g}"
        elif self._with_low and self._low == 0:
            said = "not negative"
        return said + ("" if self._default is None else f", or {self._default:g} for the default") + self._why


class OneOf:
    """One of some words."""

    def __init__(self, *words: str) -> None:
        self._words = words

    def allows(self, value: str) -> bool:
        """Says whether it is one of them."""
        return value in self._words

    def __str__(self) -> str:
        *first, last = map(repr, self._words)
        return f"{', '.join(first)} or {last}"


Rule = Within | OneOf
"""What a field may be; as text, what follows "is"."""
Count = Annotated[int, Within("[1, inf)")]
CountOrZero = Annotated[int, Within("[0, inf)")]
NotNegative = Annotated[float, Within("[0, inf)")]
Positive = Annotated[float, Within("(0, inf)")]
Share = Annotated[float, Within("[0, 1]")]
BatchSize = Annotated[int, Within("[2, inf)")]


@dataclasses.dataclass(frozen=True)
class Checked:
    """Base of such dataclasses; a field keeps the rules that its bases have for it."""

    refusal: ClassVar[type[Exception]] = BadStrategyOption

    def __post_init__(self) -> None:
        for name, rule in _rules(type(self)):
            value = getattr(self, name)
            if not rule.allows(value):
                raise self.refusal(f"{name} is {rule}, got {value!r}")


def _rules(kind: type[Checked]) -> list[tuple[str, Rule]]:
    """Returns the rules of a class's fields, its bases' first."""
    return [
        (name, rule)
        for base in reversed(kind.__mro__)
        for name, hint in inspect.get_annotations(base, eval_str=True).items()
        for rule in getattr(hint, "__metadata__", ())
        if isinstance(rule, Rule)
    ]


def explained(kind: type) -> dict[str, str]:
    """Returns what comments say of a class's fields, those of its bases included, by the fields' names.

    A comment explains the field in whose line it ends, or the one below it, as in `Sphinx's autodoc
    <https://www.sphinx-doc.org/en/master/usage/extensions/autodoc.html>`_.
    """
    found: dict[str, str] = {}
    for part in reversed(kind.__mro__):
        if "__annotations__" in vars(part):
            found |= _comments(part.__module__).get(part.__name__, {})
    return found


@cache
def _comments(module: str) -> dict[str, dict[str, str]]:
    """Returns what a module says of the fields of its classes; nothing where it came without its source."""
    try:
        source = "" if module.startswith("pydantic") else inspect.getsource(sys.modules[module])
    except (OSError, TypeError):  # another's package, compiled or packed; a prompt
        source = ""
    lines = source.splitlines()
    return {
        node.name: {
            one.target.id: said
            for one in node.body
            if isinstance(one, ast.AnnAssign)
            and isinstance(one.target, ast.Name)
            and (said := _said(lines, one))
        }
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
    }


def _said(lines: list[str], field: ast.AnnAssign) -> str:
    """Returns the comment that ends a field's last line, or else the lines of comment above it."""
    last, end = field.end_lineno or field.lineno, field.end_col_offset or 0
    beside = lines[last - 1].encode()[end:].decode().strip()
    if beside:
        return beside.removeprefix("#").strip()
    first = field.lineno - 1
    while lines[first - 1].strip().startswith("#"):
        first -= 1
    return " ".join(line.strip().removeprefix("#").strip() for line in lines[first : field.lineno - 1])
