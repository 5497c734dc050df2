"""The homes that the demo plays in: marked, so that it never touches anybody else's."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from app.demo.findings import Findings
from app.desk.errors import UsageProblem
from app.home import durable

MARK = "demo.json"
GUIDED, SCRIPTED = "guided", "scripted"


def fresh_home(home: Path) -> Path:
    """Returns a folder for the script in which nothing is yet.

    What an earlier script left is removed. Where a guided demo lives, the script plays in a folder beside it.

    Raises:
        UsageProblem: It holds something else.
    """
    if is_guided(home):
        return fresh_home(home.with_name(f"{home.name}-script"))
    if _read(home).get("kind") == SCRIPTED:
        shutil.rmtree(home)
    elif not is_free(home):
        raise UsageProblem(
            f"{home} is not empty and was not made by the demo. Name a new folder with --home, or remove this one."
        )
    return home


def is_free(home: Path) -> bool:
    """Whether nothing is there."""
    return not home.exists() or (home.is_dir() and not any(home.iterdir()))


def is_guided(home: Path) -> bool:
    """Whether it is a guided demo's, so that its pages show the guide."""
    return _read(home).get("kind") == GUIDED


def mark(home: Path, kind: str, found: Mapping[str, Findings] | None = None) -> None:
    """Marks a home as the demo's, with what its steps have found so far."""
    document = {"kind": kind, "found": {name: one.to_json() for name, one in (found or {}).items()}}
    durable.replace_file(home / MARK, json.dumps(document, ensure_ascii=False, indent=1).encode())


def found_so_far(home: Path) -> dict[str, Findings]:
    """Returns what the steps have found, by their names."""
    return {name: Findings.from_json(one) for name, one in _read(home).get("found", {}).items()}


def _read(home: Path) -> dict[str, Any]:
    try:
        document = json.loads((home / MARK).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, json.JSONDecodeError):
        return {}
    return document if isinstance(document, dict) else {}
