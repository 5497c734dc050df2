"""The verb `canaries` on a server."""

from __future__ import annotations

import typer

from app.commands.canaries import CanaryLanguage, RemoveOption, show_canaries, show_removed
from app.commands.remote.connection import connected
from app.commands.terminal import JsonOption


def canaries(
    context: typer.Context,
    remove: RemoveOption = None,
    language: CanaryLanguage = "",
    is_json: JsonOption = False,
) -> None:
    """List the canaries: queries whose first answer updates must keep. Or take one away."""
    with connected(context) as client:
        if remove is None:
            show_canaries(client.canaries(), is_json=is_json)
            return
        gone = client.remove_canary(remove, language=language)
    show_removed(gone, is_json=is_json)
