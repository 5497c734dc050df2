"""Verbs about releases: releases, promote, rollback, diff, drift, reject, keep, pin, unpin, shadow, export, import."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app.commands.options import (
    BackToArgument,
    DriftPairsOption,
    ExportOption,
    ForceOption,
    LineageOption,
    PackageArgument,
    ReleaseArgument,
    Sha256Option,
    WhyOption,
)
from app.commands.terminal import HomeOption, JsonOption, desk_for, server_of, settings_for, show, staged, who
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.desk.opinions import ShadowReport
    from app.desk.releases import Imported, ListedRelease, WentLive
    from ingest.release_words import ReleaseWord

StopOption = Annotated[bool, typer.Option("--stop", help="End it; what it has shown is kept.")]
ReportOption = Annotated[bool, typer.Option("--report", help="Only show what it has shown so far.")]
ShareOption = Annotated[
    float | None,
    typer.Option("--share", help="Of the live queries, such as 0.2 for one in five.", show_default=False),
]
OpenClipOption = Annotated[
    bool, typer.Option("--open-clip", help="Write the encoder alone, into a new folder for plain open_clip.")
]


def releases(
    context: typer.Context,
    lineage: LineageOption = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """List the releases, newest first."""
    with desk_for(context, home) as desk:
        if lineage:
            from app.words.lineage import lineage_lines

            nodes = desk.lineage()
            show(is_json, nodes, *lineage_lines(nodes))
        else:
            _show_releases(desk.releases(), is_json=is_json)


def _show_releases(found: Sequence[ListedRelease], *, is_json: bool) -> None:
    from app.words.messages import table

    rows = [
        (one.id, "live" if one.live else "", str(one.created)[:19])
        + (one.strategy, one.mode, one.verdict, ", ".join(one.languages))
        for one in found
    ]
    header = ("release", "", "created", "strategy", "mode", "verdict", "languages")
    show(is_json, found, table(header, rows) if rows else "There are none yet. Run `python -m app init`.")


def promote(
    context: typer.Context,
    release: ReleaseArgument,
    why: WhyOption = "",
    force: ForceOption = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Make a release live."""
    with desk_for(context, home) as desk:
        _show_live(desk.promote(release, why, force), is_json=is_json)


def rollback(
    context: typer.Context,
    release: BackToArgument = None,
    why: WhyOption = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Go back to an earlier release."""
    with desk_for(context, home) as desk:
        _show_live(desk.roll_back(release, why), is_json=is_json)


def _show_live(done: WentLive, *, is_json: bool) -> None:
    from app.words.messages import left_out_line

    said = f"{done.release} is live (commit {done.commit}, {done.reason})."
    show(is_json, done, f"{said} {left_out_line(done.left_out, done.job)}".rstrip())


def diff(
    context: typer.Context,
    a: ReleaseArgument,
    b: ReleaseArgument,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what two releases differ in: what they know, what is read and seen differently, recall."""
    from app.words.difference import SLICE_HEADERS, difference_sentences, slice_rows
    from app.words.messages import plain, table

    with desk_for(context, home) as desk:
        found = desk.difference(a, b)
    rows = slice_rows(found)
    said = [plain(one) for one in difference_sentences(found)]
    shown = [table(SLICE_HEADERS, rows, title="Mean of R@1, R@5 and R@10 in percent")] if rows else []
    show(is_json, found, f"A {found.a}, B {found.b}", *said, *shown)


def drift(
    context: typer.Context,
    a: ReleaseArgument,
    b: ReleaseArgument,
    pairs: DriftPairsOption = 2000,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show how far the vectors of two releases have turned, and whether both towers turned together."""
    from app.words.drift import drift_lines

    with desk_for(context, home) as desk:
        found = desk.drift(a, b, pairs)
    show(is_json, found, *drift_lines(asdict(found)))


def reject(
    context: typer.Context,
    release: ReleaseArgument,
    why: WhyOption = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Reject a candidate with a note; promoting it then needs --force."""
    with desk_for(context, home) as desk:
        _show_word(desk.reject(release, why), is_json=is_json)


def keep(
    context: typer.Context,
    release: ReleaseArgument,
    why: WhyOption = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Keep a candidate for later, with a note; takes a rejection back."""
    with desk_for(context, home) as desk:
        _show_word(desk.keep(release, why), is_json=is_json)


def pin(
    context: typer.Context, why: WhyOption = "", home: HomeOption = None, is_json: JsonOption = False
) -> None:
    """Pin what is live: updates that pass wait until somebody unpins it."""
    with desk_for(context, home) as desk:
        _show_word(desk.pin(why), is_json=is_json)


def unpin(
    context: typer.Context, why: WhyOption = "", home: HomeOption = None, is_json: JsonOption = False
) -> None:
    """Take the pin away."""
    with desk_for(context, home) as desk:
        _show_word(desk.unpin(why), is_json=is_json)


def _show_word(word: ReleaseWord, *, is_json: bool) -> None:
    from app.words.messages import plain

    why = f": {word.why}" if word.why else ""
    show(is_json, word, plain(f"{word.release} is {word.said}{why}."))


def shadow(
    context: typer.Context,
    release: ReleaseArgument,
    share: ShareOption = None,
    stop: StopOption = False,
    report: ReportOption = False,
    why: WhyOption = "",
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Have a candidate asked live queries in the background, and show how its answers differ."""
    if (stop and report) or (share is not None and (stop or report)):
        raise UsageProblem(
            "--stop ends the shadow and --report only shows it; choose one of them, without --share."
        )
    with desk_for(context, home) as desk:
        if stop:
            told = desk.stop_shadow(release, why)
        else:
            told = desk.shadow(release) if report else desk.start_shadow(release, share)
    _show_shadow(told, is_json=is_json)


def _show_shadow(told: ShadowReport, *, is_json: bool) -> None:
    from app.words.messages import plain, table
    from app.words.shadow import HEADERS, line_cells, shadow_sentences

    lines = [*told.languages, *([told.total] if told.total and len(told.languages) > 1 else [])]
    shown = [table(HEADERS, [line_cells(line) for line in lines])] if lines else []
    show(is_json, told, *map(plain, shadow_sentences(told)), *shown)


def export(
    context: typer.Context,
    release: ReleaseArgument,
    to: ExportOption = Path(),
    open_clip: OpenClipOption = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Write a release into one file for another home, or its encoder for plain open_clip."""
    from app.words.messages import plain, size

    if open_clip:
        _export_to_open_clip(context, release, to, home, is_json=is_json)
        return
    with desk_for(context, home) as desk:
        written = desk.export(release, to)
    show(
        is_json,
        written,
        plain(f"{written.release} is in {written.path} ({size(written.bytes)})."),
        f"Tell the receiver its checksum by another way: {written.sha256}",
        plain(f"There: `python -m app import {written.path.name} --sha256 {written.sha256}`"),
    )


def _export_to_open_clip(
    context: typer.Context, release: str, to: Path, home: Path | None, *, is_json: bool
) -> None:
    from app.local.at_home import AtHome
    from app.words.messages import size

    if server_of(context) is not None:
        raise UsageProblem(
            "--open-clip works on a home on this machine. Export the release, and import it here."
        )
    with AtHome(settings_for(home), by=who()) as desk:
        folder = desk.export_to_open_clip(release, to)
    opened = f'open_clip.create_model_and_transforms("local-dir:{folder.path.absolute()}")'
    said = f"The encoder of {folder.release} is in {folder.path} ({size(folder.bytes)})."
    show(is_json, folder, said, f"There: {opened}")


def import_(
    context: typer.Context,
    source: PackageArgument,
    sha256: Sha256Option = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Take a release of another home in; it is not live before somebody promotes it."""
    with desk_for(context, home) as desk, staged(is_json=is_json) as tell:
        came = desk.import_release(source, sha256, tell)
    show(is_json, came, *_import_lines(came, is_checked=sha256 is not None))


def _import_lines(came: Imported, *, is_checked: bool) -> list[str]:
    from app.words.messages import plain

    name = came.release
    said = [
        f"{came.origin} is here as {name}, not live; {came.images_embedded} pictures were embedded.",
        f"Languages: {', '.join(came.languages)}",
        f"Look at it with `python -m app search WORDS --release {name}` and `compare`, then "
        f"`python -m app promote {name}`.",
    ]
    if not is_checked:
        said.insert(
            1,
            "Its parts are as its manifest says; --sha256 would have shown that it is the one that was sent.",
        )
    return list(map(plain, said))
