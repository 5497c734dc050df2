"""Claims about what a shell completes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
_COMMAND = "import sys; sys.argv[0] = 'perennial'; from perennial import main; main()"


def _completed(line: str, home: Path) -> set[str]:
    environment = os.environ | {
        "_PERENNIAL_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
        "PERENNIAL_HOME": str(home),
    }
    said = subprocess.run(
        [sys.executable, "-c", _COMMAND],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert said.stderr == ""
    return set(said.stdout.split())


def test_verbs_options_and_releases_are_completed(tmp_path: Path) -> None:
    for name in ("r1-aaaa", "r2-bbbb"):
        (tmp_path / "releases" / name).mkdir(parents=True)
    assert _completed("perennial se", tmp_path) == {"search", "serve"}
    assert "--language" in _completed("perennial search --l", tmp_path)
    assert _completed("perennial promote r", tmp_path) == {"r1-aaaa", "r2-bbbb"}
    assert _completed("perennial compare r1-aaaa r2", tmp_path) == {"r2-bbbb"}


def test_without_a_home_nothing_is_completed_and_nothing_said(tmp_path: Path) -> None:
    assert _completed("perennial promote r", tmp_path / "nowhere") == set()


def test_the_script_for_a_shell_is_of_the_installed_command() -> None:
    # Typer asks which shell is above it. (Without the second command bash would be replaced by the first.)
    asked = f"{shlex.quote(sys.executable)} -c {shlex.quote(_COMMAND)} --show-completion; exit $?"
    said = subprocess.run(
        ["bash", "-c", asked],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "_PERENNIAL_COMPLETE=complete_bash" in said.stdout
