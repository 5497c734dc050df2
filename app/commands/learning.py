"""Verbs about learning: update, methods, evaluate, gate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.option_records import UpdateOptions, with_options
from app.commands.options import JudgedArgument
from app.commands.terminal import HomeOption, JsonOption, desk_for, pairs_of, show, staged, watched
from app.desk.errors import JobFailed, UsageProblem

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.desk.jobs import Forecast, StartUpdate
    from ingest.records import JobRecord

EXIT_CODES = {"succeeded": 0, "rejected": 3, "review": 4}


@with_options
def update(
    context: typer.Context, asked: UpdateOptions, home: HomeOption = None, is_json: JsonOption = False
) -> None:
    """Learn from a chunk; what passes the gate goes live."""
    options = _checked_options(asked)
    with desk_for(context, home) as desk:
        if asked.cancel is not None:
            job = desk.cancel(asked.cancel)
            said = f"{job.id} is {job.state}. `--resume {job.id}` goes on with it."
            show(is_json, _document(job), said)
            return
        if asked.resume is not None:
            job = desk.resume(asked.resume)
        else:
            request = _request(asked, options)
            if asked.dry_run:
                _show_forecast(desk.forecast(request), is_json=is_json)
                return
            desk.require_update(request)  # before anything is taken in
            if asked.source is not None:
                request = _taken_in(desk, asked, request, is_json=is_json)
            job = desk.update(request)
        done = watched(desk, job, is_json=is_json)
    show_end(done, is_json=is_json)


def _checked_options(asked: UpdateOptions) -> dict[str, str]:
    """Returns the strategy's options; refuses what cannot be meant, before anything is done."""
    if sum(one is not None for one in (asked.source, asked.chunk, asked.resume, asked.cancel)) != 1:
        raise UsageProblem(
            "Say what to learn from: a SOURCE to take in, or --chunk ID of one that is in "
            "(`status` lists them). --resume JOB and --cancel JOB stand alone."
        )
    if asked.dry_run and asked.source is not None:
        raise UsageProblem(
            "--dry-run looks at a chunk that is in. Take SOURCE in with `ingest`, which teaches nothing, "
            "and name it with --chunk."
        )
    options = pairs_of(asked.option, "--option", "epochs=5")
    if options and asked.strategy is None:
        raise UsageProblem("--option belongs to a strategy; name it with --strategy. `methods` lists them.")
    return options


def _request(asked: UpdateOptions, options: dict[str, str]) -> StartUpdate:
    from app.desk.jobs import StartUpdate

    return StartUpdate(
        chunk=asked.chunk or "-",
        strategy=asked.strategy,
        options=dict(options),
        seed=asked.seed,
        promote=asked.promote,
        why=asked.why,
    )


def _taken_in(desk: Desk, asked: UpdateOptions, request: StartUpdate, *, is_json: bool) -> StartUpdate:
    """Takes a source in; returns the request to learn from it."""
    from app.words.chunk import added_lines
    from ingest.intake import IntakeOptions

    if asked.source is None:
        raise TypeError("there is no source to take in")
    with staged(is_json=is_json) as tell:
        added = desk.add_chunk(
            asked.source, IntakeOptions(language=asked.language, domain=asked.domain), tell
        )
    if not is_json:
        show(False, None, *added_lines(added))
    return request.model_copy(update={"chunk": added.chunk.id})


def _show_forecast(found: Forecast, *, is_json: bool) -> None:
    """Shows what an update would take, and which strategy is recommended."""
    from app.words.forecast import forecast_sentences
    from app.words.messages import plain

    if found.misfit:
        raise UsageProblem(found.misfit)
    chosen = f"{found.strategy} would teach it."
    if found.strategy != found.recommended:
        chosen += f" {found.recommended} is recommended."
    why = plain(f"{chosen} {found.recommended}: {found.why}")
    show(is_json, found, why, *map(plain, forecast_sentences(found)))


def show_end(done: JobRecord, *, is_json: bool) -> None:
    """Shows how training ended, and leaves with the exit code of its verdict.

    Raises:
        JobFailed: there is none; with the job's own sentence, name and exit code.
    """
    from app.words import messages

    if done.state not in EXIT_CODES:
        raise JobFailed(done)
    show(is_json, _document(done), *messages.outcome(done))
    raise typer.Exit(EXIT_CODES[done.state])


def _document(job: JobRecord) -> dict[str, Any]:
    """Returns a job as `--json` shows it, with what came of it."""
    return {"job": job.id, "state": job.state, "error": job.error, **job.result}


def methods(
    name: Annotated[
        str | None, typer.Argument(help="Show this one alone, with its options.", show_default=False)
    ] = None,
    is_json: JsonOption = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Write docs/strategies.md, without other packages.")
    ] = False,
) -> None:
    """List the strategies: what each does, trains, keeps and costs, and what it asks of gallery and query."""
    from app.words import strategies as strategy_words
    from model_updates.references import REFERENCES
    from model_updates.strategies import STRATEGIES, strategy_named
    from model_updates.strategy_pages import document, facts, strategies_page

    if markdown:
        typer.echo(strategies_page(STRATEGIES.own(), REFERENCES), nl=False)
        return
    if name is not None:
        kind = strategy_named(name)
        show(is_json, facts(kind), *strategy_words.one(kind))
        return
    show(
        is_json,
        document(STRATEGIES, REFERENCES),
        *strategy_words.everything(STRATEGIES, REFERENCES),
    )


def evaluate(
    context: typer.Context,
    release: Annotated[
        str | None, typer.Option(help="Measure this release, not the live one.", show_default=False)
    ] = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Measure recall on today's held-out pairs."""
    from app.words.messages import slices_table

    with desk_for(context, home) as desk:
        found = desk.evaluate(release)
    title = f"Recall of {found.release} in percent, text to image"
    none = "There are no held-out pairs yet."
    show(is_json, found, slices_table(found.slices, title=title) if found.slices else none)


def gate(
    context: typer.Context, name: JudgedArgument, home: HomeOption = None, is_json: JsonOption = False
) -> None:
    """Show why an update passed the gate, or did not."""
    from app.words import messages
    from app.words.gate import gate_parts

    with desk_for(context, home) as desk:
        found = desk.job_verdict(name) if name[:1] == "j" else desk.release(name).judged
    parts: list[Any] = [messages.plain(found.sentence)]
    if found.gate is not None:
        parts += gate_parts(found.gate, messages.console().width)
    show(is_json, found, *parts)
