"""The verb `mcp`: a server's search as tools for assistants."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from app.commands.remote.connection import connected
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.client import Client


def mcp(context: typer.Context) -> None:
    """Serve search as tools for assistants, on standard input and output."""
    with connected(context) as client:
        serve_tools(client)


def serve_tools(client: Client) -> None:
    """Serves until standard input ends.

    Raises:
        UsageProblem: the package for it is not installed.
    """
    try:
        from app.client.assistant import assistant_server
    except ModuleNotFoundError as error:
        raise UsageProblem(
            "Tools for assistants need a package more: pip install 'perennial[mcp]'."
        ) from error
    assistant_server(client).run("stdio")
