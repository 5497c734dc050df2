"""Verbs that keep a person's word on a release: reject, keep, pin, unpin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from app.commands.options import ReleaseArgument, WhyOption
from app.commands.terminal import HomeOption, JsonOption, show, who, workspace_for


def reject(
    release: ReleaseArgument, why: WhyOption = "", home: HomeOption = None, is_json: JsonOption = False
) -> None:
    """Reject a candidate with a note; promoting it then needs --force."""
    with workspace_for(home) as workspace:
        from app.learning.release_words import judge_release

        show_word(asdict(judge_release(workspace, release, "rejected", why=why, by=who())), is_json=is_json)


def keep(
    release: ReleaseArgument, why: WhyOption = "", home: HomeOption = None, is_json: JsonOption = False
) -> None:
    """Keep a candidate for later, with a note; takes a rejection back."""
    with workspace_for(home) as workspace:
        from app.learning.release_words import judge_release

        show_word(asdict(judge_release(workspace, release, "kept", why=why, by=who())), is_json=is_json)


def pin(why: WhyOption = "", home: HomeOption = None, is_json: JsonOption = False) -> None:
    """Pin what is live: updates that pass wait until somebody unpins it."""
    with workspace_for(home) as workspace:
        from app.learning import release_words

        show_word(asdict(release_words.pin(workspace, why=why, by=who())), is_json=is_json)


def unpin(why: WhyOption = "", home: HomeOption = None, is_json: JsonOption = False) -> None:
    """Take the pin away."""
    with workspace_for(home) as workspace:
        from app.learning import release_words

        show_word(asdict(release_words.unpin(workspace, why=why, by=who())), is_json=is_json)


def show_word(word: Mapping[str, Any], *, is_json: bool) -> None:
    """Shows what was said of a release: the fields of `ingest.release_words.ReleaseWord`."""
    from app.words.messages import plain

    why = f": {word['why']}" if word["why"] else ""
    show(is_json, word, plain(f"{word['release']} is {word['said']}{why}."))
