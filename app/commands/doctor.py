"""The verb that looks for everything that can be wrong with a home: doctor."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.commands.terminal import HomeOption, JsonOption, settings_for, show
from app.errors import UsageProblem


class FailOn(StrEnum):
    """From which level on the exit code is 1."""

    ERROR = "error"
    WARN = "warn"
    NEVER = "never"


def doctor(
    fail_on: Annotated[FailOn, typer.Option(help="From which level on the exit code is 1.")] = FailOn.ERROR,
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare sizes; do not read every file and picture.")
    ] = False,
    html: Annotated[
        Path | None, typer.Option(help="Write the examination as one HTML file too.", show_default=False)
    ] = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Look for everything that can be wrong with a home; nothing is changed."""
    if html is not None and (html.is_dir() or not html.absolute().parent.is_dir()):
        raise UsageProblem(f"--html {html}: name a file in a folder that exists. Nothing was looked at.")
    settings = settings_for(home)
    from app import messages
    from app.doctor.diagnosis import Level, worst
    from app.doctor.examination import examine
    from app.doctor.page import SUMMARY, html_page

    with messages.progress_bar(is_quiet=is_json) as move:
        found = examine(
            settings,
            every_byte=not quick,
            progress=lambda stage: move(stage.name, stage.message, stage.fraction),
        )
    when = datetime.now(UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    if html is not None:
        html.write_text(html_page(settings.home, found, when), encoding="utf-8")
    level = worst(found)
    document = {"home": settings.home, "level": str(level), "found": [one.to_json() for one in found]}
    rows = [(one.check, str(one.level), " ".join(filter(None, (one.sentence, one.advice)))) for one in found]
    show(is_json, document, messages.table(("looked at", "level", "found"), rows), SUMMARY[level])
    if fail_on is not FailOn.NEVER and level >= {"error": Level.ERROR, "warn": Level.WARN}[fail_on]:
        raise typer.Exit(1)
