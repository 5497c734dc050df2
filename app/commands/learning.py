"""Verbs about learning: update, methods, evaluate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.chunks import add, added_lines
from app.commands.option_records import UpdateOptions, with_options
from app.commands.terminal import (
    HomeOption,
    JsonOption,
    pairs_of,
    settings_for,
    show,
    who,
    workspace_for,
)
from app.desk.errors import AppError, UsageProblem

if TYPE_CHECKING:
    from app.desk.jobs import Forecast
    from app.home.settings import Settings
    from ingest.records import JobRecord

EXIT_CODES = {"succeeded": 0, "rejected": 3, "review": 4}


class JobFailed(AppError):
    """What went wrong in a worker's process, with the name and exit code that it had there."""

    def __init__(self, sentence: str, result: Mapping[str, Any]) -> None:
        super().__init__(sentence, int(result.get("exit_code", 1)))
        self.code = str(result.get("code", "JobFailed"))


@with_options
def update(asked: UpdateOptions, home: HomeOption = None, is_json: JsonOption = False) -> None:
    """Learn from a chunk; what passes the gate goes live."""
    from app.jobs import worker

    settings = settings_for(home)
    options = checked_options(asked)
    if asked.cancel is not None:
        job = worker.cancel(settings, asked.cancel)
        show(is_json, job_document(job), f"{job.id} is {job.state}. `--resume {job.id}` goes on with it.")
        return
    if asked.resume is not None:
        watch(settings, worker.resume(settings, asked.resume), is_json=is_json)
        return
    _check_strategy(asked.strategy, options)
    if asked.source is not None:
        worker.refuse_second_update(settings)  # before anything is taken in
        chunk = _take_in(settings, asked.source, asked.language, asked.domain, is_json)
    else:
        chunk = _known(settings, str(asked.chunk))
    queued = _queued(asked, chunk, options, home, is_json=is_json)
    if queued is not None:
        watch(settings, queued, is_json=is_json)


def checked_options(asked: UpdateOptions) -> dict[str, str]:
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
    return pairs_of(asked.option, "--option", "epochs=5")


def _queued(
    asked: UpdateOptions, chunk: str, options: dict[str, str], home: Path | None, *, is_json: bool
) -> JobRecord | None:
    """Queues the update and returns its job; with --dry-run, shows what it would take, and queues nothing."""
    with workspace_for(home) as workspace:
        from app.desk.jobs import UpdateRequest
        from app.jobs.requests import update_job
        from app.learning.fitting import require_fit
        from app.learning.forecast import forecast
        from app.learning.lessons import choose_strategy

        request = UpdateRequest(
            chunk=chunk,
            strategy=asked.strategy,
            options=options,
            seed=asked.seed,
            promote=asked.promote,
            why=asked.why,
            by=who(),
        )
        require_fit(workspace, request)
        if not asked.dry_run:
            return update_job(workspace, request)
        found = forecast(workspace, request)
        show_forecast(found, *choose_strategy(workspace, chunk), is_json=is_json)
        return None


def show_forecast(found: Forecast, recommended: str, why: str, *, is_json: bool) -> None:
    """Shows what an update would take, and which strategy is recommended."""
    from app.words.forecast import forecast_sentences
    from app.words.messages import plain

    document = found.to_json() | {"recommended": recommended, "why": why}
    chosen = f"{found.strategy} would teach it."
    if found.strategy != recommended:
        chosen += f" {recommended} is recommended."
    show(is_json, document, plain(f"{chosen} {recommended}: {why}"), *map(plain, forecast_sentences(found)))


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
    release: Annotated[
        str | None, typer.Option(help="Measure this release, not the live one.", show_default=False)
    ] = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Measure recall on today's held-out pairs."""
    with workspace_for(home) as workspace:
        from app.learning import going_live
        from app.learning.slices import summaries
        from app.words import messages

        record = workspace.releases.release(release) if release else going_live.live_release(workspace)[1]
        slices = summaries(going_live.evaluate(workspace, record.id))
    title = f"Recall of {record.id} in percent, text to image"
    found: Any = messages.slices_table(slices, title=title) if slices else "There are no held-out pairs yet."
    show(is_json, {"release": record.id, "slices": [part.to_json() for part in slices]}, found)


def _check_strategy(strategy: str | None, options: dict[str, str]) -> None:
    """Refuses what cannot work before anything is taken in."""
    if strategy is None:
        if options:
            raise UsageProblem(
                "--option belongs to a strategy; name it with --strategy. `methods` lists them."
            )
        return
    from model_updates.options import options_of
    from model_updates.strategies import strategy_named

    options_of(strategy_named(strategy), options)


def _known(settings: Settings, chunk: str) -> str:
    from app.home.folder import Home
    from ingest.catalog import Catalog

    with Catalog.open(Home.open(settings.home).require_stores().catalog) as catalog:
        return catalog.chunk(chunk).id


def _take_in(
    settings: Settings, source: Path, language: str | None, domain: str | None, is_json: bool
) -> str:
    from ingest.intake import IntakeOptions

    with workspace_for(settings.home) as workspace:
        outcome = add(workspace, source, IntakeOptions(language=language, domain=domain), is_quiet=is_json)
        chunk = workspace.catalog.chunk(outcome.report.chunk_id)
    if not is_json:
        show(False, None, *added_lines(outcome, chunk))
    return outcome.report.chunk_id


def watch(settings: Settings, job: JobRecord, *, is_json: bool) -> None:
    """Follows a job that trains to its end and leaves with its exit code; Ctrl-C stops the job too."""
    from app.jobs import worker
    from app.words import messages

    try:
        with messages.progress_bar(is_quiet=is_json) as move:
            done = worker.follow(
                settings,
                job.id,
                lambda row: move(
                    str(row.progress.get("name", row.state)),
                    str(row.progress.get("message", "waiting for its process")),
                    row.progress.get("fraction"),
                ),
            )
    except KeyboardInterrupt:
        worker.cancel(settings, job.id)
        raise AppError(
            f"Stopped {job.id}. `python -m app update --resume {job.id}` goes on from its last checkpoint.",
            exit_code=130,
        ) from None
    _finish(done, is_json=is_json)


def _finish(done: JobRecord, *, is_json: bool) -> None:
    resumed = f"`python -m app update --resume {done.id}` goes on with it."
    show_end(done, otherwise=f"Job {done.id} is {done.state}. {resumed}", is_json=is_json)


def show_end(done: JobRecord, *, otherwise: str, is_json: bool) -> None:
    """Shows how training ended, and leaves with the exit code of its verdict.

    Raises:
        JobFailed: there is none; with the job's own sentence, or `otherwise`.
    """
    from app.words import messages

    if done.state not in EXIT_CODES:
        raise JobFailed(done.error or otherwise, done.result)
    show(is_json, job_document(done), *messages.outcome(done))
    raise typer.Exit(EXIT_CODES[done.state])


def job_document(job: JobRecord) -> dict[str, Any]:
    """Returns a job as `--json` shows it, with what came of it."""
    return {"job": job.id, "state": job.state, "error": job.error, **job.result}
