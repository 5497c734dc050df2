"""`python -m app` and the `perennial` command."""

from __future__ import annotations


def main() -> None:
    """Runs the command line and exits with its code."""
    from app.cli import app

    app(prog_name="python -m app")


if __name__ == "__main__":
    main()
