"""The command line: its verbs, and the outer edge at which errors become sentences and exit codes.

Nothing heavy is imported before a verb runs, so that `--help` answers at once.
"""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from app.commands import (
    bench,
    canaries,
    chunks,
    doctor,
    held,
    homes,
    judging,
    learning,
    pictures,
    releasing,
    remote,
    reports,
    searching,
    shadowing,
    standing,
    status,
    transfer,
    words,
)
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.words.messages import Problem

logger = logging.getLogger(__name__)

_STOPPED = "Interrupted; nothing live has changed. The same command again finishes what was begun."
_INTERRUPTED = 130  # 128 + SIGINT, as shells count


class _Edge(TyperGroup):
    """Runs a verb and translates whatever it raises."""

    _is_json = False

    # Contexts are `Any` because typer brings click along under another name in newer releases.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Looked for here since an error may come before the verb has read its options.
        self._is_json = "--json" in args
        return super().parse_args(ctx, _server_first(args))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        known = super().get_command(ctx, cmd_name)
        if known is None or ctx.params.get("server") is None:
            return known
        elsewhere = typer.main.get_command(remote_verbs)
        found = elsewhere.get_command(ctx, cmd_name)  # type: ignore[attr-defined]
        if found is None:
            names = ", ".join(sorted(elsewhere.commands))  # type: ignore[attr-defined]
            raise UsageProblem(
                f"{cmd_name} works on a home on this machine. With --server there are {names}."
            )
        return found

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            raise self._leave(
                "Interrupted; nothing live has changed. The same command again finishes what was begun.",
                "Interrupted",
                _INTERRUPTED,
            ) from None
        except Exception as error:
            if hasattr(error, "format_message"):  # typer's own, about the options
                if not self._is_json:
                    raise
                raise self._leave(error.format_message(), "Usage", 2) from None
            problem = _problem(error)
            raise self._leave(problem.sentence, problem.code, problem.exit_code) from None

    def _leave(self, sentence: str, code: str, exit_code: int) -> typer.Exit:
        from app.words import messages

        if self._is_json:
            typer.echo(messages.as_json({"error": sentence, "code": code}))
        else:
            typer.echo(messages.plain(sentence), err=True)
        return typer.Exit(exit_code)


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


def _problem(error: Exception) -> Problem:
    from app.home import logs
    from app.words import messages

    known = messages.explain(error)
    if known is not None:
        return known
    if logs.current_file() is None:
        logs.configure(home=Path(tempfile.gettempdir()))
    logger.error("a command failed", exc_info=error)
    name = type(error).__name__
    sentence = f"Something unexpected happened ({name}). The details are in {logs.current_file()}."
    return messages.Problem(sentence, "Unexpected", 1)


app = typer.Typer(
    cls=_Edge,
    name="perennial",
    help="Image search that keeps learning.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

remote_verbs = typer.Typer(add_completion=False)
for remote_verb in remote.VERBS:
    remote_verbs.command(remote_verb.__name__.rstrip("_"))(remote_verb)


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
) -> None:
    """Image search that keeps learning."""


for verb in (
    homes.init,
    homes.models,
    chunks.ingest,
    reports.check,
    standing.accept,
    standing.withdraw,
    standing.remove,
    held.held,
    held.decide,
    pictures.pictures,
    learning.update,
    learning.methods,
    learning.evaluate,
    bench.bench,
    reports.gate,
    releasing.compare,
    judging.changes,
    releasing.diff,
    judging.quality,
    judging.feedback,
    canaries.canaries,
    releasing.drift,
    releasing.promote,
    releasing.rollback,
    releasing.releases,
    shadowing.shadow,
    words.reject,
    words.keep,
    words.pin,
    words.unpin,
    searching.search,
    homes.serve,
    homes.work,
    homes.mcp,
    homes.demo,
    status.status,
    transfer.export,
    transfer.import_,
    doctor.doctor,
):
    app.command(verb.__name__.rstrip("_"))(verb)
