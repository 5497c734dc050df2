"""Verbs that look after a server: doctor."""

from __future__ import annotations

import typer

from app.commands.doctor import (
    FailOn,
    FailOnOption,
    HtmlOption,
    QuickOption,
    show_examination,
)
from app.commands.learning import JobFailed
from app.commands.remote.connection import connected, watch
from app.commands.terminal import JsonOption, require_place


def doctor(
    context: typer.Context,
    fail_on: FailOnOption = FailOn.ERROR,
    quick: QuickOption = False,
    html: HtmlOption = None,
    is_json: JsonOption = False,
) -> None:
    """Look for everything that can be wrong with a server's home; nothing is changed."""
    if html is not None:
        require_place(html, "--html")
    with connected(context) as client:
        done = watch(client, client.examine(every_byte=not quick), is_json=is_json)
        address = client.url
    if done.state != "succeeded":
        raise JobFailed(done.error or f"Job {done.id} is {done.state}.", done.result)
    from app.desk.health import Diagnosis

    found = [Diagnosis.from_json(one) for one in done.result["found"]]
    show_examination(address, found, fail_on=fail_on, html=html, is_json=is_json)
