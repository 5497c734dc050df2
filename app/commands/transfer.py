"""Verbs that carry a release from one home to another: export and import."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from app.commands.terminal import HomeOption, JsonOption, show, workspace_for


def export(
    release: Annotated[str, typer.Argument(help="A release, such as r3.", show_default=False)],
    to: Annotated[Path, typer.Option("--to", help="A file, or a folder.")] = Path(),
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
        from app.messages import size

        if open_clip:
            folder = export_to_open_clip(workspace, release, to)
            opened = f'open_clip.create_model_and_transforms("local-dir:{folder.path.absolute()}")'
            said = [
                f"The encoder of {folder.release} is in {folder.path} ({size(folder.bytes)}).",
                f"There: {opened}",
            ]
            show(is_json, asdict(folder), *said)
            return
        written = export_release(workspace, release, to)
    show(
        is_json,
        asdict(written),
        f"{written.release} is in {written.path} ({size(written.bytes)}).",
        f"Tell the receiver by another way: {written.sha256}",
        f"There: `python -m app import {written.path.name} --sha256 {written.sha256}`",
    )


def import_(
    source: Annotated[Path, typer.Argument(help="A file that `export` wrote.", show_default=False)],
    sha256: Annotated[
        str | None, typer.Option(help="What its export printed; proves who sent it.", show_default=False)
    ] = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Take a release of another home in; it is not live before somebody promotes it."""
    with workspace_for(home) as workspace:
        from app.learning.transfer import import_release
        from app.messages import progress_bar

        with progress_bar(is_quiet=is_json) as move:
            came = import_release(
                workspace,
                source,
                sha256=sha256,
                progress=lambda stage: move(stage.name, stage.message, stage.fraction),
            )
    said = [
        f"{came.origin} is here as {came.release}, not live; {came.images_embedded} pictures were embedded.",
        f"Languages: {', '.join(came.languages)}",
        f"Look at it with `python -m app search WORDS --release {came.release}` and `compare`, then "
        f"`python -m app promote {came.release}`.",
    ]
    if sha256 is None:
        said.insert(
            1,
            "Its parts are as its manifest says; --sha256 would have proved that it is the one that was sent.",
        )
    show(is_json, asdict(came), *said)
