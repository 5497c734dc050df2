"""Perennial: image search that keeps learning. The one public module (docs/python.md).

`open` opens a home, `connect` a server. Everything that they refuse is one of `ERRORS`, whose text is a sentence.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.desk.troubles import OWN_ERRORS as ERRORS
    from app.local.program import Answer, Perennial, PictureHit

__all__ = ["ERRORS", "Answer", "Perennial", "PictureHit", "__version__", "connect", "main", "open"]

_HERE = Path(__file__).resolve().parent.parent
_OWN = ("app", "index", "ingest", "model_updates")


def _place(name: str) -> str | None:
    """Returns the folder, or the file, that Python takes a package from."""
    spec = importlib.util.find_spec(name)
    return next(iter(spec.submodule_search_locations or ()), spec.origin) if spec else None


def _stranger() -> str | None:
    """Says which package beside this one would be somebody else's: names as plain as ours are easily met twice."""
    for name in _OWN:
        place = _place(name)
        if place is None or Path(place).resolve() != _HERE / name:
            return (
                f"Perennial needs its own package {name!r} in {_HERE}, but Python finds "
                f"{place or 'none'}. Start it from another folder and without PYTHONPATH; if an "
                "installed package is in the way, install Perennial in an environment of its own."
            )
    return None


if _said := _stranger():
    # A command says it and ends (of `python -m`, all that stands there by now is "-m"); who imports this has an error
    # to handle.
    raise SystemExit(_said) if Path(sys.argv[0]).stem in {"perennial", "-m"} else ImportError(_said)

from app import DISTRIBUTION  # noqa: E402

__version__ = metadata.version(DISTRIBUTION)


def open(
    path: str | Path | None = None, *, create: bool = False, model: str | None = None, **settings: Any
) -> Perennial:
    """Opens a home, a folder of this machine.

    Args:
        path: of the home; without one the home that the command `perennial` works on.
        create: whether to make one where there is none; otherwise that is an error, as a misspelt path would make one.
        model: the encoder of a new home, as `perennial init --model` takes it.
        settings: such as device="cpu", threads=2; `perennial.toml` and the environment are read as well.

    Raises:
        NoHome: there is none, and `create` was not asked for.
        UsageProblem: there is no such setting, or it cannot have this value.
    """
    from app.commands.homes import DEFAULT_MODEL
    from app.commands.terminal import who
    from app.local.program import open_home

    return open_home(path, model=(model or DEFAULT_MODEL) if create else None, by=who(), **settings)


def connect(
    url: str, *, auth: tuple[str, str] | None = None, headers: Mapping[str, str] | None = None
) -> Perennial:
    """Connects to a server, as `app.client.connect` does; nothing is asked yet."""
    from app import client
    from app.local.program import Perennial

    return Perennial(client.connect(url, auth=auth, headers=headers))


def __getattr__(name: str) -> Any:
    """Loads what annotations and handlers name when it is asked for, so that the command starts quickly."""
    if name == "ERRORS":
        from app.desk.troubles import OWN_ERRORS

        return OWN_ERRORS
    if name in __all__:
        from app.local import program

        return getattr(program, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def main() -> None:
    """Runs the command line and exits with its code."""
    import atexit

    from app.commands.cli import app
    from app.words.messages import command

    atexit.register(_leave_at_once)
    app(prog_name=command())


def _leave_at_once() -> None:
    """Spares a process that ends the collector's last round, except where torch is loaded: its libraries count it."""
    import gc

    if "torch" not in sys.modules:
        gc.freeze()
