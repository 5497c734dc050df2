"""Writes docs/modules.md: what each module of the four packages is for, by its own docstring.

python docs/write_modules.py
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "modules.md"
PACKAGES = ("app", "model_updates", "index", "ingest")
HEAD = """# Modules

Written by `make docs` from the first sentence of each module's docstring; do not edit.
[architecture.md](architecture.md) says how they work together.
"""


def page() -> str:
    """Returns the page: a section for each folder, a line for each module."""
    return HEAD + "".join(_section(folder) for package in PACKAGES for folder in _folders(ROOT / package))


def _folders(package: Path) -> Iterator[Path]:
    yield package
    for path in sorted(package.rglob("*")):
        if path.is_dir() and any(path.glob("*.py")):
            yield path


def _section(folder: Path) -> str:
    modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
    about = _first_sentence(folder / "__init__.py")
    lines = [f"- `{path.name}`: {_first_sentence(path)}" for path in modules]
    return (
        "\n".join([f"\n## {folder.relative_to(ROOT)}/", "", about, *([""] if lines else []), *lines]) + "\n"
    )


def _first_sentence(path: Path) -> str:
    said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    first = " ".join(said.partition("\n\n")[0].split())
    sentence, stop, _ = first.partition(". ")
    return sentence + ("." if stop else "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)}\n")
