"""The command line: its verbs, and the outer edge at which errors become sentences and exit codes.

Nothing heavy is imported before a verb runs, so that `--help` answers at once.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from app import DISTRIBUTION
from app.commands import (
    bench,
    capacity,
    chunks,
    engines,
    folders,
    homes,
    judging,
    learning,
    pictures,
    releasing,
    searching,
    upkeep,
)
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.desk.troubles import Trouble

logger = logging.getLogger(__name__)

_STOPPED = "Interrupted; nothing live has changed. The same command again finishes what was begun."
_HELP = 60  # letters of a verb's line of help, which stay on one line of a terminal
_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_ON_A_HOME = frozenset(
    {
        "init",
        "serve",
        "work",
        "account",
        "demo",
        "bench",
        "open",
        "watch",
        "backup",
        "restore",
        "replay",
        "home",
    }
)


class _Edge(TyperGroup):
    """Runs a verb and translates whatever it raises."""

    _is_json = False

    # Contexts are `Any` because typer brings click along under another name in newer releases.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Looked for here since an error may come before the verb has read its options.
        self._is_json = "--json" in args
        return super().parse_args(ctx, _server_first(args))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name in _ON_A_HOME and ctx.params.get("server") is not None:
            raise UsageProblem(f"{cmd_name} works on a home on this machine, not with --server.")
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        width = max(map(len, self.commands))
        for group, verbs in _VERBS.items():
            with formatter.section(group):
                said = {name: self.commands[name].get_short_help_str(_HELP) for name in map(_name, verbs)}
                formatter.write_dl([(name.ljust(width), line) for name, line in said.items()])

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            raise self._leave(_STOPPED, "interrupted", _INTERRUPTED) from None
        except Exception as error:
            if hasattr(error, "format_message"):  # typer's own, about the options
                if not self._is_json:
                    raise
                raise self._leave(error.format_message(), "usage", 2) from None
            problem = _problem(error)
            raise self._leave(problem.sentence, problem.code, problem.exit_code) from None

    def _leave(self, sentence: str, code: str, exit_code: int) -> typer.Exit:
        from app.words import messages

        if self._is_json:
            typer.echo(messages.as_json({"error": sentence, "code": code}))
        else:
            typer.echo(messages.plain(sentence), err=True)
        return typer.Exit(exit_code)


def _name(verb: Callable[..., None]) -> str:
    return verb.__name__.rstrip("_")


def _server_first(args: list[str]) -> list[str]:
    """Lets --server stand behind the verb too, where --home stands."""
    for at, word in enumerate(args):
        if word == "--":
            break
        if word == "--server" and at + 1 < len(args):
            return [word, args[at + 1], *args[:at], *args[at + 2 :]]
        if word.startswith("--server="):
            return [word, *args[:at], *args[at + 1 :]]
    return args


def _problem(error: Exception) -> Trouble:
    from app.desk.troubles import Trouble, explain
    from app.home import logs

    known = explain(error)
    if known is not None:
        return known
    if logs.current_file() is None:
        logs.configure(home=Path(tempfile.gettempdir()))
    logger.error("a command failed", exc_info=error)
    name = type(error).__name__
    sentence = f"Something unexpected happened ({name}). The details are in {logs.current_file()}."
    return Trouble(sentence, "unexpected", 500, 1)


def _say_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"perennial {metadata.version(DISTRIBUTION)}")
        raise typer.Exit


app = typer.Typer(
    cls=_Edge,
    name="perennial",
    help="Image search that keeps learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _everywhere(
    server: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="PERENNIAL_SERVER",
            help="Work on a running server instead of a home; the password is in PERENNIAL_SERVER_PASSWORD.",
            show_default=False,
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Say which version this is."),
    ] = False,
) -> None:
    """Image search that keeps learning."""


_VERBS: Mapping[str, tuple[Callable[..., None], ...]] = {
    "Start": (folders.open_, homes.demo, homes.init, homes.models),
    "Search": (searching.search, judging.feedback, judging.canaries),
    "Pictures": (
        chunks.add,
        folders.watch,
        pictures.pictures,
        chunks.check,
        chunks.accept,
        chunks.held,
        chunks.decide,
        chunks.domain,
        chunks.withdraw,
        chunks.remove,
    ),
    "Teach": (learning.update, learning.gate, learning.methods, learning.evaluate, bench.bench),
    "Releases": (
        releasing.releases,
        judging.quality,
        searching.compare,
        searching.changes,
        releasing.diff,
        releasing.drift,
        releasing.shadow,
        releasing.promote,
        releasing.rollback,
        releasing.reject,
        releasing.keep,
        releasing.pin,
        releasing.unpin,
        releasing.prune,
        releasing.export,
        releasing.import_,
    ),
    "Server": (homes.serve, homes.work, homes.account, homes.mcp),
    "Upkeep": (
        upkeep.status,
        upkeep.index,
        upkeep.doctor,
        upkeep.repair,
        upkeep.backup,
        upkeep.restore,
        engines.home_,
        upkeep.replay,
        capacity.capacity,
    ),
}
for verb in chain.from_iterable(_VERBS.values()):
    app.command(_name(verb))(verb)
app.command("ingest", hidden=True)(chunks.add)  # its name in earlier releases
