"""The server of `--server`: signing in, sending files, and following its jobs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from app.desk.errors import AppError, UsageProblem

if TYPE_CHECKING:
    from app.client import Client
    from ingest.records import JobRecord

PASSWORD = "PERENNIAL_SERVER_PASSWORD"


@contextmanager
def connected(context: typer.Context) -> Iterator[Client]:
    """Connects to the server of `--server`, as the account in its address or the environment."""
    from urllib.parse import unquote, urlsplit

    from app.client import Client

    url = str(context.find_root().params["server"])
    parts = urlsplit(url)
    name = unquote(parts.username or "")
    password = unquote(parts.password or "") or os.environ.get(PASSWORD, "")
    if name and not password:
        raise UsageProblem(f"Put the password of {name} into {PASSWORD}.")
    with Client(url, auth=(name, password) if name else None) as client:
        yield client


def watch(client: Client, job: JobRecord, *, is_json: bool) -> JobRecord:
    """Follows a job to its end; Ctrl-C leaves it to the server."""
    from app.words import messages

    try:
        with messages.progress_bar(is_quiet=is_json) as move:
            for row in client.follow(job.id):
                said = row.progress
                move(
                    str(said.get("name", row.state)),
                    str(said.get("message", "waiting")),
                    said.get("fraction"),
                )
                job = row
    except KeyboardInterrupt:
        raise AppError(f"Job {job.id} goes on on the server; `status` shows it.", exit_code=130) from None
    return job
