"""One release as one file, to be carried to another home: a zip of named parts and a manifest that vouches for each.

`export.json` names size and sha256 of every other member, and its own checksum. Whoever sends a package tells its
sha256, which `sha256sum` gives too, by another way, and whoever takes it in gives it: then not one byte can have been
exchanged. Earlier exports told the sha256 of `export.json`, which vouches for as much and is taken, too. Members are
stored as they are, so that nothing unpacks to more than what was received; no name of a member becomes a path before it
was found to be one of ours, and nothing in it is ever unpickled.
"""

import hashlib
import json
import re
import shutil
import uuid
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.desk.errors import NewerFormat, PackageDamaged, UsageProblem
from app.desk.releases import SUFFIX
from app.home.durable import FileSystem, explaining_full_disk, sha256_of, temporary

MANIFEST = "export.json"
FORMAT = 1
_NAME = re.compile(r"(version|release)/[A-Za-z0-9][A-Za-z0-9._+-]{0,120}\.(safetensors|json|npz|md|onnx)")
_MOST_MEMBERS = 10_000  # 40 GB of weights
_MANIFEST_BYTES = 1 << 24
_BLOCK = 1 << 20
_NO_TIME = (1980, 1, 1, 0, 0, 0)  # the same release makes the same bytes


def write_package(target: Path, files: Mapping[str, Path], facts: Mapping[str, Any]) -> str:
    """Writes a package, and the folder that it lies in where that is new; returns the package's sha256.

    A power cut leaves the target whole or not at all. `files` are by name in the package, `version/…` or `release/…`.

    Raises:
        NoSpace: the disk is full.
    """
    described = {
        name: {"bytes": path.stat().st_size, "sha256": sha256_of(path)} for name, path in files.items()
    }
    encoded = sealed({**facts, "format": FORMAT, "files": described})
    # Of its own: the same release may be written twice at once.
    fresh = temporary(target.with_name(f"{target.name}.{uuid.uuid4().hex}"))
    disk = FileSystem()
    try:
        with explaining_full_disk(target.parent, "writing an export"):
            target.parent.mkdir(exist_ok=True)
            with zipfile.ZipFile(fresh, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(zipfile.ZipInfo(MANIFEST, _NO_TIME), encoded)
                for name, path in sorted(files.items()):
                    member = zipfile.ZipInfo(name, _NO_TIME)
                    member.file_size = path.stat().st_size
                    with archive.open(member, "w") as into, path.open("rb") as source:
                        shutil.copyfileobj(source, into, _BLOCK)
            disk.fsync_file(fresh)
            disk.rename(fresh, target)
            disk.fsync_dir(target.parent)
    finally:
        fresh.unlink(missing_ok=True)
    return sha256_of(target)


def place_of(release: str, to: Path) -> Path:
    """Returns the file that a release goes into: `to`, or one under the release's name in the folder `to`.

    What is not there yet is a file if its name ends as packages' do, and else a folder, which `write_package` makes.

    Raises:
        UsageProblem: the file is there already, or `to` lies in no folder that exists.
    """
    is_file = to.is_file() or (to.suffix == SUFFIX and not to.is_dir())
    target = to if is_file else to / f"{release}{SUFFIX}"
    if target.exists():
        raise UsageProblem(f"{target} is there already; name another place with --to.")
    if not to.is_dir() and not to.absolute().parent.is_dir():
        raise UsageProblem(f"{to} lies in no folder that exists; name another place with --to.")
    return target


def read_package(source: Path, into: Path, *, sha256: str | None = None) -> dict[str, Any]:
    """Copies the parts of a package into an empty folder, each compared with the manifest, and returns what that says.

    `sha256` is the package's, as its sender told it; None trusts the package to be what it says.

    Raises:
        PackageDamaged: it is no package, or not the one that was sent; what lies in `into` is then worth nothing.
        NewerFormat: a newer Perennial wrote it.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            members = _members(archive, source)
            facts = _manifest(archive, source)
            if sha256 is not None:
                _require_sent(archive, source, sha256.strip().lower())
            if set(facts["files"]) != members:
                raise _refused(source, "it holds other files than its manifest names")
            for name, expected in facts["files"].items():
                place = into / name
                place.parent.mkdir(exist_ok=True)
                if _copied(archive, name, place) != expected:
                    raise _refused(source, f"{name} is not what the manifest says")
    except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise _refused(source, f"it cannot be read ({error})") from error
    return facts


def _members(archive: zipfile.ZipFile, source: Path) -> set[str]:
    """Returns the names of the parts, after the whole directory was found to be harmless."""
    listed = archive.infolist()
    names = [member.filename for member in listed]
    others = set(names) - {MANIFEST}
    if MANIFEST not in names or not others:
        raise _refused(source, f"it has no {MANIFEST}")
    strange = next((name for name in sorted(others) if not _NAME.fullmatch(name)), None)
    if strange is not None:
        raise _refused(source, f"it holds {strange[:80]!r}, which no export has")
    if len(names) > _MOST_MEMBERS or len(names) != len(set(names)):
        raise _refused(source, "a name stands in it twice, or it has too many")
    is_packed = any(member.compress_type != zipfile.ZIP_STORED for member in listed)
    if is_packed or sum(member.file_size for member in listed) > source.stat().st_size:
        raise _refused(source, "its members are packed, and an export's are not")
    return others


def _require_sent(archive: zipfile.ZipFile, source: Path, sha256: str) -> None:
    found = sha256_of(source)
    if sha256 not in (found, hashlib.sha256(archive.read(MANIFEST)).hexdigest()):
        raise _refused(source, f"its sha256 is {found}, and {sha256[:64]!r} was expected")


def _manifest(archive: zipfile.ZipFile, source: Path) -> dict[str, Any]:
    if archive.getinfo(MANIFEST).file_size > _MANIFEST_BYTES:
        raise _refused(source, "its manifest is too large")
    data = archive.read(MANIFEST)
    facts = unsealed(data)
    if facts is None:
        raise _refused(source, "its manifest fails its own checksum")
    if facts.get("format") != FORMAT:
        raise NewerFormat(
            f"{source.name} has format {facts.get('format')}; this program reads format {FORMAT}."
        )
    return facts


def _copied(archive: zipfile.ZipFile, name: str, place: Path) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    with archive.open(name) as source, place.open("wb") as target:
        while block := source.read(_BLOCK):
            digest.update(block)
            size += len(block)
            target.write(block)
    return {"bytes": size, "sha256": digest.hexdigest()}


def sealed(facts: Mapping[str, Any]) -> bytes:
    """Returns a manifest as JSON, with its own checksum in it; the same facts make the same bytes."""
    rest = {key: value for key, value in facts.items() if key != "checksum"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    complete = rest | {"checksum": hashlib.sha256(text.encode()).hexdigest()}
    return (json.dumps(complete, indent=2, sort_keys=True) + "\n").encode()


def unsealed(data: bytes) -> dict[str, Any] | None:
    """Returns what a manifest says that lists files; None where it is not as `sealed` wrote it."""
    try:
        facts = json.loads(data)
    except (ValueError, RecursionError):
        return None
    is_ours = isinstance(facts, dict) and isinstance(facts.get("files"), dict) and sealed(facts) == data
    return facts if is_ours else None


def _refused(source: Path, why: str) -> PackageDamaged:
    return PackageDamaged(
        f"{source.name} is refused: {why}. Nothing was taken in. Export the release again with "
        "`perennial export RELEASE`, and carry the file over unchanged."
    )
