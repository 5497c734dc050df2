"""The verb bench: strategies compared over a sequence of chunks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.terminal import HomeOption, JsonOption, pairs_of, settings_for, show
from app.desk.errors import AppError, UsageProblem

if TYPE_CHECKING:
    from app.bench.sequence import BenchSequence, StrategyRun
    from app.home.settings import Settings

_DEFAULT = ("evergreen", "c-clip", "finetune")


class BenchFailed(AppError):
    """Some cells could not be run; those that could are kept."""


def bench(  # noqa: PLR0913 - one parameter per option
    sequence: Annotated[
        Path | None,
        typer.Argument(help="A sequence file; or name --chunk.", show_default=False, metavar="[SEQUENCE]"),
    ] = None,
    chunk: Annotated[
        list[str] | None,
        typer.Option(help="Teach this chunk next; give it again for the next one.", show_default=False),
    ] = None,
    strategy: Annotated[
        list[str] | None,
        typer.Option(help="Compare this one; NAME or NAME,option=value. Again for more.", show_default=False),
    ] = None,
    encoder: Annotated[
        str,
        typer.Option(
            help="With --chunk: what every run starts from; the live one, or as init --model takes it."
        ),
    ] = "live",
    seeds: Annotated[
        int | None, typer.Option(help="How many runs of each.", min=1, max=100, show_default=False)
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Of every strategy; 0 leaves each its own.", min=0, show_default=False)
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where cells and report are kept.", show_default=False)
    ] = None,
    processes: Annotated[int, typer.Option(help="Cells at once.", min=1, max=64)] = 1,
    report_only: Annotated[
        bool, typer.Option(help="Run nothing; write the report of what is there.")
    ] = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Compare strategies over many chunks.

    What each learns, forgets and costs when they are taught one after another.
    """
    from app.bench.grid import CellTask, missing, run_grid
    from app.bench.report import write_report

    settings = settings_for(home)
    found = _found(settings, sequence, chunk, encoder)
    wanted = _compared_with(found, strategy, seeds, epochs)
    folder = out or settings.home / "bench"
    tasks = [
        CellTask(settings, wanted, compared, seed, folder)
        for compared in wanted.strategies
        for seed in wanted.seeds
    ]
    left = [] if report_only else missing(tasks)
    if not is_json and not report_only:
        typer.echo(f"{len(tasks)} cells, {len(tasks) - len(left)} of them finished before.")
    failed = run_grid(left, processes=processes, say=(lambda _: None) if is_json else typer.echo)
    written = write_report(folder, wanted, folder)
    if failed:
        raise BenchFailed(
            f"{len(failed)} of {len(tasks)} cells could not be run; the first: {failed[0].name}: {failed[0].reason} "
            "The same command runs them again."
        )
    show(is_json, written.document, written.table, f"The whole report is {written.html}.")


def _found(settings: Settings, path: Path | None, chunks: list[str] | None, encoder: str) -> BenchSequence:
    """Returns the sequence of a file, or one over chunks of the home's own."""
    from app.bench.own import own_sequence
    from app.bench.sequence import LIVE, read_sequence
    from app.home.workspace import Workspace

    if (path is None) == (not chunks):
        raise UsageProblem("Name a sequence file, or the chunks to teach one after another with --chunk.")
    if path is None:
        with Workspace.open(settings, read_only=True) as workspace:
            return own_sequence(workspace, chunks or [], encoder)
    if encoder != LIVE:
        raise UsageProblem(f"{path.name} says what it starts from; --encoder goes with --chunk.")
    return read_sequence(path)


def _compared_with(
    found: BenchSequence, strategies: list[str] | None, seeds: int | None, epochs: int | None
) -> BenchSequence:
    """Returns the sequence with what the command line says of it."""
    compared = tuple(_compared(said) for said in strategies or ()) or found.strategies
    compared = compared or tuple(_compared(name) for name in _DEFAULT)
    changed: dict[str, object] = {"strategies": compared}
    if seeds is not None:
        changed |= {"seeds": tuple(range(seeds))}
    if epochs is not None:
        changed |= {"epochs": epochs}
    return found.model_copy(update=changed)


def _compared(said: str) -> StrategyRun:
    """Reads ``NAME,option=value,option=value``."""
    from app.bench.sequence import StrategyRun
    from model_updates.references import REFERENCES
    from model_updates.strategies import strategy_named

    name, *options = said.split(",")
    if name not in REFERENCES:
        strategy_named(name)
    return StrategyRun(name=name, options=pairs_of(options, "strategy", "teir,apply_to=update"))
