"""Which strategies there are: Perennial's own, and those that installed packages bring.

A package brings a strategy by an entry point of the group `perennial.strategies`, whose name is the strategy's::

    [project.entry-points."perennial.strategies"]
    l2-sp = "my_package.l2_sp:L2Sp"

A strategy is imported when somebody asks for it. Packages are looked at when somebody asks for all strategies, or for
one that is not Perennial's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from itertools import chain
from typing import TYPE_CHECKING

from model_updates.errors import StrategyRefused

if TYPE_CHECKING:
    from model_updates.strategy import Strategy

GROUP = "perennial.strategies"
NAME = re.compile(r"[a-z0-9]+([-+][a-z0-9]+)*")


class Registry(Mapping[str, "type[Strategy]"]):
    """Strategies by name: Perennial's `own` in their order (``module:Class``), then those of other packages by name."""

    def __init__(self, own: Mapping[str, str]) -> None:
        self._own = {name: EntryPoint(name, place, GROUP) for name, place in own.items()}
        self._loaded: dict[str, type[Strategy]] = {}

    def own(self) -> dict[str, type[Strategy]]:
        """Returns Perennial's own strategies."""
        return {name: self[name] for name in self._own}

    def brought(self) -> dict[str, type[Strategy]]:
        """Returns those of other packages; nothing is loaded where there are none."""
        return {name: self[name] for name in self._brought}

    def __getitem__(self, name: str) -> type[Strategy]:
        if name not in self._loaded:
            found = self._own.get(name) or self._brought[name]
            self._loaded[name] = _loaded(found)
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._brought

    def __iter__(self) -> Iterator[str]:
        return chain(self._own, self._brought)

    def __len__(self) -> int:
        return len(self._own) + len(self._brought)

    @cached_property
    def _brought(self) -> dict[str, EntryPoint]:
        """What installed packages bring, by name.

        Raises:
            StrategyRefused: a name is not one, or is taken.
        """
        found: dict[str, EntryPoint] = {}
        for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
            if not NAME.fullmatch(entry.name):
                raise StrategyRefused(
                    f"{_origin(entry)} brings a strategy named {entry.name!r}, and a name is made of small letters and "
                    f"digits with single hyphens between them, such as 'l2-sp'. Rename its entry point in the group "
                    f"{GROUP}, or uninstall the package"
                )
            taken = self._own.get(entry.name) or found.get(entry.name)
            if taken is not None:
                raise StrategyRefused(
                    f"two strategies are named {entry.name!r}: that of {_origin(taken)} and that of {_origin(entry)}. "
                    "Rename one of the entry points, or uninstall its package"
                )
            found[entry.name] = entry
        return found


def _loaded(entry: EntryPoint) -> type[Strategy]:
    """Imports a strategy.

    Raises:
        StrategyRefused: it cannot be imported, is no strategy, or calls itself otherwise.
    """
    from model_updates.strategy import Strategy  # and with it torch

    what = f"the strategy {entry.name!r} of {_origin(entry)}"
    try:
        kind = entry.load()
    except (ImportError, AttributeError) as error:
        raise StrategyRefused(f"{what} cannot be imported: {error}. Mend or uninstall the package") from error
    if not (isinstance(kind, type) and issubclass(kind, Strategy)):
        raise StrategyRefused(
            f"{what} is {kind!r}, and a strategy is a class that inherits from model_updates.strategy.Strategy. "
            "Mend its entry point, or uninstall the package"
        )
    if getattr(kind, "name", None) != entry.name:
        raise StrategyRefused(
            f"{what} calls itself {getattr(kind, 'name', None)!r}. Give its entry point and its attribute `name` the "
            "same name, or uninstall the package"
        )
    return kind


def _origin(entry: EntryPoint) -> str:
    """Returns who brings an entry point, and from where."""
    package = "Perennial" if entry.dist is None else f"the package {entry.dist.name} {entry.dist.version}"
    return f"{package} ({entry.value})"
