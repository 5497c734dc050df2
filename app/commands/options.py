"""The options and arguments that several verbs have. What only one has stands with its verb."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from app.desk.errors import AppError


def option(*names: str, says: str, **more: Any) -> Any:
    """Returns an option whose default says nothing to people."""
    return typer.Option(*names, help=says, show_default=False, **more)


def argument(says: str, metavar: str | None = None, **more: Any) -> Any:
    """Returns an argument whose default says nothing to people."""
    return typer.Argument(help=says, metavar=metavar, show_default=False, **more)


def source_path(word: str) -> Path:
    """Reads SOURCE; an empty word, from a shell variable that is not set, would mean the working directory."""
    if not word.strip():
        raise typer.BadParameter("it is empty; name a folder or a file.")
    return Path(word)


def release_names(context: typer.Context, incomplete: str) -> list[str]:
    """Returns the home's releases that begin as what was typed, for a shell to complete."""
    from app.home.settings import load_settings

    try:
        home = Path(context.params.get("home") or load_settings().home)
        return sorted(path.name for path in (home / "releases").iterdir() if path.name.startswith(incomplete))
    except (OSError, AppError):  # a shell shows nothing rather than an error
        return []


ChunkArgument = Annotated[str, argument("A chunk's name, its id, or the id's beginning.", "CHUNK")]
ReleaseArgument = Annotated[str, argument("A release, such as r3.", autocompletion=release_names)]
LanguageOption = Annotated[str, typer.Option("--language", help="A learned language, such as de, or auto.")]
WhyOption = Annotated[str, typer.Option("--why", help="A sentence for the history.")]
ProbesOption = Annotated[
    bool, typer.Option("--probes", help="Show the built-in checks too: drawn pictures that guard updates.")
]
StatedLanguage = Annotated[
    str | None, option("--language", says="Of captions that state none, such as de; else it is detected.")
]
StatedDomain = Annotated[str | None, option("--domain", says="Of pictures that state none, such as photo.")]
