"""A verb as a function of a desk: its options are its parameters, and what it returns is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, get_type_hints

import typer

from app.commands.terminal import HomeOption, JsonOption, desk_for, show

Shown = tuple[Any, ...]
"""What a verb answers: a document for machines, then lines and tables for people."""


def verb(work: Callable[..., Shown | None]) -> Callable[..., None]:
    """Makes a command of a function that takes a desk, and returns what is to be shown, unless it has shown it.

    The desk is the one that --home or --server names. What follows it are the command's options and arguments; the
    fields of a dataclass are options, too. A verb that shows progress takes `is_json`.
    """
    hints = get_type_hints(work, localns={"Desk": object}, include_extras=True)
    taken = list(signature(work).parameters.values())[1:]
    records = {one.name: hints[one.name] for one in taken if is_dataclass(hints[one.name])}
    options = [_option("context", Parameter.empty, typer.Context)]
    for one in taken:
        options += (
            _fields(records[one.name])
            if one.name in records
            else [_option(one.name, one.default, hints[one.name])]
        )
    options.append(_option("home", None, HomeOption))
    takes_json = "is_json" in hints
    if not takes_json:
        options.append(_option("is_json", False, JsonOption))

    @wraps(work)
    def command(*, context: typer.Context, home: Path | None, is_json: bool, **given: Any) -> None:
        for name, record in records.items():
            given[name] = record(**{field.name: given.pop(field.name) for field in fields(record)})
        if takes_json:
            given["is_json"] = is_json
        with desk_for(context, home) as desk:
            shown = work(desk, **given)
        if shown is not None:
            show(is_json, *shown)

    command.__signature__ = Signature(options)  # type: ignore[attr-defined]
    command.__annotations__ = {one.name: one.annotation for one in options}
    return command


def _fields(record: Any) -> Iterator[Parameter]:
    hints = get_type_hints(record, include_extras=True)
    for field in fields(record):
        yield _option(
            field.name, Parameter.empty if field.default is MISSING else field.default, hints[field.name]
        )


def _option(name: str, default: Any, annotation: Any) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
