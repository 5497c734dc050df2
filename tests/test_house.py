"""The house of `app/`: its rooms, floors and arrows are counted from the imports, and stay as few as they are.

A room is a package or a loose module right under `app/`; an arrow is that one imports another; a floor is how far a
room stands above the lowest. The limits are in pyproject.toml, and only a commit that says why may raise one.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
Arrows = dict[str, set[str]]


def _limits() -> dict[str, int]:
    document = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    limits: dict[str, int] = document["tool"]["perennial"]["house"]
    return limits


@cache
def _modules() -> dict[str, frozenset[str]]:
    graph = grimp.build_graph("app", cache_dir=None)
    return {name: frozenset(graph.find_modules_directly_imported_by(name)) for name in graph.modules}


def arrows_of(modules: dict[str, frozenset[str]]) -> Arrows:
    """Returns the rooms that each room imports."""
    rooms: Arrows = {}
    for name, imported in modules.items():
        if name.count(".") == 0:
            continue
        here = name.split(".")[1]
        there = {one.split(".")[1] for one in imported if one.startswith("app.")}
        rooms.setdefault(here, set()).update(there - {here})
    return rooms


def circles_of(arrows: Arrows) -> list[set[str]]:
    """Returns the sets of nodes that reach one another."""
    reached = {name: _reach(arrows, name) for name in arrows}
    circles = {frozenset(one for one in reached[name] if name in reached[one]) for name in arrows}
    return sorted((set(one) for one in circles if one), key=sorted)


def floors_of(arrows: Arrows) -> dict[str, int]:
    """Returns on which floor each room of a house without circles stands, from 1."""
    floors: dict[str, int] = {}

    def floor(name: str) -> int:
        if name not in floors:
            floors[name] = 1 + max(map(floor, arrows[name]), default=0)
        return floors[name]

    for name in arrows:
        floor(name)
    return floors


def _reach(arrows: Arrows, start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(arrows[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += arrows.get(name, ())
    return found


def test_the_house_stays_small() -> None:
    arrows, limits = arrows_of(_modules()), _limits()
    circles = circles_of(arrows)
    assert circles == [], f"rooms that import one another: {circles}"
    loose = [path.name for path in (ROOT / "app").glob("*.py") if path.name != "__init__.py"]
    counted = {
        "rooms": len(arrows),
        "floors": max(floors_of(arrows).values()),
        "arrows": sum(map(len, arrows.values())),
        "loose_files": len(loose),
    }
    over = {name: count for name, count in counted.items() if count > limits[name]}
    assert not over, f"{over} over the limits of pyproject.toml; the house has {counted}"


def test_no_module_of_app_is_in_a_circle() -> None:
    modules: Arrows = defaultdict(set)
    for name, imported in _modules().items():
        # A package's own file imports what it hands on.
        modules[name] |= {one for one in imported if one in _modules() and not name.startswith(f"{one}.")}
    assert circles_of(dict(modules)) == []


def lines_of(package: str) -> int:
    """Returns the lines of a package's Python files."""
    files = (ROOT / package).rglob("*.py")
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


@pytest.mark.parametrize("package", ["app", "model_updates", "ingest", "index"])
def test_a_package_does_not_grow_unnoticed(package: str) -> None:
    lines, limit = lines_of(package), _limits()[f"lines_{package}"]
    assert lines <= limit, f"{package} has {lines} lines, over the limit of {limit} in pyproject.toml"


def test_a_circle_and_a_floor_are_found() -> None:
    assert circles_of({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert floors_of({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": 3, "b": 2, "c": 1}
