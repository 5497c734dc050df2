"""`--quick`: the tests that need no browser, no server, no taught home, no training and no second process.

A file says by what it imports which of these it needs, and a folder by what its `conftest.py` imports; what is left out
is not even loaded, since torch and Gradio take longer to load than most tests to run.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
_SLOW_IMPORTS = re.compile(
    r"^(?:from|import) .*\b(?:subprocess|playwright|schemathesis|served|small_home|update_cycle|worker|trainer"
    r"|contract|tiny)\b",
    re.MULTILINE,
)


def is_quick(file: Path) -> bool:
    """Whether the tests of a file belong to the quick ones."""
    folders = [folder for folder in file.parents if folder.is_relative_to(TESTS)]
    return not any(map(_is_slow, [file, *(folder / "conftest.py" for folder in folders)]))


@cache
def _is_slow(file: Path) -> bool:
    return file.is_file() and _SLOW_IMPORTS.search(file.read_text(encoding="utf-8")) is not None
