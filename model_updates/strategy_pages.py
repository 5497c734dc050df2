"""`docs/strategies.md`, written from the strategies themselves: what each does, keeps and costs, and its options."""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Mapping
from typing import Any

from model_updates.strategy import Replay, Strategy

HEAD = """# Strategies

Written by `python -m app methods --markdown` from the modules in `model_updates/strategies/`; a test holds it to them.
Measured on real input: [emoji](results/real-input.md), [photographs](results/photographs.md).

| strategy | what it does | moves pictures | replays pairs | also asks for |
|---|---|---|---|---|
"""
REPLAYS = {
    Replay.NONE: "no",
    Replay.BESIDE: "beside every batch",
    Replay.JOINED: "as part of the epoch",
}


def facts(kind: type[Strategy]) -> dict[str, Any]:
    """Returns what a strategy says of itself with its default options, as plain values."""
    made = kind()
    return {
        "name": kind.name,
        "summary": kind.summary,
        "paper": kind.paper,
        "moves_pictures": made.touches_image,
        "reads_pictures": made.reads_pictures,
        "replay": REPLAYS[kind.replay],
        "needs": sorted(kind.needs),
        "options": {
            field.name: getattr(made.options, field.name) for field in dataclasses.fields(kind.Options)
        },
    }


def strategies_page(strategies: Mapping[str, type[Strategy]]) -> str:
    """Returns the whole page as Markdown."""
    rows = [_row(facts(kind)) for kind in strategies.values()]
    sections = [_section(kind) for kind in strategies.values()]
    return HEAD + "\n".join(rows) + "\n\n" + "\n\n".join(sections) + "\n"


def _row(said: Mapping[str, Any]) -> str:
    moves = "yes" if said["moves_pictures"] else "no"
    return (
        f"| `{said['name']}` | {said['summary']} | {moves} | {said['replay']} | "
        f"{', '.join(said['needs']).replace('_', ' ') or '–'} |"
    )


def _section(kind: type[Strategy]) -> str:
    text = inspect.cleandoc(sys.modules[kind.__module__].__doc__ or "")
    title, _, rest = text.partition("\n\n")
    return "\n\n".join([f"## {kind.name}", title, rest.replace("``", "`"), _options(kind)])


def _options(kind: type[Strategy]) -> str:
    explained = _explained(kind.Options)
    lines = ["| option | default | meaning |", "|---|---|---|"]
    for name, value in facts(kind)["options"].items():
        lines.append(f"| `{name}` | `{value}` | {explained.get(name, '')} |")
    return "\n".join(lines)


def _explained(options: type[Any]) -> dict[str, str]:
    """The lines of the options' docstrings, those of their bases included: ``name: meaning``."""
    found: dict[str, str] = {}
    for part in reversed(options.__mro__):
        last = ""
        for line in inspect.cleandoc(part.__doc__ or "").partition("Attributes:")[2].splitlines():
            name, colon, meaning = line.strip().partition(": ")
            if colon and name.isidentifier():
                found[name], last = meaning, name
            elif last and line.strip():
                found[last] += " " + line.strip()
    return found
