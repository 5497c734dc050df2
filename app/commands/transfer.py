"""Verbs that carry a release from one home to another: export and import."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.options import ChecksumOption, ExportOption, PackageArgument, ReleaseArgument
from app.commands.terminal import HomeOption, JsonOption, show, workspace_for


def export(
    release: ReleaseArgument,
    to: ExportOption = Path(),
    open_clip: Annotated[
        bool,
        typer.Option("--open-clip", help="Write the encoder alone, into a new folder for plain open_clip."),
    ] = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Write a release into one file for another home, or its encoder for plain open_clip."""
    with workspace_for(home) as workspace:
        from app.learning.transfer import export_release, export_to_open_clip

        if open_clip:
            from app.words.messages import size

            folder = export_to_open_clip(workspace, release, to)
            opened = f'open_clip.create_model_and_transforms("local-dir:{folder.path.absolute()}")'
            said = [
                f"The encoder of {folder.release} is in {folder.path} ({size(folder.bytes)}).",
                f"There: {opened}",
            ]
            show(is_json, asdict(folder), *said)
            return
        written = export_release(workspace, release, to)
    show_export(asdict(written), is_json=is_json)


def show_export(written: Mapping[str, Any], *, is_json: bool) -> None:
    """Shows where a package is and its checksum: the fields of `app.learning.transfer.Exported`."""
    from app.words.messages import plain, size

    path, sha256 = Path(written["path"]), written["sha256"]
    show(
        is_json,
        written,
        plain(f"{written['release']} is in {path} ({size(written['bytes'])})."),
        f"Tell the receiver by another way: {sha256}",
        plain(f"There: `python -m app import {path.name} --sha256 {sha256}`"),
    )


def import_(
    source: PackageArgument,
    sha256: ChecksumOption = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Take a release of another home in; it is not live before somebody promotes it."""
    with workspace_for(home) as workspace:
        from app.learning.transfer import import_release
        from app.words.messages import progress_bar

        with progress_bar(is_quiet=is_json) as move:
            came = import_release(
                workspace,
                source,
                sha256=sha256,
                progress=lambda stage: move(stage.name, stage.message, stage.fraction),
            )
    show_import(asdict(came), is_checked=sha256 is not None, is_json=is_json)


def show_import(came: Mapping[str, Any], *, is_checked: bool, is_json: bool) -> None:
    """Shows what came: the fields of `app.learning.transfer.Imported`."""
    from app.words.messages import plain

    name, count = came["release"], came["images_embedded"]
    said = [
        f"{came['origin']} is here as {name}, not live; {count} pictures were embedded.",
        f"Languages: {', '.join(came['languages'])}",
        f"Look at it with `python -m app search WORDS --release {name}` and `compare`, then "
        f"`python -m app promote {name}`.",
    ]
    if not is_checked:
        said.insert(
            1,
            "Its parts are as its manifest says; --sha256 would have proved that it is the one that was sent.",
        )
    show(is_json, came, *map(plain, said))
