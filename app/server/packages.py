"""Releases that travel through the server: packed into one file to be fetched, and received to be taken in by a job."""

from __future__ import annotations

from pathlib import Path

from app.desk.errors import UsageProblem
from app.desk.releases import Exported
from app.home.package import SUFFIX, checksum
from app.home.workspace import Workspace
from app.learning.transfer import export_release
from ingest.sentence import phrase

_SHA256_LETTERS = 64


def packed(workspace: Workspace, release: str) -> Exported:
    """Returns a release's package, made now or up to a day ago; what lies in staging goes by itself.

    Raises:
        UnknownRelease, ReleaseDamaged, NoSpace: nothing was written.
    """
    record = workspace.releases.release(release)
    folder = workspace.home.staging / f"export-{record.id}"
    folder.mkdir(exist_ok=True)
    path = folder / f"{record.id}{SUFFIX}"
    if path.is_file():  # written whole or not at all, and a release never changes
        return Exported(record.id, path, path.stat().st_size, checksum(path))
    return export_release(workspace, record.id, folder)


def checked_sha256(sha256: str) -> str | None:
    """Returns a checksum as a person typed it, None for an empty one.

    Raises:
        UsageProblem: it is no sha256.
    """
    said = sha256.strip().lower()
    if not said:
        return None
    if len(said) != _SHA256_LETTERS or not set(said) <= set("0123456789abcdef"):
        raise UsageProblem(
            phrase(
                "The checksum is 64 letters 0-9 and a-f, as the export showed it; found {found}.",
                found=f"{said[:80]!r}",
            )
        )
    return said


def require_package(name: str) -> None:
    """Refuses a file that cannot be a package, by its name.

    Raises:
        UsageProblem: it has another ending.
    """
    if Path(name).suffix.lower() != SUFFIX:
        raise UsageProblem(
            phrase(
                "{name} is no exported release; those end in {suffix}.",
                name=f"{Path(name).name[:80]!r}",
                suffix=SUFFIX,
            )
        )
