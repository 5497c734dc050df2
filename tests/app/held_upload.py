"""Uploads of which intake holds some rows and rejects others, for the tests of what a person decides."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.home.workspace import Workspace
from ingest.intake import IntakeOptions, ingest_source
from ingest.records import AsidePair
from ingest.samples.scene_painting import draw
from ingest.samples.scenes import all_scenes
from tests.ingest.material import encoded, zip_of

TABLE = "image,caption,language,domain\n1.png,a red boat,en,\n2.png,a green house,en,\n"


def held_upload(path: Path, *, seed: int, silent: Sequence[str] = ("3333", "4444", "5555")) -> Path:
    """Writes an upload of two pairs, some whose language nobody can tell, and one picture with an empty caption."""
    every = list(all_scenes())
    count = 3 + len(silent)
    pictures = {
        f"{n}.png": encoded(draw(every[(seed + n) * 37 % len(every)], "flat", seed=seed + n))
        for n in range(1, count + 1)
    }
    lines = [f'{n}.png,"{text}",,' for n, text in enumerate(silent, start=3)]
    files: dict[str, bytes | str] = {**pictures}
    files["captions.csv"] = TABLE + "\n".join([*lines, f"{count}.png,,en,"])
    return zip_of(path, files)


def put_in(
    workspace: Workspace,
    folder: Path,
    *,
    seed: int,
    silent: Sequence[str] = ("3333", "4444", "5555"),
    in_gallery: bool = True,
) -> tuple[str, list[AsidePair]]:
    """Takes such an upload in; returns the chunk and its pairs that wait."""
    report = ingest_source(
        held_upload(folder / f"{seed}.zip", seed=seed, silent=silent),
        catalog=workspace.catalog,
        blobs=workspace.blobs,
        options=IntakeOptions(in_gallery=in_gallery),
    )
    waiting = workspace.catalog.aside.pairs(chunk=report.chunk_id, outcome="held")
    assert len(waiting) == len(silent)
    return report.chunk_id, waiting
