"""What strategies say of themselves, for programs and as `docs/strategies.md`, from the code alone.

`python -m model_updates.strategy_pages`, which `make docs` runs, writes the page and what is read without the classes.
"""

from __future__ import annotations

import dataclasses
import inspect
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from model_updates.checked import explained
from model_updates.references import REFERENCES, ReferenceLine
from model_updates.strategies import STRATEGIES, strategy_named
from model_updates.strategy_facts import WRITTEN, Family, Replay, StrategyFacts, by_family, written_facts

if TYPE_CHECKING:
    from model_updates.strategy import Strategy

HEAD = """# Strategies

Written by `make docs` from the modules in `model_updates/strategies/`.
Measured on real input: [emoji](results/real-input.md), [photographs](results/photographs.md).

*Keeps* is what is carried from update to update beside the encoder. *Embeds again* says which pictures need new vectors
after an update. *Query* says what a query must bring beside its text; a language is chosen, or detected. *Overhead* is
beside plain training of the same parameters.
"""
COLUMNS = ("strategy", "what it does", "trains", "keeps", "embeds again", "query", "overhead")
REPLAYS = {Replay.NONE: "no", Replay.BESIDE: "beside every batch", Replay.JOINED: "as part of the epoch"}


def facts_of(kind: type[Strategy]) -> StrategyFacts:
    """Returns what a strategy says of itself with its default options."""
    made = kind()
    meanings = explained(kind.Options)
    options = {field.name: getattr(made.options, field.name) for field in dataclasses.fields(kind.Options)}
    return StrategyFacts(
        name=kind.name,
        family=kind.family.title,
        summary=kind.summary,
        paper=kind.paper,
        trains=kind.trains,
        keeps=kind.keeps,
        embeds_again=kind.embeds_again or ("all pictures" if "image" in made.touches else "no picture"),
        language_at_query=kind.language_at_query,
        overhead=kind.overhead,
        moves_pictures="image" in made.touches,
        reads_pictures=made.reads_pictures,
        replay=REPLAYS[made.replay],
        needs=sorted(kind.needs),
        options=options,
        meanings={name: meanings.get(name, "") for name in options},
    )


def every_strategy() -> dict[str, StrategyFacts]:
    """Returns what all strategies say; those of other packages are loaded for it, Perennial's own are not.

    Raises:
        StrategyRefused: an installed package brings one that cannot be used.
    """
    return {**written_facts(), **{name: facts_of(kind) for name, kind in STRATEGIES.brought().items()}}


def facts_named(name: str) -> StrategyFacts:
    """Returns what one strategy says; errors as `strategy_named`."""
    return written_facts().get(name) or facts_of(strategy_named(name))


def document(
    strategies: Mapping[str, StrategyFacts], references: Mapping[str, ReferenceLine]
) -> dict[str, list[dict[str, Any]]]:
    """Returns all there is to choose from, and what it is measured against, for programs."""
    return {
        "strategies": [dataclasses.asdict(one) for _, ones in by_family(strategies.values()) for one in ones],
        "references": [dataclasses.asdict(reference) for reference in references.values()],
    }


def strategies_page(strategies: Mapping[str, type[Strategy]], references: Mapping[str, ReferenceLine]) -> str:
    """Returns the whole page as Markdown: a table for each family, then a section for each strategy."""
    said = {name: facts_of(kind) for name, kind in strategies.items()}
    parts = [HEAD.rstrip()]
    for family, ones in by_family(said.values()):
        rows = [_row(one) for one in ones]
        if family is Family.BOUNDS:
            rows += [_reference_row(reference) for reference in references.values()]
        parts += [f"## {family.title}", family.common, table(COLUMNS, rows)]
    parts += ["## Each of them"]
    parts += [_section(strategies[one.name], one) for _, ones in by_family(said.values()) for one in ones]
    return "\n\n".join(parts) + "\n"


def table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns a Markdown table."""
    head, *body = [f"| {' | '.join(cells)} |" for cells in (columns, *rows)]
    return "\n".join([head, "|" + "---|" * len(columns), *body])


def _row(said: StrategyFacts) -> list[str]:
    linked = f"[`{said.name}`](#{_anchor(said.name)})"
    return [
        linked,
        *(said.summary, said.trains, said.keeps, said.embeds_again),
        *(said.query_needs, said.overhead),
    ]


def _reference_row(reference: ReferenceLine) -> list[str]:
    return [
        f"`{reference.name}` (a reference)",
        reference.summary,
        "nothing",
        "nothing",
        "no picture",
        reference.query_needs,
        "none",
    ]


def _anchor(name: str) -> str:
    """The address of a heading on its page, as GitHub makes it."""
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter in "-_")


def _section(kind: type[Strategy], said: StrategyFacts) -> str:
    title, _, rest = _description(kind).partition("\n\n")
    return "\n\n".join(
        [f"### {said.name}", title, rest.replace("``", "`"), *_asks(said), _options_table(said)]
    )


def _description(kind: type[Strategy]) -> str:
    """What a strategy's module says of it; of one that a part made of another, what the part says."""
    composed = kind.__module__.startswith("model_updates.parts.")
    return inspect.cleandoc((kind if composed else sys.modules[kind.__module__]).__doc__ or "")


def _asks(said: StrategyFacts) -> list[str]:
    asks = []
    if said.replay != REPLAYS[Replay.NONE]:
        asks.append(f"It replays pairs {said.replay}.")
    if said.needs:
        asks.append(f"Its batches also hold {', '.join(said.needs).replace('_', ' ')}.")
    return [" ".join(asks)] if asks else []


def _options_table(said: StrategyFacts) -> str:
    """Returns a strategy's options with their defaults and meanings, as a Markdown table."""
    rows = [[f"`{name}`", f"`{value}`", said.meanings[name]] for name, value in said.options.items()]
    return table(("option", "default", "meaning"), rows)


def written() -> str:
    """Returns what `written_facts` reads, as the classes say it now."""
    said = [dataclasses.asdict(facts_of(kind)) for kind in STRATEGIES.own().values()]
    return json.dumps(said, ensure_ascii=False, indent=1) + "\n"


if __name__ == "__main__":
    package = Path(__file__).parent
    package.joinpath(WRITTEN).write_text(written(), encoding="utf-8")
    page = strategies_page(STRATEGIES.own(), REFERENCES)
    (package.parent / "docs" / "strategies.md").write_text(page, encoding="utf-8")
