"""Verbs about learning: update, methods, evaluate, gate."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.options import (
    ProbesOption,
    StatedDomain,
    StatedLanguage,
    WhyOption,
    argument,
    option,
    source_path,
)
from app.commands.terminal import JsonOption, pairs_of, show, staged, watched
from app.commands.verb import Shown, verb
from app.desk.errors import JobFailed, UsageProblem
from app.words import messages

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.desk.jobs import Forecast, StartUpdate
    from ingest.records import JobRecord

EXIT_CODES = {"succeeded": 0, "rejected": 3, "review": 4}


@dataclass(frozen=True, kw_only=True)
class UpdateOptions:
    """What `update` learns from, and how."""

    source: Annotated[
        Path | None, argument("Take this in first, then learn from it.", "SOURCE", parser=source_path)
    ] = None
    chunk: Annotated[str | None, option(says="Learn from a chunk that is in already.")] = None
    language: StatedLanguage = None
    domain: StatedDomain = None
    strategy: Annotated[str | None, option(says="See `methods`; chosen by the chunk when not given.")] = None
    options: Annotated[list[str] | None, option("--option", says="Of the strategy: key=value.")] = None
    seed: Annotated[int, typer.Option(help="Of every random choice.", min=0, max=2**31 - 1)] = 0
    promote: Annotated[bool, typer.Option(help="Make it live when it passes the gate.")] = True
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what it would take, with --chunk, and start nothing.")
    ] = False
    why: WhyOption = ""
    resume: Annotated[str | None, option(says="Go on with a stopped job.", metavar="JOB")] = None
    cancel: Annotated[str | None, option(says="Stop a running job.", metavar="JOB")] = None


@verb
def update(desk: Desk, asked: UpdateOptions, is_json: JsonOption = False) -> Shown | None:
    """Learn from a chunk.

    What passes the gate goes live.
    """
    options = _checked_options(asked)
    if asked.cancel is not None:
        job = desk.cancel(asked.cancel)
        return _document(job), f"{job.id} is {job.state}. `--resume {job.id}` goes on with it."
    if asked.resume is not None:
        job = desk.resume(asked.resume)
    else:
        request = _request(asked, options)
        if asked.dry_run:
            return _forecast(desk.forecast(request))
        desk.require_update(request)  # before anything is taken in
        if asked.source is not None:
            request = _taken_in(desk, asked, request, is_json=is_json)
        job = desk.update(request)
    show_end(watched(desk, job, is_json=is_json), is_json=is_json)
    return None


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
    options = pairs_of(asked.options, "--option", "epochs=5")
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


def _forecast(found: Forecast) -> Shown:
    """Says what an update would take, and which strategy is recommended."""
    from app.words.forecast import forecast_sentences

    if found.misfit:
        raise UsageProblem(found.misfit)
    chosen = f"{found.strategy} would teach it."
    if found.strategy != found.recommended:
        chosen += f" {found.recommended} is recommended."
    return found, f"{chosen} {found.recommended}: {found.why}", *forecast_sentences(found)


def show_end(done: JobRecord, *, is_json: bool) -> None:
    """Shows how training ended, and leaves with the exit code of its verdict.

    Raises:
        JobFailed: there is none; with the job's own sentence, name and exit code.
    """
    if done.state not in EXIT_CODES:
        raise JobFailed(done)
    show(is_json, _document(done), *messages.outcome(done))
    raise typer.Exit(EXIT_CODES[done.state])


def _document(job: JobRecord) -> dict[str, Any]:
    """Returns a job as `--json` shows it, with what came of it."""
    return {"job": job.id, "state": job.state, "error": job.error, **job.result}


def methods(
    name: Annotated[str | None, argument("Show this one alone, with its options.")] = None,
    is_json: JsonOption = False,
) -> None:
    """List the strategies, or show one.

    What each does, trains, keeps and costs, and what it asks of gallery and query.
    """
    from app.words import strategies as strategy_words
    from model_updates.references import REFERENCES
    from model_updates.strategy_pages import document, every_strategy, facts_named

    if name is not None:
        strategy = facts_named(name)
        show(is_json, asdict(strategy), *strategy_words.one(strategy))
        return
    strategies = every_strategy()
    show(is_json, document(strategies, REFERENCES), *strategy_words.everything(strategies, REFERENCES))


@verb
def evaluate(
    desk: Desk,
    release: Annotated[str | None, option(says="Measure this release, not the live one.")] = None,
    probes: ProbesOption = False,
) -> Shown:
    """Measure recall on today's held-out pairs."""
    found = desk.evaluate(release, probes)
    title = f"Recall of {found.release} in percent, text to image"
    none = "There are no held-out pairs of your own yet; `--probes` measures the built-in checks."
    return found, messages.slices_table(found.slices, title=title) if found.slices else none


@verb
def gate(
    desk: Desk,
    name: Annotated[str, argument("A release, such as r3, or an update's job, such as j7.", "JOB|RELEASE")],
    probes: ProbesOption = False,
) -> Shown:
    """Show why an update passed, or did not."""
    from app.words.gate import gate_parts
    from app.words.own_report import shown_report
    from app.words.verdict import verdict_sentences

    found = desk.job_verdict(name) if name[:1] == "j" else desk.release(name).judged
    report = found.gate if found.gate is None or probes else shown_report(found.gate)
    if report is None:
        return found, found.sentence
    told = messages.plain(" ".join(verdict_sentences(report)))
    return found, told, "", found.sentence, *gate_parts(report, messages.console().width)
