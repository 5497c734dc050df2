"""Verbs that keep a person's word on a server's release: reject, keep, pin, unpin."""

from __future__ import annotations

import typer

from app.commands.options import ReleaseArgument, WhyOption
from app.commands.remote.connection import connected
from app.commands.terminal import JsonOption
from app.commands.words import show_word


def reject(
    context: typer.Context, release: ReleaseArgument, why: WhyOption = "", is_json: JsonOption = False
) -> None:
    """Reject a candidate with a note; promoting it then needs --force."""
    with connected(context) as client:
        show_word(client.judge_release(release, "rejected", why=why), is_json=is_json)


def keep(
    context: typer.Context, release: ReleaseArgument, why: WhyOption = "", is_json: JsonOption = False
) -> None:
    """Keep a candidate for later, with a note; takes a rejection back."""
    with connected(context) as client:
        show_word(client.judge_release(release, "kept", why=why), is_json=is_json)


def pin(context: typer.Context, why: WhyOption = "", is_json: JsonOption = False) -> None:
    """Pin what is live: updates that pass wait until somebody unpins it."""
    with connected(context) as client:
        show_word(client.pin_live(why=why), is_json=is_json)


def unpin(context: typer.Context, why: WhyOption = "", is_json: JsonOption = False) -> None:
    """Take the pin away."""
    with connected(context) as client:
        show_word(client.unpin_live(why=why), is_json=is_json)
