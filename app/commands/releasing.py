"""Verbs about releases: what there is, what is live, what a person says of one, pruning, export and import."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from app.commands.options import ReleaseArgument, WhyOption, argument, option, release_names
from app.commands.terminal import JsonOption, require_place, staged
from app.commands.verb import Shown, verb
from app.desk.errors import UsageProblem
from app.words.messages import left_out_line, size, table

if TYPE_CHECKING:
    from app.desk.desk import Desk
    from app.desk.releases import WentLive
    from app.desk.tables import TableKind
    from ingest.release_words import ReleaseWord


@verb
def releases(
    desk: Desk,
    lineage: Annotated[
        bool, typer.Option("--lineage", help="Draw where each comes from, and say when it was live and why.")
    ] = False,
) -> Shown:
    """List the releases, newest first."""
    if lineage:
        from app.words.lineage import lineage_lines

        nodes = desk.lineage()
        return nodes, *lineage_lines(nodes)
    found = desk.releases()
    rows = [
        (one.id, "live" if one.live else "pruned" if one.pruned else "", str(one.created)[:19])
        + (one.strategy, one.mode, one.verdict, ", ".join(one.languages))
        for one in found
    ]
    header = ("release", "", "created", "strategy", "mode", "verdict", "languages")
    return found, table(header, rows) if rows else "There are none yet. Run `perennial init`."


@verb
def promote(
    desk: Desk,
    release: ReleaseArgument,
    why: WhyOption = "",
    force: Annotated[
        bool, typer.Option("--force", help="Even if the gate asks for a review; then --why says why.")
    ] = False,
) -> Shown:
    """Make a release live."""
    return _went_live(desk.promote(release, why, force))


@verb
def rollback(
    desk: Desk,
    release: Annotated[
        str | None,
        argument("Where to; the one live before when not given.", autocompletion=release_names),
    ] = None,
    why: WhyOption = "",
) -> Shown:
    """Go back to an earlier release."""
    return _went_live(desk.roll_back(release, why))


def _went_live(done: WentLive) -> Shown:
    said = f"{done.release} is live (commit {done.commit}, {done.reason})."
    return done, f"{said} {left_out_line(done.left_out, done.job)}".rstrip()


@verb
def diff(desk: Desk, a: ReleaseArgument, b: ReleaseArgument) -> Shown:
    """Show what two releases differ in.

    What they know, what is read and seen differently, recall.
    """
    from app.words.difference import SLICE_HEADERS, difference_sentences, slice_rows

    found = desk.difference(a, b)
    rows = slice_rows(found)
    shown = [table(SLICE_HEADERS, rows, title="Mean of R@1, R@5 and R@10 in percent")] if rows else []
    return found, f"A {found.a}, B {found.b}", *difference_sentences(found), *shown


@verb
def drift(
    desk: Desk,
    a: ReleaseArgument,
    b: ReleaseArgument,
    pairs: Annotated[int, typer.Option(min=2, max=2000, help="Most held-out pairs to look at.")] = 2000,
) -> Shown:
    """Show how far two releases' vectors turned.

    Also whether both towers turned together.
    """
    from app.words.drift import drift_lines

    found = desk.drift(a, b, pairs)
    return found, *drift_lines(asdict(found))


@verb
def reject(desk: Desk, release: ReleaseArgument, why: WhyOption = "") -> Shown:
    """Reject a candidate, with a note.

    Promoting it then needs --force.
    """
    return _word(desk.reject(release, why))


@verb
def keep(desk: Desk, release: ReleaseArgument, why: WhyOption = "") -> Shown:
    """Keep a candidate for later, with a note.

    Takes a rejection back.
    """
    return _word(desk.keep(release, why))


@verb
def pin(desk: Desk, why: WhyOption = "") -> Shown:
    """Pin what is live.

    Updates that pass wait until somebody unpins it.
    """
    return _word(desk.pin(why))


@verb
def unpin(desk: Desk, why: WhyOption = "") -> Shown:
    """Take the pin away."""
    return _word(desk.unpin(why))


def _word(word: ReleaseWord) -> Shown:
    why = f": {word.why}" if word.why else ""
    return word, f"{word.release} is {word.said}{why}."


@verb
def shadow(
    desk: Desk,
    release: ReleaseArgument,
    share: Annotated[
        float | None, option("--share", says="Of the live queries, such as 0.2 for one in five.")
    ] = None,
    stop: Annotated[bool, typer.Option("--stop", help="End it; what it has shown is kept.")] = False,
    report: Annotated[bool, typer.Option("--report", help="Only show what it has shown so far.")] = False,
    why: WhyOption = "",
) -> Shown:
    """Ask a candidate live queries, unseen.

    It is asked in the background; shows how its answers differ.
    """
    from app.words.shadow import HEADERS, line_cells, shadow_sentences

    if (stop and report) or (share is not None and (stop or report)):
        raise UsageProblem(
            "--stop ends the shadow and --report only shows it; choose one of them, without --share."
        )
    if stop:
        told = desk.stop_shadow(release, why)
    else:
        told = desk.shadow(release) if report else desk.start_shadow(release, share)
    lines = [*told.languages, *([told.total] if told.total and len(told.languages) > 1 else [])]
    shown = [table(HEADERS, [line_cells(line) for line in lines])] if lines else []
    return told, *shadow_sentences(told), *shown


@verb
def prune(
    desk: Desk,
    keep: Annotated[int, typer.Option("--keep", min=0, help="How many of the newest stay.")] = 5,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it is only shown.")] = False,
    why: WhyOption = "",
) -> Shown:
    """Remove old releases, to free room.

    What is live or needed stays, and so do the reports and the history of what goes.
    """
    plan = desk.prune_plan(keep)
    rows = [
        (one.release, one.version, one.created[:19], "was live" if one.was_live else "") for one in plan.going
    ]
    told: list[Any] = [table(("goes", "encoder", "created", ""), rows)] if rows else []
    told += [f"{one.release} stays: {one.why}" for one in plan.staying]
    nothing = "There is nothing to prune."
    if not (plan.going or plan.folders or yes):
        return plan, *told, nothing
    if not yes:
        room = f"{plan.sentence} That leaves {size(plan.bytes)}."
        return plan, *told, room, f"Nothing was removed yet: `perennial prune --keep {keep} --yes` does it."
    done = desk.prune([one.release for one in plan.going], keep, why)
    # Of an index that an engine searches, there may be some left of releases that were pruned before.
    return done, *told, f"{done.sentence} {size(done.bytes)} are free again." if done.folders else nothing


@verb
def export(
    desk: Desk,
    what: Annotated[
        str,
        argument(
            "A release, such as r3, or a table: vectors, captions, measurements.",
            "RELEASE|TABLE",
            autocompletion=release_names,
        ),
    ],
    to: Annotated[
        Path,
        typer.Option(
            "--to",
            help="A folder, or a file that ends in .perennial; of a table in .parquet, .csv or .jsonl.",
        ),
    ] = Path(),
    release: Annotated[
        str | None, option(says="Of a table: not of the live one.", autocompletion=release_names)
    ] = None,
    paths: Annotated[bool, typer.Option("--paths", help="With vectors: where the pictures lie.")] = False,
    open_clip: Annotated[
        bool,
        typer.Option("--open-clip", help="Write the encoder alone, into a new folder for plain open_clip."),
    ] = False,
) -> Shown:
    """Write a release or a table into one file.

    A release for another home, its encoder for plain open_clip, or a table for other programs.
    """
    from app.desk.tables import TableKind

    if what in get_args(TableKind):
        return _exported_table(desk, cast(TableKind, what), to, release, paths=paths)
    if what == "onnx" and not paths:
        return _exported_to_onnx(desk, to, release)
    if release is not None or paths:
        raise UsageProblem(
            "--release and --paths are of a table; name one: vectors, captions or measurements."
        )
    if open_clip:
        return _exported_to_open_clip(desk, what, to)
    written = desk.export(what, to)
    return (
        written,
        f"{written.release} is in {written.path} ({size(written.bytes)}).",
        f"Tell the receiver its checksum, which `sha256sum` gives too, by another way: {written.sha256}",
        f"There: `perennial import {written.path.name} --sha256 {written.sha256}`",
    )


def _exported_table(desk: Desk, what: TableKind, to: Path, release: str | None, *, paths: bool) -> Shown:
    from app.desk.tables import MEDIA

    form = next((one for one in MEDIA if to.suffix == f".{one}" and not to.is_dir()), None)
    if form is None and not to.is_dir():
        raise UsageProblem(
            f"{to} is no folder, and no file that ends in .{', .'.join(MEDIA)}; name one with --to."
        )
    if form is not None:
        require_place(to, "--to")
    table = desk.table(what, form or "parquet", release, paths)
    file = to / table.name if form is None else to
    if file.exists():
        raise UsageProblem(f"{file} is there already; name another place with --to.")
    file.write_bytes(table.data)
    return {"path": file, "bytes": len(table.data)}, f"{file} is written ({size(len(table.data))})."


def _exported_to_onnx(desk: Desk, to: Path, release: str | None) -> Shown:
    from app.commands.beside import Beside

    if not isinstance(desk, Beside):
        raise UsageProblem("onnx works on a home on this machine. Export the release, and import it here.")
    written = desk.export_to_onnx(release, to, lambda file: typer.echo(f"… {file}", err=True))
    said = f"The encoder of {written.release} is in {written.path} ({size(written.bytes)}); its README.md says more."
    return written, said


def _exported_to_open_clip(desk: Desk, release: str, to: Path) -> Shown:
    from app.commands.beside import Beside

    if not isinstance(desk, Beside):
        raise UsageProblem(
            "--open-clip works on a home on this machine. Export the release, and import it here."
        )
    folder = desk.export_to_open_clip(release, to)
    opened = f'open_clip.create_model_and_transforms("local-dir:{folder.path.absolute()}")'
    said = f"The encoder of {folder.release} is in {folder.path} ({size(folder.bytes)})."
    return folder, said, f"There: {opened}"


@verb
def import_(
    desk: Desk,
    source: Annotated[Path, argument("A file that `export` wrote.")],
    sha256: Annotated[
        str | None,
        option("--sha256", says="What its export printed, or `sha256sum` of the file that was sent."),
    ] = None,
    is_json: JsonOption = False,
) -> Shown:
    """Take a release of another home in.

    It is not live before somebody promotes it.
    """
    with staged(is_json=is_json) as tell:
        came = desk.import_release(source, sha256, tell)
    unchecked = (
        "Its parts are as its manifest says; --sha256 would have shown that it is the one that was sent."
    )
    return (
        came,
        f"{came.origin} is here as {came.release}, not live; {came.images_embedded} pictures were embedded.",
        *([] if sha256 else [unchecked]),
        f"Languages: {', '.join(came.languages)}",
        f"Look at it with `perennial search WORDS --release {came.release}` and `compare`, then "
        f"`perennial promote {came.release}`.",
    )
