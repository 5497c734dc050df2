"""Verbs that carry a release from a server and to one: export and import."""

from __future__ import annotations

from pathlib import Path

import typer

from app.commands.learning import JobFailed
from app.commands.options import ChecksumOption, ExportOption, PackageArgument, ReleaseArgument
from app.commands.remote.connection import connected, watch
from app.commands.terminal import JsonOption
from app.commands.transfer import show_export, show_import
from app.desk.errors import UsageProblem


def export(
    context: typer.Context, release: ReleaseArgument, to: ExportOption = Path(), is_json: JsonOption = False
) -> None:
    """Write a release into one file for another home."""
    with connected(context) as client:
        show_export(client.save_release(release, to), is_json=is_json)


def import_(
    context: typer.Context,
    source: PackageArgument,
    sha256: ChecksumOption = None,
    is_json: JsonOption = False,
) -> None:
    """Take a release of another home in; it is not live before somebody promotes it."""
    if not source.is_file():
        raise UsageProblem(f"There is no file {source}.")
    with connected(context) as client:
        done = watch(client, client.add_release(source, sha256=sha256 or ""), is_json=is_json)
    if done.state != "succeeded":
        raise JobFailed(done.error or f"Job {done.id} is {done.state}.", done.result)
    show_import(done.result, is_checked=sha256 is not None, is_json=is_json)
