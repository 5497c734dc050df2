"""Perennial: image search that keeps learning."""

from __future__ import annotations

import importlib.util
import sys
from importlib import metadata
from pathlib import Path

_HERE = Path(__file__).resolve().parent
_OWN = ("app", "index", "ingest", "model_updates")


def _place(name: str) -> str | None:
    """Returns the folder, or the file, that Python takes a package from."""
    spec = importlib.util.find_spec(name)
    return next(iter(spec.submodule_search_locations or ()), spec.origin) if spec else None


def _stranger() -> str | None:
    """Says which package beside this file would be somebody else's: names as plain as ours are easily met twice."""
    for name in _OWN:
        place = _place(name)
        if place is None or Path(place).resolve() != _HERE / name:
            return (
                f"Perennial needs its own package {name!r} beside {__file__}, but Python finds "
                f"{place or 'none'}. Start it from another folder and without PYTHONPATH; if an "
                "installed package is in the way, install Perennial in an environment of its own."
            )
    return None


if _said := _stranger():
    # A command says it and ends; who imports this has an error to handle.
    raise SystemExit(_said) if Path(sys.argv[0]).stem == "perennial" else ImportError(_said)

from app import DISTRIBUTION  # noqa: E402

__version__ = metadata.version(DISTRIBUTION)


def main() -> None:
    """Runs the command line and exits with its code."""
    from app.commands.cli import app
    from app.words.messages import command

    app(prog_name=command())


if __name__ == "__main__":
    main()
