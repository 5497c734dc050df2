"""Verbs about folders of this machine that are followed: open, watch."""

from __future__ import annotations

import signal
import sys
import threading
import time
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.options import argument, source_path
from app.commands.terminal import HomeOption, settings_for, staged, who
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.home.settings import Settings
    from ingest.watching import Failures


def open_(
    folders: Annotated[
        list[Path] | None,
        argument("Folders with pictures; none shows what is there.", "[FOLDER]...", parser=source_path),
    ] = None,
    port: Annotated[int | None, typer.Option(help="On which port.", show_default=False)] = None,
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
    home: HomeOption = None,
) -> None:
    """Search folders of pictures in a browser.

    Makes a home where there is none, takes the pictures in, watches the folders, and serves the pages: all that
    somebody needs to begin. The second time it starts in seconds.
    """
    settings = settings_for(home, port=port)
    from app.commands.starting import starting

    found = _existing(folders or [])
    settings = settings.model_copy(
        update={"watch": [*found, *(one for one in settings.watch if one not in found)]}
    )
    with starting(settings) as server:
        if browser:
            webbrowser.open(server.url)
        _make_home(settings)
        server.run()


def watch(
    folders: Annotated[list[Path], argument("Folders with pictures.", "FOLDER...", parser=source_path)],
    home: HomeOption = None,
) -> None:
    """Keep search in step with folders of pictures.

    New pictures are searchable in seconds, moved ones are followed, deleted ones leave the answers. Ctrl-C ends it. A
    server does the same by itself with the setting `watch`.
    """
    settings = settings_for(home)
    found = _existing(folders)
    from app.local.at_home import AtHome
    from ingest.watching import Failures, changed_folders

    stopping, failures = threading.Event(), Failures()

    def stop(*_: object) -> None:
        stopping.set()  # a finaliser that runs just now would swallow the exception
        raise KeyboardInterrupt

    with AtHome(settings, by=who()) as desk:
        _ = desk.home  # refuses at once, before the heavy imports
        signal.signal(signal.SIGINT, stop)
        typer.echo(f"Watching {', '.join(map(str, found))} (Ctrl-C ends it)")
        with suppress(KeyboardInterrupt):  # which may also end the watching itself, without a word
            for touched in changed_folders(found, stopping, failures.is_due):
                for folder in touched:
                    typer.echo(f"{time.strftime('%X')} {folder}: {_looked_at(desk, folder, failures)}")
        typer.echo("No longer watching. What was taken in stays; the same command goes on.")


def _looked_at(desk: Desk, folder: Path, failures: Failures) -> str:
    """Takes in what changed in a folder, and says what that was, or why it could not be and when it is tried again."""
    from app.desk.troubles import explain
    from ingest.errors import UNREADABLE, BadUpload
    from ingest.intake import IntakeOptions
    from ingest.report import batch_line

    failures.begin(folder)
    try:
        with staged(is_json=not sys.stderr.isatty()) as tell:  # a log has a line for each batch
            report = desk.add_chunk(folder, IntakeOptions(follow=True), tell).report
        said, is_unread = batch_line(report), UNREADABLE in report["reasons"]
    except BadUpload as error:  # such as an empty folder: another change has to come
        said, is_unread = str(error), error.code == UNREADABLE
    except Exception as error:
        if (problem := explain(error)) is None:
            raise
        return f"{problem.sentence} It is looked at again in {failures.note(folder):.0f} s."
    if is_unread:  # a disk of the network may answer in a moment, and no change is seen then
        return f"{said} It is looked at again in {failures.note(folder):.0f} s."
    failures.forget(folder)
    return said


def _existing(folders: list[Path]) -> list[Path]:
    for folder in folders:
        if not folder.expanduser().is_dir():
            raise UsageProblem(f"{folder} is no folder. Name one with pictures in it.")
    return [folder.expanduser().resolve() for folder in folders]


def _make_home(settings: Settings) -> None:
    """Makes a home where there is none; one that is damaged is refused, as everywhere."""
    from app.home.folder import Home

    if Home(settings.home).format_file.exists():
        Home.open(settings.home).require_stores()
        return
    from app.commands.homes import DEFAULT_MODEL
    from app.learning.beginning import initialise
    from model_updates.embedded import lacking

    commit = initialise(settings, model=DEFAULT_MODEL)
    typer.echo(f"{settings.home} is new; release {commit.release} is live.")
    if said := lacking(DEFAULT_MODEL):
        typer.echo(said)
