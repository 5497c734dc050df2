"""The verb `shadow`: a candidate is asked what people ask the live release."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.options import ReleaseArgument, WhyOption
from app.commands.terminal import HomeOption, JsonOption, show, who, workspace_for
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.desk.opinions import ShadowReport

StopOption = Annotated[bool, typer.Option("--stop", help="End it; what it has shown is kept.")]
ReportOption = Annotated[bool, typer.Option("--report", help="Only show what it has shown so far.")]
ShareOption = Annotated[
    float | None,
    typer.Option("--share", help="Of the live queries, such as 0.2 for one in five.", show_default=False),
]
_BOTH = "--stop ends the shadow and --report only shows it; choose one of them, without --share."


def shadow(
    release: ReleaseArgument,
    share: ShareOption = None,
    stop: StopOption = False,
    report: ReportOption = False,
    why: WhyOption = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Have a candidate asked live queries in the background, and show how its answers differ."""
    require_one(stop, report, share)
    with workspace_for(home) as workspace:
        from app.feedback import shadow as engine

        if stop:
            engine.stop(workspace, release, by=who(), why=why)
        elif not report:
            engine.start(workspace, release, share=share, by=who())
        told = engine.report(workspace, release)
    show_shadow(told, is_json=is_json)


def require_one(stop: bool, report: bool, share: float | None) -> None:
    """Refuses options that exclude each other.

    Raises:
        UsageProblem: more than one thing was asked for.
    """
    if (stop and report) or (share is not None and (stop or report)):
        raise UsageProblem(_BOTH)


def show_shadow(told: ShadowReport, *, is_json: bool) -> None:
    """Shows a report: sentences and a line for each language."""
    from app.words.messages import plain, table
    from app.words.shadow import HEADERS, line_cells, shadow_sentences

    lines = [*told.languages, *([told.total] if told.total and len(told.languages) > 1 else [])]
    shown = [table(HEADERS, [line_cells(line) for line in lines])] if lines else []
    show(is_json, asdict(told), *map(plain, shadow_sentences(told)), *shown)
