"""What a version's folder says of itself, and whether its files are as they were written."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ingest.sentence import known_fields
from model_updates.errors import VersionDamaged
from model_updates.preprocessing import Preprocessing

MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.json"
PROFILES = "languages.npz"


def read_manifest(folder: Path) -> dict[str, Any]:
    """Reads a version's manifest.

    Raises:
        VersionDamaged: there is none, or it is not JSON.
    """
    try:
        manifest: dict[str, Any] = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise VersionDamaged(
            f"version {folder.name} has no readable manifest ({error}); it is not complete"
        ) from error
    return manifest


def preprocessing_of(folder: Path, manifest: Mapping[str, Any]) -> Preprocessing:
    """Returns how a version prepares its pictures.

    Raises:
        VersionDamaged: it says something that is not known here; leaving that out would give other vectors.
    """
    said = manifest["preprocessing"]
    strange = sorted(said.keys() - known_fields(Preprocessing, said).keys())
    if strange:
        raise VersionDamaged(
            f"version {folder.name} prepares its pictures by {', '.join(strange)}, which this program does not know; "
            "use the program version that wrote it"
        )
    values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in said.items()}
    return Preprocessing(**values)


def verify(folder: Path, manifest: dict[str, Any], names: Sequence[str]) -> None:
    """Compares size and sha256 of some files with the manifest.

    Raises:
        VersionDamaged: one is missing or differs.
    """
    for name in names:
        facts = manifest["files"][name]
        path = folder / name
        if not path.is_file():
            raise VersionDamaged(f"version {folder.name} lacks {name}; roll back to another release")
        if path.stat().st_size != facts["bytes"] or sha256_of(path) != facts["sha256"]:
            raise VersionDamaged(
                f"{name} of version {folder.name} differs from its manifest; roll back to another release"
            )


def sha256_of(path: Path) -> str:
    """Returns the sha256 (hex) of a file."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
