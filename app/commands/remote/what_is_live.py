"""Verbs about what is live on a server: releases, promote, rollback, status."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from app.commands.options import BackToArgument, ForceOption, LineageOption, ReleaseArgument, WhyOption
from app.commands.releasing import show_lineage, show_releases
from app.commands.remote.connection import connected
from app.commands.status import JOBS_SHOWN, chunk_and_job_tables
from app.commands.terminal import JsonOption, show

if TYPE_CHECKING:
    from app.client import WentLiveAnswer


def releases(context: typer.Context, lineage: LineageOption = False, is_json: JsonOption = False) -> None:
    """List the releases, newest first."""
    with connected(context) as client:
        if lineage:
            show_lineage(client.lineage(), is_json=is_json)
        else:
            show_releases([one.model_dump() for one in client.releases()], is_json=is_json)


def promote(
    context: typer.Context,
    release: ReleaseArgument,
    why: WhyOption = "",
    force: ForceOption = False,
    is_json: JsonOption = False,
) -> None:
    """Make a release live."""
    with connected(context) as client:
        _show_live(client.promote(release, why=why, force=force), is_json=is_json)


def rollback(
    context: typer.Context,
    release: BackToArgument = None,
    why: WhyOption = "",
    is_json: JsonOption = False,
) -> None:
    """Go back to an earlier release."""
    with connected(context) as client:
        _show_live(client.roll_back(release, why=why), is_json=is_json)


def status(context: typer.Context, is_json: JsonOption = False) -> None:
    """Show what is live, the chunks and the jobs."""
    from app.words.messages import plain

    with connected(context) as client:
        ready, chunks, jobs = client.get("/readyz"), client.chunks(), client.jobs()[:JOBS_SHOWN]
        address = client.url
    document = {
        "server": address,
        "live": ready,
        "chunks": [
            {
                "id": one.id,
                "name": one.name,
                "pairs": one.pairs,
                "images": one.images,
                "standing": one.standing,
            }
            for one in chunks
        ],
        "jobs": [asdict(one) for one in jobs],
    }
    lines = [f"Server {address}", f"Live: {ready['release']}, commit {ready['commit']}"]
    if ready["problem"]:
        lines.append(str(ready["problem"]))
    show(is_json, document, *map(plain, lines), *chunk_and_job_tables(chunks, jobs))


def _show_live(done: WentLiveAnswer, *, is_json: bool) -> None:
    said = f"{done.release} is live (commit {done.commit}, {done.reason})."
    if done.job is not None:
        said += (
            f" {done.left_out} pictures were taken in after it; job {done.job['id']} makes them searchable."
        )
    show(is_json, done.model_dump(), said)
