"""What strategies say of themselves: as plain values, and as `docs/strategies.md`, both from the code alone."""

import dataclasses
import inspect
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from model_updates.checked import explained
from model_updates.references import ReferenceLine
from model_updates.strategy import Family, Replay, Strategy

HEAD = """# Strategies

Written by `make docs` from the modules in `model_updates/strategies/`.
Measured on real input: [emoji](results/real-input.md), [photographs](results/photographs.md).

*Keeps* is what is carried from update to update beside the encoder. *Embeds again* says which pictures need new vectors
after an update. *Query* says what a query must bring beside its text; a language is chosen, or detected. *Overhead* is
beside plain training of the same parameters.
"""
COLUMNS = ("strategy", "what it does", "trains", "keeps", "embeds again", "query", "overhead")
REPLAYS = {Replay.NONE: "no", Replay.BESIDE: "beside every batch", Replay.JOINED: "as part of the epoch"}


def facts(kind: type[Strategy]) -> dict[str, Any]:
    """Returns what a strategy says of itself with its default options, as plain values."""
    made = kind()
    return {
        "name": kind.name,
        "family": kind.family.title,
        "summary": kind.summary,
        "paper": kind.paper,
        "trains": kind.trains,
        "keeps": kind.keeps,
        "embeds_again": kind.embeds_again or ("all pictures" if "image" in made.touches else "no picture"),
        "language_at_query": kind.language_at_query,
        "overhead": kind.overhead,
        "moves_pictures": "image" in made.touches,
        "reads_pictures": made.reads_pictures,
        "replay": REPLAYS[made.replay],
        "needs": sorted(kind.needs),
        "options": {
            field.name: getattr(made.options, field.name) for field in dataclasses.fields(kind.Options)
        },
    }


def by_family(strategies: Mapping[str, type[Strategy]]) -> list[tuple[Family, list[type[Strategy]]]]:
    """Returns the strategies of each family that has some, in the order in which people read them."""
    grouped = [(family, [kind for kind in strategies.values() if kind.family is family]) for family in Family]
    return [(family, kinds) for family, kinds in grouped if kinds]


def document(
    strategies: Mapping[str, type[Strategy]], references: Mapping[str, ReferenceLine]
) -> dict[str, list[dict[str, Any]]]:
    """Returns all there is to choose from, and what it is measured against, for programs."""
    return {
        "strategies": [facts(kind) for _, kinds in by_family(strategies) for kind in kinds],
        "references": [dataclasses.asdict(reference) for reference in references.values()],
    }


def strategies_page(strategies: Mapping[str, type[Strategy]], references: Mapping[str, ReferenceLine]) -> str:
    """Returns the whole page as Markdown: a table for each family, then a section for each strategy."""
    parts = [HEAD.rstrip()]
    for family, kinds in by_family(strategies):
        rows = [_row(facts(kind)) for kind in kinds]
        if family is Family.BOUNDS:
            rows += [_reference_row(reference) for reference in references.values()]
        parts += [f"## {family.title}", family.common, table(COLUMNS, rows)]
    parts += ["## Each of them"]
    parts += [_section(kind) for _, kinds in by_family(strategies) for kind in kinds]
    return "\n\n".join(parts) + "\n"


def table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns a Markdown table."""
    head, *body = [f"| {' | '.join(cells)} |" for cells in (columns, *rows)]
    return "\n".join([head, "|" + "---|" * len(columns), *body])


def query_needs(said: Mapping[str, Any]) -> str:
    """Returns what a query must bring beside its text."""
    return "its language" if said["language_at_query"] else "nothing"


def _row(said: Mapping[str, Any]) -> list[str]:
    name = said["name"]
    linked = f"[`{name}`](#{_anchor(name)})"
    return [
        linked,
        *(str(said[key]) for key in ("summary", "trains", "keeps", "embeds_again")),
        query_needs(said),
        said["overhead"],
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


def _section(kind: type[Strategy]) -> str:
    title, _, rest = _description(kind).partition("\n\n")
    return "\n\n".join(
        [f"### {kind.name}", title, rest.replace("``", "`"), *_asks(kind), options_table(kind)]
    )


def _description(kind: type[Strategy]) -> str:
    """What a strategy's module says of it; of one that a part made of another, what the part says."""
    composed = kind.__module__.startswith("model_updates.parts.")
    return inspect.cleandoc((kind if composed else sys.modules[kind.__module__]).__doc__ or "")


def _asks(kind: type[Strategy]) -> list[str]:
    said = facts(kind)
    asks = []
    if kind.replay is not Replay.NONE:
        asks.append(f"It replays pairs {said['replay']}.")
    if said["needs"]:
        asks.append(f"Its batches also hold {', '.join(said['needs']).replace('_', ' ')}.")
    return [" ".join(asks)] if asks else []


def options_table(kind: type[Strategy]) -> str:
    """Returns a strategy's options with their defaults and meanings, as a Markdown table."""
    meanings = explained(kind.Options)
    rows = [
        [f"`{name}`", f"`{value}`", meanings.get(name, "")] for name, value in facts(kind)["options"].items()
    ]
    return table(("option", "default", "meaning"), rows)
