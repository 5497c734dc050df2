"""Catalog, pictures and kept features."""

from collections.abc import Iterator

from app.desk.health import Diagnosis, Level
from app.home.in_bucket import lacking
from app.home.workspace import Workspace
from ingest.sentence import phrase

SHOWN = 3
_AGAIN = phrase("Ingest the chunk that holds them again, or restore the store from a backup.")


def catalog(workspace: Workspace) -> Iterator[Diagnosis]:
    """Lets SQLite look at its own file, and at rows that refer to nothing."""
    problems = workspace.catalog.damage()
    for problem in problems[:SHOWN]:
        advice = phrase(
            "`perennial repair` puts its copy in its place; or restore catalog.sqlite from a backup."
        )
        yield Diagnosis("catalog", Level.ERROR, phrase("The catalog is damaged: {why}.", why=problem), advice)
    if not problems:
        chunks, pairs = len(workspace.catalog.standings()), sum(workspace.catalog.languages().values())
        said = phrase(
            "The catalog's {count} chunks with {pairs} pairs are intact.", count=chunks, pairs=f"{pairs:,}"
        )
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
        said = phrase(
            "{count} pictures in the catalog are not stored ({names}).", count=len(lost), names=_some(lost)
        )
        yield Diagnosis("pictures", Level.ERROR, said, _AGAIN, figures)
    if damaged:
        said = phrase(
            "{count} stored pictures are damaged, such as {picture}: {why}",
            count=len(damaged),
            picture=damaged[0][0][:12],
            why=damaged[0][1],
        )
        yield Diagnosis("pictures", Level.ERROR, said, _AGAIN, figures)
    if stored - named:
        said = phrase(
            "{count} stored pictures are in no chunk ({names}).",
            count=len(stored - named),
            names=_some(sorted(stored - named)),
        )
        advice = phrase("An upload was cut short; they are used when it comes again, and do no harm.")
        yield Diagnosis("pictures", Level.WARN, said, advice, figures)
    if not lost and not damaged:
        count = f"{len(wanted):,}"
        said = (
            phrase("All {count} pictures are stored and as they were taken in.", count=count)
            if every_byte
            else phrase("All {count} pictures are stored.", count=count)
        )
        yield Diagnosis("pictures", Level.OK, said, figures=figures)


def bucket(workspace: Workspace) -> Iterator[Diagnosis]:
    """Lists the bucket of a home that has one, and compares it with what the catalog says lies there."""
    address = workspace.home.objects_address
    if address is None:
        return
    found = lacking(workspace.home, workspace.catalog)
    if found.said:
        advice = phrase(
            "`perennial repair` puts back {count} files that this machine has.", count=len(found.copies)
        )
        yield Diagnosis("bucket", Level.ERROR, found.said, advice if found.copies else "")
    else:
        yield Diagnosis("bucket", Level.OK, phrase("Everything is in the bucket {address}.", address=address))


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
        said = phrase(
            "Of {count} kept features {damaged} are damaged and {other} not finite.",
            count=f"{found.rows:,}",
            damaged=found.damaged,
            other=found.non_finite,
        )
        advice = phrase(
            "Stop the server, remove vectors.lmdb, and start it: what it keeps is computed again when needed."
        )
        yield Diagnosis("features", Level.ERROR, said, advice, figures)
    elif found.zero:
        said = phrase(
            "{zero} of {count} kept features are zero: their encoder says nothing of what it saw.",
            zero=found.zero,
            count=f"{found.rows:,}",
        )
        yield Diagnosis("features", Level.WARN, said, figures=figures)
    else:
        yield Diagnosis(
            "features",
            Level.OK,
            phrase("All {count} kept features are finite.", count=f"{found.rows:,}"),
            figures=figures,
        )


def _some(ids: list[str]) -> str:
    listed = ", ".join(image_id[:12] for image_id in ids[:SHOWN])
    return listed + (" and others" if len(ids) > SHOWN else "")
