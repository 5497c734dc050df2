"""Where parts of a home lie that are not in its folder: `engines.toml`, which `perennial home move` writes.

    catalog = "postgresql://perennial@db.example.org/perennial"
    commits = "catalog"

It lies in the home and not among the settings of a machine, so that everybody who opens the home finds the same.
"""

from __future__ import annotations

import json
import tomllib
import unicodedata
from pathlib import Path

from app.desk.errors import HomeDamaged, UsageProblem
from app.home.durable import FileSystem, replace_file

FILE = "engines.toml"
_KNOWN = ("catalog", "commits")
_SCHEME = "postgresql:"
_UNWRITTEN = ("Cc", "Cs")  # categories of Unicode: control characters, halves of characters


def catalog_address(root: Path) -> str | None:
    """Returns the address of the database that holds a home's catalog; None where it lies in the home's folder.

    Raises:
        HomeDamaged: the file cannot be read, or says something that is not known.
    """
    return _said(root).get("catalog")


def are_commits_in_catalog(root: Path) -> bool:
    """Whether commits lie in the database of the catalog; those of a home that was moved before 2026-11-28 do not.

    Raises:
        HomeDamaged: the file cannot be read, or says something that is not known.
    """
    return "commits" in _said(root)


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
    return said


def line_of(catalog: str) -> str:
    """Returns the line that says where the catalog lies.

    Raises:
        UsageProblem: the address cannot be written so that it is read as it is.
    """
    strange = [one for one in catalog if unicodedata.category(one) in _UNWRITTEN]
    # TOML knows what JSON escapes, but not the halves by which JSON may write a character.
    line = f"catalog = {json.dumps(catalog, ensure_ascii=False)}\n"
    if strange or tomllib.loads(line) != {"catalog": catalog}:
        raise UsageProblem(
            f"The address of the catalog holds the character {''.join(strange[:1])!r}, which {FILE} cannot. "
            "Write it as %XX, as in any address, or leave it out."
        )
    return line


def write(root: Path, catalog: str | None) -> None:
    """Says where catalog and commits lie from now on; None: in the home's folder.

    Raises:
        UsageProblem: the address cannot be written (see `line_of`).
    """
    if catalog is not None:
        replace_file(root / FILE, (line_of(catalog) + 'commits = "catalog"\n').encode())
        return
    (root / FILE).unlink(missing_ok=True)
    FileSystem().fsync_dir(root)
