"""What a version's folder says of itself, and whether its files are as they were written."""

import hashlib
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ingest.sentence import known_fields
from model_updates.errors import VersionDamaged
from model_updates.preprocessing import Preprocessing

MANIFEST = "manifest.json"
VOCABULARY = "vocabulary.json"
PROFILES = "languages.npz"
GRAPHS = (
    "search"  # what the names of those files begin with that are made of the others, and can be made again
)
SOUND = "sound.json"  # which files were as the manifest says, by time and place; lies beside it and is no part of it
_SETTLED_NS = 2_000_000_000


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


def listed(folder: Path, names: Sequence[str]) -> dict[str, Any]:
    """Returns what a manifest says of files: size and sha256 by name."""
    return {n: {"bytes": (folder / n).stat().st_size, "sha256": sha256_of(folder / n)} for n in names}


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Writes a version's manifest, after its files."""
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=2, allow_nan=False) + "\n", encoding="utf-8")


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

    A file that was sound is read again only when its size, its times or its place on the disk changed since: a version
    of a gigabyte took a second of each search. What changed without them is found by who reads all: a server right
    after its start, and `perennial doctor`.

    Raises:
        VersionDamaged: one is missing or differs.
    """
    sound = _known_sound(folder)
    found = {}
    for name in names:
        facts = manifest["files"][name]
        path = folder / name
        if not path.is_file():
            raise VersionDamaged(f"version {folder.name} lacks {name}; roll back to another release")
        now = path.stat()
        seen = [facts["sha256"], now.st_mtime_ns, now.st_ctime_ns, now.st_ino]
        if now.st_size != facts["bytes"] or (sound.get(name) != seen and sha256_of(path) != facts["sha256"]):
            raise VersionDamaged(
                f"{name} of version {folder.name} differs from its manifest; roll back to another release"
            )
        # A change within the tick of the disk's clock would leave the time as it is.
        if now.st_mtime_ns < time.time_ns() - _SETTLED_NS:
            found[name] = seen
    if any(sound.get(name) != seen for name, seen in found.items()):
        _note_sound(folder, sound | found)


def _known_sound(folder: Path) -> dict[str, Any]:
    try:
        known = json.loads((folder / SOUND).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def _note_sound(folder: Path, sound: dict[str, Any]) -> None:
    """Writes what is sound, whole or not at all; who may not write there reads every byte each time."""
    with suppress(OSError), tempfile.TemporaryDirectory(dir=folder.parent) as place:
        written = Path(place) / SOUND
        written.write_text(json.dumps(sound), encoding="utf-8")
        written.replace(folder / SOUND)


def sha256_of(path: Path) -> str:
    """Returns the sha256 (hex) of a file."""
    with path.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
