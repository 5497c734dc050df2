"""Where parts of a home lie that are not in its folder: `engines.toml`, which `perennial home move` writes.

    catalog = "postgresql://perennial@db.example.org/perennial"
    commits = "catalog"
    objects = "s3://pictures/museum"
    home = "0f3c1d0a5b7e4f0c9a6d2b8e1c4f7a90"
    index = "http://milvus.example.org:19530/museum"

It lies in the home and not among the settings of a machine, so that everybody who opens the home finds the same.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from app.desk.errors import HomeDamaged, UsageProblem
from app.home.durable import FileSystem, replace_file
from ingest.errors import BadOption
from ingest.objects import require_address

FILE = "engines.toml"
_KNOWN = ("catalog", "commits", "objects", "home", "index")
_SCHEME = "postgresql:"
_MILVUS = re.compile(r"https?://[^/@?#\s]+(/[A-Za-z_][A-Za-z0-9_]{0,60})?/?")
_UNWRITTEN = ("Cc", "Cs")  # categories of Unicode: control characters, halves of characters


@dataclass(frozen=True, slots=True)
class Engines:
    """Where the parts of a home lie; what is None lies in the home's folder."""

    catalog: str | None = None  # the address of its database
    # Whether the commits lie there, too; those of a home that was moved before 2026-11-28 do not.
    commits: bool = False
    objects: str | None = None  # the address of the bucket that holds pictures and published folders
    home: str = ""  # what machines call the home that share it; one that shares nothing has no such name
    # The address of the Milvus that searches the index; a database that does so has a list of what it searches.
    index: str | None = None


def read(root: Path) -> Engines:
    """Reads where the parts of a home lie.

    Raises:
        HomeDamaged: the file cannot be read, or says something that is not known.
    """
    said = _said(root)
    home = said.get("home", "")
    return Engines(said.get("catalog"), "commits" in said, said.get("objects"), home, said.get("index"))


def _said(root: Path) -> dict[str, str]:
    file = root / FILE
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise HomeDamaged(f"{file}, which says where the catalog lies, cannot be read: {error}.") from error
    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise HomeDamaged(
            f'{file} is no TOML: {error}. Write it like `catalog = "postgresql://user@host/database"`.'
        ) from error
    unknown = sorted(set(said) - set(_KNOWN))
    if unknown:
        raise HomeDamaged(
            f"{file} says where {unknown[0]!r} lies, which this Perennial keeps in the home's folder. "
            f"Known there: {', '.join(_KNOWN)}."
        )
    address = said.get("catalog")
    if address is not None and not (isinstance(address, str) and address.startswith(_SCHEME)):
        raise HomeDamaged(
            f"{file} says that the catalog lies in {address!r}; write an address like "
            "postgresql://user@host/database, or leave the line out."
        )
    if said.get("commits", "catalog") != "catalog" or ("commits" in said and address is None):
        raise HomeDamaged(
            f"{file} says that the commits lie in {said['commits']!r}; they lie with the catalog "
            '(`commits = "catalog"`, below its address), or in the home, without a line.'
        )
    try:
        is_bucket = "objects" not in said or bool(require_address(said["objects"]) and said["home"])
    except (BadOption, TypeError, AttributeError, KeyError):
        is_bucket = False
    if not is_bucket:
        raise HomeDamaged(
            f"{file} says that the pictures lie in {said['objects']!r}; it needs an address like s3://bucket/folder, "
            'and what machines call the home (`home = "…"`), as `perennial home move --objects` writes both.'
        )
    if not is_milvus(said.get("index", "http://host")):
        raise HomeDamaged(
            f"{file} does not say of what searches the index where it is: write an address like "
            "http://milvus.example.org:19530/museum, without a password, or leave the line out."
        )
    return said


def is_milvus(address: object) -> bool:
    """Whether something is the address of a Milvus, without a password, and a name that its collections may have."""
    return isinstance(address, str) and _MILVUS.fullmatch(address) is not None


def line_of(address: str, part: str = "catalog") -> str:
    """Returns the line that says where a part lies.

    Raises:
        UsageProblem: the address cannot be written so that it is read as it is.
    """
    strange = [one for one in address if unicodedata.category(one) in _UNWRITTEN]
    # TOML knows what JSON escapes, but not the halves by which JSON may write a character.
    line = f"{part} = {json.dumps(address, ensure_ascii=False)}\n"
    if strange or tomllib.loads(line) != {part: address}:
        raise UsageProblem(
            f"The address of the {part} holds the character {''.join(strange[:1])!r}, which {FILE} cannot. "
            "Write it as %XX, as in any address, or leave it out."
        )
    return line


def write(root: Path, engines: Engines) -> None:
    """Says where the parts of a home lie from now on.

    Raises:
        UsageProblem: an address cannot be written (see `line_of`).
    """
    lines = []
    if engines.catalog is not None:
        lines.append(line_of(engines.catalog))
        if engines.commits:
            lines.append('commits = "catalog"\n')
    if engines.objects is not None:
        lines += [line_of(engines.objects, "objects"), line_of(engines.home, "home")]
    if engines.index is not None:
        lines.append(line_of(engines.index, "index"))
    if lines:
        replace_file(root / FILE, "".join(lines).encode())
        return
    (root / FILE).unlink(missing_ok=True)
    FileSystem().fsync_dir(root)
