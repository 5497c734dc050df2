"""Strategies in words, the same for terminal and page: what each trains and keeps, and what it asks of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rich.text import Text

from app.words.messages import grid, plain, table
from ingest.sentence import joined, phrase
from model_updates.references import ReferenceLine
from model_updates.strategy_facts import Family, StrategyFacts, by_family


def said(strategy: StrategyFacts) -> list[tuple[str, str]]:
    """Returns what a strategy trains, keeps and asks for, as (what, which) in the order of reading."""
    return [
        ("Trains", strategy.trains),
        ("Keeps", strategy.keeps),
        ("Embeds again", strategy.embeds_again),
        ("Query", _query(strategy.query_needs)),
        ("Overhead", strategy.overhead),
    ]


def everything(strategies: Mapping[str, StrategyFacts], references: Mapping[str, ReferenceLine]) -> list[Any]:
    """Returns what a terminal shows of all strategies: two lines each, family by family."""
    shown: list[Any] = []
    for family, ones in by_family(strategies.values()):
        rows = [(one.name, _lines(one.summary, said(one))) for one in ones]
        if family is Family.BOUNDS:
            rows += [(reference.name, _lines(reference.summary, ())) for reference in references.values()]
        shown += [Text(f"{family.title}. {family.common}", style="bold"), grid(rows), ""]
    return [*shown, "`perennial methods NAME` shows one with its options."]


def one(strategy: StrategyFacts) -> list[Any]:
    """Returns what a terminal shows of one strategy: its facts, its source and its options."""
    options = [(name, str(value), strategy.meanings[name]) for name, value in strategy.options.items()]
    about = [*said(strategy), *([("Source", strategy.paper)] if strategy.paper else [])]
    return [
        Text(strategy.name, style="bold"),
        plain(strategy.summary),
        grid(about),
        table(("option", "default", "meaning"), options),
    ]


def menu(strategies: Mapping[str, StrategyFacts], recommended: str = "") -> list[tuple[str, str]]:
    """Returns (label, name) of every strategy, the recommended one first, each with its family."""
    named: list[tuple[str, str]] = [
        (joined((one.name, phrase(family.title.lower())), " · "), one.name)
        for family, ones in by_family(strategies.values())
        for one in ones
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
