"""Verbs about what a server's answers and releases are worth: changes, quality, feedback, diff, drift."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from app.commands.judging import kept_pairs, queries_in, show_changes, show_feedback, show_quality
from app.commands.options import (
    ComparedHits,
    DriftPairsOption,
    LanguageOption,
    LeaveOutOption,
    MetricOption,
    MostOption,
    ProposalOption,
    QueriesOption,
    ReleaseArgument,
    ViewOption,
)
from app.commands.releasing import show_difference, show_drift
from app.commands.remote.connection import connected
from app.commands.terminal import JsonOption, require_place

if TYPE_CHECKING:
    from app.client import Client


def changes(
    context: typer.Context,
    a: ReleaseArgument,
    b: ReleaseArgument,
    queries: QueriesOption = None,
    language: LanguageOption = "auto",
    k: ComparedHits = 10,
    most: MostOption = 20,
    is_json: JsonOption = False,
) -> None:
    """Ask two releases many queries and show which answers changed most."""
    with connected(context) as client:
        if queries is None:
            compared = client.changed(a, b, language=language, k=k, most=most)
        else:
            compared = client.compare_all(queries_in(queries), a, b, language=language, k=k)
    show_changes(compared, most, is_json=is_json)


def quality(
    context: typer.Context,
    metric: MetricOption = "t2i_r10",
    view: ViewOption = "own",
    is_json: JsonOption = False,
) -> None:
    """Show what each released version reaches on each slice, and which languages are asked for."""
    with connected(context) as client:
        found = client.quality(metric=metric, view=view)
    show_quality(found, is_json=is_json)


def feedback(
    context: typer.Context,
    to: ProposalOption = None,
    leave_out: LeaveOutOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what people said of answers, and the chunk that it proposes."""
    if to is not None:
        require_place(to, "--to")
    with connected(context) as client:
        document: dict[str, Any] = {"votes": client.feedback()["votes"], "proposal": client.proposal()}
        if to is not None:
            document |= _written(client, kept_pairs(document["proposal"], leave_out), to)
    show_feedback(document, is_json=is_json)


def _written(client: Client, pairs: set[str], to: Path) -> dict[str, Any]:
    to.write_bytes(client.proposal_file(pairs))
    return {"file": str(to), "written": len(pairs)}


def diff(context: typer.Context, a: ReleaseArgument, b: ReleaseArgument, is_json: JsonOption = False) -> None:
    """Show what two releases differ in: what they know, what is read and seen differently, recall."""
    with connected(context) as client:
        found = client.difference(a, b)
    show_difference(found, is_json=is_json)


def drift(
    context: typer.Context,
    a: ReleaseArgument,
    b: ReleaseArgument,
    pairs: DriftPairsOption = 2000,
    is_json: JsonOption = False,
) -> None:
    """Show how far the vectors of two releases have turned, and whether both towers turned together."""
    with connected(context) as client:
        found = client.drift(a, b, pairs=pairs)
    show_drift(found, is_json=is_json)
