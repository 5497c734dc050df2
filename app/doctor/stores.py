"""Catalog, pictures and kept features."""

from __future__ import annotations

from collections.abc import Iterator

from app.desk.health import Diagnosis, Level
from app.home.workspace import Workspace

SHOWN = 3
_AGAIN = "Ingest the chunk that holds them again, or restore the store from a backup."


def catalog(workspace: Workspace) -> Iterator[Diagnosis]:
    """Lets SQLite look at its own file, and at rows that refer to nothing."""
    problems = workspace.catalog.damage()
    for problem in problems[:SHOWN]:
        advice = "Restore catalog.sqlite from a backup."
        yield Diagnosis("catalog", Level.ERROR, f"The catalog is damaged: {problem}.", advice)
    if not problems:
        chunks, pairs = len(workspace.catalog.chunks()), sum(workspace.catalog.languages().values())
        said = f"The catalog's {chunks} chunks with {pairs:,} pairs are intact."
        yield Diagnosis("catalog", Level.OK, said, figures={"chunks": chunks, "pairs": pairs})


def pictures(workspace: Workspace, *, every_byte: bool) -> Iterator[Diagnosis]:
    """Compares the pictures in the catalog with those that are stored, and each with its checksum."""
    stored = set(workspace.blobs.ids())
    named = set(workspace.catalog.images(stored))
    wanted = workspace.catalog.ids_where()
    lost = sorted(wanted - stored)
    read = sorted(stored) if every_byte else []
    damaged = [(image_id, why) for image_id in read if (why := workspace.blobs.damage(image_id))]
    figures = {
        "stored": len(stored),
        "lost": len(lost),
        "damaged": len(damaged),
        "unnamed": len(stored - named),
    }
    if lost:
        said = f"{len(lost)} pictures in the catalog are not stored ({_some(lost)})."
        yield Diagnosis("pictures", Level.ERROR, said, _AGAIN, figures)
    if damaged:
        said = f"{len(damaged)} stored pictures are damaged, such as {damaged[0][0][:12]}: {damaged[0][1]}"
        yield Diagnosis("pictures", Level.ERROR, said, _AGAIN, figures)
    if stored - named:
        said = f"{len(stored - named)} stored pictures are in no chunk ({_some(sorted(stored - named))})."
        advice = "An upload was cut short; they are used when it comes again, and do no harm."
        yield Diagnosis("pictures", Level.WARN, said, advice, figures)
    if not lost and not damaged:
        how = "stored and as they were taken in" if every_byte else "stored"
        yield Diagnosis("pictures", Level.OK, f"All {len(wanted):,} pictures are {how}.", figures=figures)


def features(workspace: Workspace) -> Iterator[Diagnosis]:
    """Looks at every kept feature: its checksum, and whether its numbers are finite and not all zero."""
    found = workspace.features.examine()
    figures = {
        "kept": found.rows,
        "damaged": found.damaged,
        "non_finite": found.non_finite,
        "zero": found.zero,
    }
    if found.damaged or found.non_finite:
        said = (
            f"Of {found.rows:,} kept features {found.damaged} are damaged and {found.non_finite} not finite."
        )
        advice = (
            "Stop the server, remove vectors.lmdb, and start it: what it keeps is computed again when needed."
        )
        yield Diagnosis("features", Level.ERROR, said, advice, figures)
    elif found.zero:
        said = f"{found.zero} of {found.rows:,} kept features are zero: their encoder says nothing of what it saw."
        yield Diagnosis("features", Level.WARN, said, figures=figures)
    else:
        yield Diagnosis(
            "features", Level.OK, f"All {found.rows:,} kept features are finite.", figures=figures
        )


def _some(ids: list[str]) -> str:
    listed = ", ".join(image_id[:12] for image_id in ids[:SHOWN])
    return listed + (" and others" if len(ids) > SHOWN else "")
