"""The house of `app/`: its rooms, floors and arrows are counted from the imports, and stay as few as they are.

A room is a package or a loose module right under `app/`; an arrow is that one imports another; a floor is how far a
room stands above the lowest. The limits are in pyproject.toml, and only a commit that says why may raise one.
`python -m tests.test_house` prints what is counted (`docs/results/house.md`).
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("app", "model_updates", "ingest", "index")
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


def house() -> dict[str, int]:
    """Returns what there is of everything that has a limit."""
    arrows = arrows_of(_modules())
    loose = [path.name for path in (ROOT / "app").glob("*.py") if path.name != "__init__.py"]
    return {
        "rooms": len(arrows),
        "floors": max(floors_of(arrows).values()),
        "arrows": sum(map(len, arrows.values())),
        "loose_files": len(loose),
    } | {f"lines_{package}": lines_of(package) for package in PACKAGES}


def lines_of(package: str) -> int:
    """Returns the lines of a package's Python files."""
    files = (ROOT / package).rglob("*.py")
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files)


def doubled_names() -> dict[str, int]:
    """Returns the names that several public classes have, each with how many."""
    trees = [
        ast.parse(path.read_text(encoding="utf-8")) for one in PACKAGES for path in (ROOT / one).rglob("*.py")
    ]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    return {name: count for name, count in sorted(names.items()) if count > 1 and not name.startswith("_")}


def test_no_room_imports_one_that_imports_it() -> None:
    assert circles_of(arrows_of(_modules())) == []


@pytest.mark.parametrize("counted", sorted(_limits()))
def test_the_house_stays_small(counted: str) -> None:
    count, limit = house()[counted], _limits()[counted]
    assert count <= limit, f"{counted}: {count}, over the limit of {limit} in pyproject.toml"


def test_no_module_of_app_is_in_a_circle() -> None:
    modules: Arrows = defaultdict(set)
    for name, imported in _modules().items():
        # A package's own file imports what it hands on.
        modules[name] |= {one for one in imported if one in _modules() and not name.startswith(f"{one}.")}
    assert circles_of(dict(modules)) == []


def test_one_name_means_one_class() -> None:
    assert doubled_names() == {}


def test_a_circle_and_a_floor_are_found() -> None:
    assert circles_of({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [{"a", "b", "c"}]
    assert floors_of({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == {"a": 3, "b": 2, "c": 1}


if __name__ == "__main__":
    for name, count in house().items():
        sys.stdout.write(f"{name:20} {count:6}\n")
    sys.stdout.write(f"lines of all         {sum(map(lines_of, PACKAGES)):6}\n")
    sys.stdout.write(f"names of several classes: {doubled_names()}\n")
