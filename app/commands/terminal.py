"""What all verbs share: the options that each has, the desk behind them, and how an answer is shown."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from app.desk.errors import AppError, UsageProblem
from app.words import messages

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.desk.jobs import Stage
    from app.home.settings import Settings
    from ingest.records import JobRecord

HomeOption = Annotated[
    Path | None, typer.Option("--home", help="The folder that holds everything.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
PASSWORD = "PERENNIAL_SERVER_PASSWORD"


def settings_for(home: Path | None, **flags: Any) -> Settings:
    """Reads the settings and sends the log to the home, if it is one; in another folder nothing is left.

    Flags that are None were not given.
    """
    from app.home import cores, logs
    from app.home.folder import Home
    from app.home.settings import load_settings

    settings = load_settings(home=home, **flags)
    is_home = Home(settings.home).format_file.is_file()
    logs.configure(settings.log_level, home=settings.home if is_home else None)
    cores.settle(settings.threads)  # before any verb loads torch
    return settings


def server_of(context: typer.Context) -> str | None:
    """Returns the address that --server names, if it does."""
    found = context.find_root().params.get("server")
    return None if found is None else str(found)


@contextmanager
def desk_for(context: typer.Context, home: Path | None) -> Iterator[Desk]:
    """Opens the desk that a verb works on: that of the home, or with --server that of a server.

    Raises:
        UsageProblem: both are named.
    """
    url = server_of(context)
    if url is None:
        from app.commands.beside import Beside

        with Beside(settings_for(home), by=who()) as desk:  # refuses at once, before the heavy imports
            yield cast("Desk", desk)
        return
    if home is not None:
        raise UsageProblem("--server works on a server and --home on a folder of this machine; name one.")
    with connected(url) as remote:
        yield remote


@contextmanager
def connected(url: str) -> Iterator[Desk]:
    """Connects to a server, as the account in its address or the environment."""
    from urllib.parse import unquote, urlsplit

    from app.client import connect

    parts = urlsplit(url)
    name = unquote(parts.username or "")
    password = unquote(parts.password or "") or os.environ.get(PASSWORD, "")
    if name and not password:
        raise UsageProblem(f"Put the password of {name} into {PASSWORD}.")
    with connect(url, auth=(name, password) if name else None) as desk:
        yield desk


def watched(desk: Desk, job: JobRecord, *, is_json: bool) -> JobRecord:
    """Follows a job to its end under a progress bar; whoever presses Ctrl-C leaves it."""
    from ingest.records import FINAL_STATES

    try:
        with messages.progress_bar(is_quiet=is_json) as move:

            def tell(row: JobRecord) -> None:
                said = row.progress
                waits = row.error or row.state if row.state in FINAL_STATES else "waiting for its process"
                name, message = said.get("name", row.state), said.get("message", waits)
                move(str(name), messages.paced(str(message), said.get("details")), said.get("fraction"))

            return desk.follow(job.id, tell)
    except KeyboardInterrupt:
        raise AppError(desk.leave(job.id), exit_code=130) from None


@contextmanager
def staged(*, is_json: bool) -> Iterator[Callable[[Stage], None]]:
    """Shows the stages of work that is done while a verb waits."""
    from app.desk.jobs import StagePace

    pace = StagePace()

    with messages.progress_bar(is_quiet=is_json) as move:

        def tell(stage: Stage) -> None:
            stage = pace(stage)
            move(stage.name, messages.paced(stage.message, stage.details), stage.fraction)

        yield tell


def show(is_json: bool, document: object, *parts: Any) -> None:
    """Shows an answer on standard output.

    The document is for machines: a record, a list of records, or plain values. The parts are for people; a text among
    them is one line, whatever stands in it, and bytes go out as they are.
    """
    if is_json:
        typer.echo(messages.as_json(_plain_values(document)))
        return
    out = messages.console()
    for part in parts:
        if isinstance(part, bytes):  # for another program, to the byte
            typer.echo(part, nl=False)
            continue
        out.print(messages.plain(part) if isinstance(part, str) else part)


def _plain_values(document: object) -> object:
    from app.desk.operation import document_of

    if isinstance(document, (list, tuple)):
        return [_plain_values(one) for one in document]
    if isinstance(document, dict):
        return {name: _plain_values(one) for name, one in document.items()}
    return document_of(document) if is_dataclass(document) else document


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
        UsageProblem: one has no name or no equals sign.
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
