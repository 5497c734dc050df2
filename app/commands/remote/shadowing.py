"""The verb `shadow` on a server."""

from __future__ import annotations

import typer

from app.commands.options import ReleaseArgument, WhyOption
from app.commands.remote.connection import connected
from app.commands.shadowing import ReportOption, ShareOption, StopOption, require_one, show_shadow
from app.commands.terminal import JsonOption


def shadow(
    context: typer.Context,
    release: ReleaseArgument,
    share: ShareOption = None,
    stop: StopOption = False,
    report: ReportOption = False,
    why: WhyOption = "",
    is_json: JsonOption = False,
) -> None:
    """Have a candidate asked live queries in the background, and show how its answers differ."""
    require_one(stop, report, share)
    with connected(context) as client:
        if stop:
            told = client.stop_shadow(release, why=why)
        elif report:
            told = client.shadow(release)
        else:
            told = client.start_shadow(release, share=share)
    from app.desk.opinions import ShadowReport

    show_shadow(ShadowReport.from_json(told), is_json=is_json)
