"""`python -m app` and the `perennial` command."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> None:
    """Runs the command line and exits with its code."""
    from app.commands.cli import app

    # Shells complete a command, and `python -m app` is none.
    name = "perennial" if Path(sys.argv[0]).stem == "perennial" else "python -m app"
    app(prog_name=name)


if __name__ == "__main__":
    main()
