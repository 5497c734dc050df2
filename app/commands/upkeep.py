"""Verbs that look after a home or a server: status, index, doctor, repair, backup, restore, replay."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from app.commands.options import ProbesOption, ReleaseArgument, argument, option
from app.commands.terminal import HomeOption, JsonOption, require_place, settings_for, show, staged, watched
from app.commands.verb import Shown, verb
from app.desk.errors import JobFailed
from app.words.messages import size, slices_table, table

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.desk.health import Live, Status
    from ingest.records import ChunkRecord, JobRecord


class FailOn(StrEnum):
    """From which level on the exit code is 1."""

    ERROR = "error"
    WARN = "warn"
    NEVER = "never"


@verb
def status(
    desk: Desk,
    verify: Annotated[bool, typer.Option("--verify", help="Read every byte of every release too.")] = False,
    probes: ProbesOption = False,
) -> Shown:
    """Show what is live, chunks, jobs and disk.

    Also what the live release knows.
    """
    from app.desk.operation import document_of

    found = desk.status(probes)
    damaged = desk.verify() if verify else None
    document = {"where": desk.where, **document_of(found)}
    if damaged is not None:
        document["damaged"] = damaged
    return document, *_lines(desk.where, found, damaged), *_tables(found)


def _lines(where: str, found: Status, damaged: Sequence[str] | None) -> list[str]:
    lines = [where, *_live_lines(found.live)]
    for one in found.degraded:
        mends = f"; `{one.mend}` mends it" if one.mend else ""
        lines.append(f"{one.what} Since {one.since}{mends}.")
    if damaged is not None:
        lines += damaged or ["Every byte of every release is as it was written."]
    lines.append(", ".join(f"{count} {name}" for name, count in found.counts.items()) + ".")
    if found.updating:
        since = f"since {found.updating.since} ({found.updating.what})"
        lines.append(f"Process {found.updating.pid} holds the updater lock {since}.")
    if found.catalog:
        lines.append(f"The catalog lies in {found.catalog}.")
    if found.objects:
        lines.append(f"Pictures and releases lie in {found.objects}.")
    lines.append(f"Disk: {size(found.used_bytes)} used, {size(found.free_bytes)} free.")
    return lines


def _live_lines(live: Live | None) -> list[str]:
    if live is None:
        return ["Nothing is live yet. Run `perennial init`."]
    if not live.release:
        return ["Nothing released here can be trusted."]
    return [
        f"Live: {live.release} since {live.since}, commit {live.commit} by {live.by}: {live.why}",
        f"Languages: {', '.join(live.languages)}",
        *([f"Torch searches it, not its graphs: {live.needs_torch}."] if live.needs_torch else []),
    ]


def _tables(found: Status) -> list[Any]:
    tables = []
    if found.live and found.live.slices:
        title = f"Recall of {found.live.release} in percent"
        tables.append(slices_table(found.live.slices, title=title))
    if found.chunks:
        header = ("chunk", "name", "pairs", "pictures", "languages", "standing")
        tables.append(table(header, map(_chunk_row, found.chunks)))
    if found.jobs:
        tables.append(table(("job", "kind", "state", "created", "about"), map(_job_row, found.jobs)))
    return tables


def _chunk_row(one: ChunkRecord) -> tuple[object, ...]:
    standing = one.standing + (", measures" if one.measures else "")
    return one.id, one.name, one.pairs, one.images, ", ".join(one.languages), standing


def _job_row(job: JobRecord) -> tuple[object, ...]:
    return job.id, job.kind, job.state, job.created[:19], job.error or job.progress.get("message", "")


@verb
def index(
    desk: Desk,
    asked: Annotated[Literal["status"], argument("What is asked: how it stands.", "[status]")] = "status",
) -> Shown:
    """Show the index: its kind, why, its segments.

    Also what a search of it takes, and how much it keeps of what comparing all pictures finds.
    """
    found = desk.index()
    taken = "not measured" if found.milliseconds is None else f"{found.milliseconds:g} ms"
    kept = "not measured" if found.kept is None else f"{100 * found.kept:.1f} %"
    lines = [
        f"Index of {found.release}: {found.kind}. {found.why}",
        f"{found.pictures:,} pictures, {100 * found.taken_out_share:.1f} % taken out, {size(found.bytes)}.",
        f"A search by itself: {taken}. Kept of what comparing all finds: {kept}.",
    ]
    header = ("segment", "kind", "vectors", "taken out", "looks through", "kept", "size")
    rows = [
        (one.number, one.kind, one.vectors, one.taken_out, one.parameters or "all", one.kept, size(one.bytes))
        for one in found.segments
    ]
    return found, *lines, table(header, rows)


@verb
def doctor(
    desk: Desk,
    fail_on: Annotated[FailOn, typer.Option(help="From which level on the exit code is 1.")] = FailOn.ERROR,
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare sizes; do not read every file and picture.")
    ] = False,
    html: Annotated[Path | None, option(says="Write the examination as one HTML file too.")] = None,
    is_json: JsonOption = False,
) -> None:
    """Look for everything that can be wrong.

    Nothing is changed.
    """
    from app.desk.health import Level
    from app.desk.operation import document_of
    from app.doctor.page import html_page

    if html is not None:
        require_place(html, "--html")
    with staged(is_json=is_json) as tell:
        examination = desk.examine(not quick, tell)
    found = examination.found
    if html is not None:
        when = datetime.now(UTC).isoformat(" ", "seconds").removesuffix("+00:00")
        html.write_text(html_page(desk.where, found, when), encoding="utf-8")
    rows = [(one.check, str(one.level), " ".join(filter(None, (one.sentence, one.advice)))) for one in found]
    document = {"home": desk.where, **document_of(examination)}
    show(is_json, document, table(("looked at", "level", "found"), rows), examination.sentence)
    levels = list(Level)
    if fail_on is not FailOn.NEVER and levels.index(examination.level) >= levels.index(Level(fail_on)):
        raise typer.Exit(1)


@verb
def repair(
    desk: Desk,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be done and how long it takes; change nothing.")
    ] = False,
    is_json: JsonOption = False,
) -> Shown:
    """Mend what is damaged, as far as it can be.

    An index is made again of vectors that are kept. Where weights are damaged, the newest release that is whole goes
    live, with all pictures. A damaged catalog is taken from its copy.
    """
    found = desk.repair_plan()
    if plan or not found.steps:
        steps = found.steps or ["Nothing of what is live is damaged."]
        return found, *steps, *([found.bucket] if found.bucket else [])
    if not is_json:
        show(is_json, None, *found.steps)
    done = watched(desk, desk.repair(), is_json=is_json)
    if done.state != "succeeded":
        raise JobFailed(done)
    return done.result, done.result["sentence"]


def backup(
    to: Annotated[Path, argument("A folder, best on another disk; each backup is a folder in it.", "TO")],
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Write all of a home into a folder.

    A server of it, updates and uploads go on meanwhile. What an earlier backup there has is not written again.
    """
    settings = settings_for(home)
    from app.home.backup import write_backup
    from app.home.folder import Home

    with staged(is_json=is_json) as tell:
        done = write_backup(Home.open(settings.home), to, tell)
    lost = [f"{done.damaged} records of its stores are damaged and not in it; see `perennial doctor`."]
    strange = [f"Not in it, because no backup has such names: {', '.join(done.left_out)}."]
    show(
        is_json,
        done,
        f"{done.path} holds everything; {done.release} is live in it. {size(done.bytes)}, of which "
        f"{size(done.new_bytes)} are new.",
        *([_passed_over(done.passed_over)] if done.passed_over else []),
        *(lost if done.damaged else []),
        *(strange if done.left_out else []),
        *([f"The password file is not in it: {settings.password_file}"] if settings.password_file else []),
        f"There: `perennial restore {done.path.name} --sha256 {done.sha256} --home NEW`",
    )


def restore(
    source: Annotated[
        Path, argument("What `backup` wrote, or the folder that holds several: the newest.", "FROM")
    ],
    sha256: Annotated[
        str | None, option("--sha256", says="What writing it showed; then not one byte was exchanged.")
    ] = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Make a home of a backup.

    Every byte is compared with its checksum, and what is live is tried. A home that is there is not touched.
    """
    settings = settings_for(home)
    from app.home.folder import home_option
    from app.learning.restoring import restore as made_of

    with staged(is_json=is_json) as tell:
        done = made_of(settings, source, sha256=sha256, tell=tell)
    jobs = f"Jobs that had not ended, and do not go on: {', '.join(done.ended_jobs)}."
    show(
        is_json,
        done,
        f"{done.home} is as the home was at {done.written}; {done.release} is live ({size(done.bytes)}).",
        *([_passed_over(done.passed_over)] if done.passed_over else []),
        *([jobs] if done.ended_jobs else []),
        f"Next: `perennial doctor{home_option(done.home)}`, then `perennial serve{home_option(done.home)}`.",
    )


def _passed_over(why: str) -> str:
    return f"What went live last is damaged there: {why} `perennial repair` mends the home, where it can be mended."


def replay(release: ReleaseArgument, home: HomeOption = None, is_json: JsonOption = False) -> None:
    """Train a release again, and compare.

    From the data, options and seed that are recorded of it. The exit code is 1 where the result is another one; then it
    says what differs, and in what this machine is not the one of then. Nothing in the home changes.
    """
    settings = settings_for(home)
    from app.home.workspace import Workspace
    from app.learning.replaying import replay as replayed
    from app.words.replay import replay_lines

    os.nice(settings.niceness)  # as an update: a server may run beside it
    with Workspace.open(settings, read_only=True) as workspace, staged(is_json=is_json) as tell:
        found = replayed(workspace, release, tell)
    show(is_json, found, *replay_lines(found))
    if not found.is_identical:
        raise typer.Exit(1)
