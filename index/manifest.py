"""What a generation folder says about itself, checked to the last byte.

A manifest is one canonical JSON text that names the checksum of every other file and its own, so that a
single changed byte anywhere in the folder is found.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from index.errors import GenerationDamaged, GenerationTooNew

Manifest: TypeAlias = dict[str, object]

FILE_NAME = "manifest.json"
KIND = "generation"
SCHEMA = 2  # 1 had no segments
WHAT_TO_DO = "Restore this folder from a backup, or add a picture: then the index is made again."
LFS_POINTER = b"version https://git-lfs.github.com/spec/"


def write_manifest(
    folder: Path, facts: Manifest, file_names: Iterable[str], described: Mapping[str, object] | None = None
) -> Manifest:
    """Writes the manifest of a folder whose other files are complete; returns the facts with `files` and `checksum`.

    Of other files, `described` is what the manifest of the folder says that they came from.
    """
    manifest = facts | {
        "files": {name: _describe(folder / name) for name in file_names} | dict(described or {})
    }
    manifest["checksum"] = _checksum(manifest)
    (folder / FILE_NAME).write_bytes(_encode(manifest))
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """Reads a manifest and requires its bytes to be exactly what `write_manifest` would write.

    Raises:
        GenerationDamaged: Missing, changed, a git-LFS pointer, or of another kind.
        GenerationTooNew: Of a later schema.
    """
    try:
        data = (folder / FILE_NAME).read_bytes()
    except OSError as error:
        raise GenerationDamaged(
            f"{folder.name} is not a finished generation: its {FILE_NAME} cannot be read ({error.strerror}). "
            f"{WHAT_TO_DO}"
        ) from error
    _refuse_lfs_pointer(folder, FILE_NAME, data)
    try:
        manifest = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise GenerationDamaged(
            f"The manifest of generation {folder.name} is not JSON: {error}. {WHAT_TO_DO}"
        ) from error
    if (
        not isinstance(manifest, dict)
        or manifest.get("checksum") != _checksum(manifest)
        or _encode(manifest) != data
    ):
        raise GenerationDamaged(
            f"The manifest of generation {folder.name} fails its own checksum. {WHAT_TO_DO}"
        )
    kind, schema = manifest.get("kind"), manifest.get("schema")
    if kind == KIND and isinstance(schema, int) and schema > SCHEMA:
        raise GenerationTooNew(
            f"Generation {folder.name} has schema {schema}; this Perennial reads up to {SCHEMA}. Install a newer "
            "release; nothing is lost."
        )
    if kind != KIND or schema not in (1, SCHEMA):
        raise GenerationDamaged(
            f"{folder.name} holds a {kind} in schema {schema}, and no {KIND}. {WHAT_TO_DO}"
        )
    return manifest


def files_of(folder: Path, manifest: Manifest) -> dict[str, dict[str, object]]:
    """Returns what a manifest says of each file of its folder.

    Raises:
        GenerationDamaged: It lists none.
    """
    files = manifest.get("files")
    if not isinstance(files, dict):
        raise GenerationDamaged(f"The manifest of generation {folder.name} lists no files. {WHAT_TO_DO}")
    return files


def segments_of(manifest: Manifest) -> list[dict[str, Any]]:
    """Returns what a manifest says of each segment; one from before there were segments is of one."""
    listed = manifest.get("segments")
    if isinstance(listed, list):
        return listed
    return [{"number": 1, **{name: manifest.get(name) for name in ("count", "factory", "routes")}}]


def is_there(folder: Path, manifest: Manifest, name: str) -> bool:
    """Whether a file that a manifest vouches for is there and as large as it says."""
    try:
        return (folder / name).stat().st_size == files_of(folder, manifest)[name]["bytes"]
    except OSError:
        return False


def verify_files(folder: Path, manifest: Manifest, names: Iterable[str]) -> None:
    """Reads some of the files that a manifest vouches for.

    Raises:
        GenerationDamaged: A file is missing, changed or a git-LFS pointer.
    """
    for name in names:
        expected = files_of(folder, manifest)[name]
        path = folder / name
        try:
            with path.open("rb") as file:
                _refuse_lfs_pointer(folder, name, file.read(len(LFS_POINTER)))
            found = _describe(path)
        except OSError as error:
            raise GenerationDamaged(
                f"{name} of generation {folder.name} cannot be read: {error.strerror}. {WHAT_TO_DO}"
            ) from error
        if found != expected:
            raise GenerationDamaged(
                f"{name} of generation {folder.name} is damaged: its manifest says {_say(expected)}, "
                f"the file has {_say(found)}. {WHAT_TO_DO}"
            )


def is_sound(folder: Path, count: int, *, every_byte: bool = True) -> bool:
    """Whether a generation holds so many vectors, and every byte of it, if that is asked, is as it was written."""
    try:
        manifest = read_manifest(folder)
        if manifest["count"] != count:
            return False
        verify_files(folder, manifest, files_of(folder, manifest) if every_byte else ())
    except GenerationDamaged:
        return False
    return True


def _refuse_lfs_pointer(folder: Path, name: str, head: bytes) -> None:
    if head.startswith(LFS_POINTER):
        raise GenerationDamaged(
            f"{name} of generation {folder.name} is a git-LFS pointer, not the file itself. "
            "Fetch the contents with `git lfs pull`."
        )


def _describe(path: Path) -> dict[str, object]:
    with path.open("rb") as file:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _say(description: dict[str, object]) -> str:
    return f"{description['bytes']} bytes with sha256 {str(description['sha256'])[:12]}"


def _encode(manifest: Manifest) -> bytes:
    return (json.dumps(manifest, indent=2, sort_keys=True) + "\n").encode("ascii")


def _checksum(manifest: Manifest) -> str:
    rest = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(_encode(rest)).hexdigest()
