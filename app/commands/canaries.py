"""The verb `canaries`: queries whose first answer updates must keep, and taking one away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer

from app.commands.terminal import HomeOption, JsonOption, show, who, workspace_for

RemoveOption = Annotated[
    str | None,
    typer.Option("--remove", help="Take this one away, in the words it was pinned in.", show_default=False),
]
CanaryLanguage = Annotated[
    str, typer.Option("--language", help="Of the query, where it is pinned in several.", show_default=False)
]


def canaries(
    remove: RemoveOption = None,
    language: CanaryLanguage = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """List the canaries: queries whose first answer updates must keep. Or take one away."""
    with workspace_for(home) as workspace:
        if remove is None:
            show_canaries([asdict(one) for one in workspace.catalog.pins()], is_json=is_json)
            return
        from app.feedback.votes import remove_canary

        gone = remove_canary(workspace, remove, language=language, by=who())
    show_removed(asdict(gone), is_json=is_json)


def show_canaries(found: Sequence[Mapping[str, Any]], *, is_json: bool) -> None:
    """Shows a row for each canary."""
    from app.words.messages import table

    rows = [(one["query"], one["language"], str(one["image_id"])[:12]) for one in found]
    none = "There are none yet. `search --pin` and a person's word on the Feedback page make them."
    show(is_json, list(found), table(("query", "language", "picture"), rows) if rows else none)


def show_removed(gone: Mapping[str, Any], *, is_json: bool) -> None:
    """Says that a canary is gone."""
    from app.words.messages import plain

    said = (
        f"{gone['query']!r} is no canary in {gone['language']} any more: updates need not keep its picture."
    )
    show(is_json, dict(gone), plain(said))
