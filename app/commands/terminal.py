"""What all verbs share: the options that each has, the settings behind them, and how an answer is shown."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.home.settings import Settings
    from app.home.workspace import Workspace

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="The folder that holds everything.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def settings_for(home: Path | None, **flags: Any) -> Settings:
    """Reads the settings and sends the log to the home, if it exists.

    Args:
        home: As given on the command line, if it was.
        **flags: Other settings given there; None means not given.
    """
    from app.home import cores, logs
    from app.home.settings import load_settings

    settings = load_settings(home=home, **flags)
    logs.configure(settings.log_level, home=settings.home)
    cores.settle(settings.threads)  # before any verb loads torch
    return settings


@contextmanager
def workspace_for(home: Path | None) -> Iterator[Workspace]:
    """Opens the home's workspace for a verb that needs encoders."""
    settings = settings_for(home)
    from app.home.folder import Home

    Home.open(settings.home)  # refuses at once, before the heavy imports
    from app.home.workspace import Workspace

    with Workspace.open(settings) as workspace:
        yield workspace


def show(is_json: bool, document: object, *parts: Any) -> None:
    """Shows an answer on standard output.

    Args:
        is_json: Print the document and nothing else.
        document: For machines.
        *parts: For people: lines, tables.
    """
    from app.words import messages

    if is_json:
        typer.echo(messages.as_json(document))
        return
    out = messages.console()
    for part in parts:
        out.print(part)


def require_place(file: Path, option: str) -> None:
    """Refuses a file that could not be written, before anything is done.

    Raises:
        UsageProblem: it is a folder, or its folder is not there.
    """
    if file.is_dir() or not file.absolute().parent.is_dir():
        raise UsageProblem(f"{option} {file}: name a file in a folder that exists. Nothing was done.")


def pairs_of(given: list[str] | None, option: str, example: str) -> dict[str, str]:
    """Reads a repeatable `name=value` option.

    Raises:
        UsageProblem: One has no name or no equals sign.
    """
    found = {}
    for text in given or []:
        name, sign, value = text.partition("=")
        if not (name.strip() and sign):
            raise UsageProblem(f"{option} takes name=value, such as {option} {example}; found {text!r}.")
        found[name.strip()] = value.strip()
    return found


def who() -> str:
    """The person at the keyboard, for the history."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user database
        return "unknown"
