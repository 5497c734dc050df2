"""Perennial: image search that keeps learning."""

from __future__ import annotations

from importlib import metadata

__version__ = metadata.version("perennial")


def main() -> None:
    """Runs the command line and exits with its code."""
    from app.commands.cli import app
    from app.words.messages import command

    app(prog_name=command())


if __name__ == "__main__":
    main()
