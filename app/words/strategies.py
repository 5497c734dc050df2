"""Strategies in words, the same for terminal and page: what each trains and keeps, and what it asks of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from app.words.messages import grid, plain, table
from ingest.sentence import joined, phrase
from model_updates.checked import explained
from model_updates.references import ReferenceLine
from model_updates.strategy import Family, Strategy
from model_updates.strategy_pages import by_family, facts, query_needs


def said(kind: type[Strategy]) -> list[tuple[str, str]]:
    """Returns what a strategy trains, keeps and asks for, as (what, which) in the order of reading."""
    about = facts(kind)
    return [
        ("Trains", about["trains"]),
        ("Keeps", about["keeps"]),
        ("Embeds again", about["embeds_again"]),
        ("Query", _query(query_needs(about))),
        ("Overhead", about["overhead"]),
    ]


def everything(
    strategies: Mapping[str, type[Strategy]], references: Mapping[str, ReferenceLine]
) -> list[Any]:
    """Returns what a terminal shows of all strategies: two lines each, family by family."""
    shown: list[Any] = []
    for family, kinds in by_family(strategies):
        rows = [(kind.name, _lines(kind.summary, said(kind))) for kind in kinds]
        if family is Family.BOUNDS:
            rows += [(reference.name, _lines(reference.summary, ())) for reference in references.values()]
        shown += [Text(f"{family.title}. {family.common}", style="bold"), grid(rows), ""]
    return [*shown, "`perennial methods NAME` shows one with its options."]


def one(kind: type[Strategy]) -> list[Any]:
    """Returns what a terminal shows of one strategy: its facts, its source and its options."""
    meanings = explained(kind.Options)
    options = [(name, str(value), meanings.get(name, "")) for name, value in facts(kind)["options"].items()]
    about = [*said(kind), *([("Source", kind.paper)] if kind.paper else [])]
    return [
        Text(kind.name, style="bold"),
        plain(kind.summary),
        grid(about),
        table(("option", "default", "meaning"), options),
    ]


def menu(strategies: Mapping[str, type[Strategy]], recommended: str = "") -> list[tuple[str, str]]:
    """Returns (label, name) of every strategy, the recommended one first, each with its family."""
    named: list[tuple[str, str]] = [
        (joined((kind.name, phrase(family.title.lower())), " · "), kind.name)
        for family, kinds in by_family(strategies)
        for kind in kinds
    ]
    first: list[tuple[str, str]] = [
        (phrase("{name} (recommended)", name=name), name) for _, name in named if name == recommended
    ]
    return first + [choice for choice in named if choice[1] != recommended]


def _lines(summary: str, about: Iterable[tuple[str, str]]) -> str:
    facts_line = " · ".join(f"{what.lower()}: {which}" for what, which in about)
    return "\n".join(filter(None, [summary, facts_line]))


def _query(needs: str) -> str:
    return "text alone" if needs == "nothing" else f"text and {needs}, chosen or detected"
