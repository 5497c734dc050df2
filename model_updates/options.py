"""Options of strategies from plain values: what a person typed or a request said, checked and converted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from model_updates.errors import BadStrategyOption

if TYPE_CHECKING:
    from model_updates.strategy import Strategy


def options_of(strategy: type[Strategy], given: Mapping[str, Any]) -> Any:
    """Builds a strategy's options from plain values, converting text to the option's type.

    Raises:
        BadStrategyOption: an unknown option (the text lists the known ones) or an unusable value.
    """
    known = {f.name: f for f in dataclasses.fields(strategy.Options)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise BadStrategyOption(
            f"strategy {strategy.name!r} has no option {', '.join(map(repr, unknown))}; "
            f"it has: {', '.join(known)}"
        )
    defaults = strategy.Options()
    values = {name: _convert(name, value, getattr(defaults, name)) for name, value in given.items()}
    return strategy.Options(**values)


YES, NO = frozenset({"true", "yes", "on", "1"}), frozenset({"false", "no", "off", "0"})


def _convert(name: str, value: Any, default: Any) -> Any:
    if isinstance(default, str):
        if isinstance(value, str):
            return value.strip()
        raise BadStrategyOption(f"option {name} is a word such as {default!r}, got {value!r}")
    said = str(value).strip().lower()
    if isinstance(default, bool):
        if said in YES | NO:
            return said in YES
        raise BadStrategyOption(f"option {name} is yes or no, got {value!r}")
    try:
        number = float(said)
    except ValueError as error:
        raise BadStrategyOption(f"option {name} must be a number, got {value!r}") from error
    if not math.isfinite(number):
        raise BadStrategyOption(f"option {name} must be a finite number, got {value!r}")
    if isinstance(default, int):
        if not number.is_integer():
            raise BadStrategyOption(f"option {name} must be a whole number, got {value!r}")
        return int(number)
    return number
