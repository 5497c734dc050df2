"""The verb that says where one machine ends: what an index of so many pictures takes, engine by engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.terminal import JsonOption, show
from app.words.messages import size, table

if TYPE_CHECKING:
    from index.capacity import Engine

_DISK = 2e12
_HEADER = ("engine", "finds", "memory", "disk", "a query", "building", "price", "machines")
_ESTIMATE = (
    "Each engine was measured, or published, at one size (docs/results/scale.md); for this one its figures follow from "
    "how it works, and are estimates. While an index is built anew, two lie beside one another."
)


def capacity(
    pictures: Annotated[float, typer.Option(min=1, max=1e15, help="How many; 1e9 is a billion.")] = 1e6,
    dim: Annotated[
        int, typer.Option(min=1, max=10**6, help="Numbers of a vector: `perennial models` says them.")
    ] = 512,
    qps: Annotated[float, typer.Option(min=0, max=1e9, help="Queries a second.")] = 10.0,
    cores: Annotated[int, typer.Option(min=1, max=10**6, help="Of a machine.")] = 16,
    memory: Annotated[float, typer.Option(min=1, max=1e9, help="Of a machine, in GB.")] = 64.0,
    embedding: Annotated[
        float, typer.Option(min=0, max=1e9, help="Milliseconds of a core for a picture.")
    ] = 65.0,
    price: Annotated[float, typer.Option(min=0, max=1e9, help="What a core costs for an hour.")] = 0.05,
    is_json: JsonOption = False,
) -> None:
    """Say what an index of so many pictures takes.

    Memory, disk, time and machines, for each engine that may hold it.
    """
    from index.capacity import Machine, engines

    each = Machine(cores, memory * 1e9, _DISK)
    listed, documents = [], []
    for engine in engines():
        need = engine.need(pictures, dim)
        machines = engine.machines(need, qps, each)
        said = {"engine": engine.name, "is_offered": engine.is_offered, "finds": engine.finds}
        documents.append(said | need._asdict() | {"machines": machines, "source": engine.source})
        listed.append(
            (
                _name(engine),
                f"{engine.finds:.1%}",
                size(need.memory),
                size(need.disk),
                f"{need.query_ms:,.1f} ms",
                _hours(need.build_hours),
                f"{need.build_hours * price:,.2f}",
                "too large for one" if machines is None else f"{machines:,}",
            )
        )
    hours = pictures * embedding / 3.6e6
    asked = f"{pictures:,.0f} pictures of {dim} numbers, {qps:g} queries a second"
    show(
        is_json,
        {"engines": documents, "embedding_hours": hours, "embedding_price": hours * price},
        f"{asked}; machines of {cores} cores, {size(memory * 1e9)} of memory and {size(_DISK)} of disk.",
        table(_HEADER, listed),
        f"Embedding every picture once takes a core {_hours(hours)} and costs {hours * price:,.2f}.",
        _ESTIMATE,
    )


def _name(engine: Engine) -> str:
    return engine.name if engine.is_offered else f"{engine.name} (not yet)"


def _hours(value: float) -> str:
    return (
        f"{value * 3600:.0f} s"
        if value < 1 / 60
        else f"{value * 60:.0f} min"
        if value < 1
        else f"{value:,.0f} h"
    )
