"""The verb that looks for everything that can be wrong with a home: doctor."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.terminal import HomeOption, JsonOption, require_place, settings_for, show

if TYPE_CHECKING:
    from app.desk.health import Diagnosis


class FailOn(StrEnum):
    """From which level on the exit code is 1."""

    ERROR = "error"
    WARN = "warn"
    NEVER = "never"


FailOnOption = Annotated[FailOn, typer.Option("--fail-on", help="From which level on the exit code is 1.")]
QuickOption = Annotated[
    bool, typer.Option("--quick", help="Compare sizes; do not read every file and picture.")
]
HtmlOption = Annotated[
    Path | None,
    typer.Option("--html", help="Write the examination as one HTML file too.", show_default=False),
]


def doctor(
    fail_on: FailOnOption = FailOn.ERROR,
    quick: QuickOption = False,
    html: HtmlOption = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Look for everything that can be wrong with a home; nothing is changed."""
    if html is not None:
        require_place(html, "--html")
    settings = settings_for(home)
    from app.doctor.examination import examine
    from app.words import messages

    with messages.progress_bar(is_quiet=is_json) as move:
        found = examine(
            settings,
            every_byte=not quick,
            progress=lambda stage: move(stage.name, stage.message, stage.fraction),
        )
    show_examination(str(settings.home), found, fail_on=fail_on, html=html, is_json=is_json)


def show_examination(
    where: str, found: Sequence[Diagnosis], *, fail_on: FailOn, html: Path | None, is_json: bool
) -> None:
    """Shows what was found, and leaves with 1 where it is as bad as `fail_on` says.

    Args:
        where: the home, or the server's address.
        found: the diagnoses.
        fail_on: from which level on.
        html: where to write it as a page, if anywhere.
        is_json: print JSON and nothing else.
    """
    from app.desk.health import SUMMARY, Level, worst
    from app.doctor.page import html_page
    from app.words import messages

    when = datetime.now(UTC).isoformat(" ", "seconds").removesuffix("+00:00")
    if html is not None:
        html.write_text(html_page(where, found, when), encoding="utf-8")
    level = worst(found)
    document = {"home": where, "level": str(level), "found": [one.to_json() for one in found]}
    rows = [(one.check, str(one.level), " ".join(filter(None, (one.sentence, one.advice)))) for one in found]
    show(is_json, document, messages.table(("looked at", "level", "found"), rows), SUMMARY[level])
    if fail_on is not FailOn.NEVER and level >= {"error": Level.ERROR, "warn": Level.WARN}[fail_on]:
        raise typer.Exit(1)
