"""Claims about the command line as a whole: its verbs, and what they have in common."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

from typer.testing import CliRunner

import perennial
from app.commands import (
    bench,
    capacity,
    chunks,
    cli,
    engines,
    folders,
    homes,
    judging,
    learning,
    pictures,
    releasing,
    searching,
    upkeep,
)

ROOT = Path(__file__).parents[3]
VERBS = {
    *(
        "init",
        "index",
        "repair",
        "add",
        "update",
        "methods",
        "evaluate",
        "gate",
        "check",
        "accept",
        "withdraw",
        "remove",
        "compare",
        "diff",
        "domain",
        "drift",
        "promote",
        "rollback",
        "releases",
        "reject",
        "keep",
        "pin",
        "unpin",
    ),
    *("search", "serve", "work", "mcp", "account", "demo", "status", "models"),
    *("changes", "quality", "feedback", "bench", "canaries", "pictures", "held", "decide", "shadow"),
    *("export", "import_", "doctor", "open_", "watch", "prune", "backup", "restore", "replay", "home_"),
    "capacity",
}


def test_help_loads_nothing_heavy_and_names_every_verb() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from app.commands.cli import app;"
        "print(CliRunner().invoke(app, ['--help']).output);"
        "heavy = ['torch', 'faiss', 'gradio', 'numpy', 'sqlalchemy', 'PIL', 'pydantic_settings', 'rich'];"
        "print('loaded:', [name for name in heavy if name in sys.modules])"
    )
    output = _said(["-c", code])
    assert "loaded: []" in output
    assert {line.split()[0] for line in output.splitlines() if line.startswith("  ")} >= {
        verb.rstrip("_") for verb in VERBS
    }


def _said(start: list[str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *start, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


def test_help_is_read_at_a_glance() -> None:
    with_help = CliRunner().invoke(cli.app, ["--help"], terminal_width=80, env={"COLUMNS": "80"}).output
    asked = CliRunner().invoke(cli.app, [], env={"COLUMNS": "80"}).output
    assert with_help == asked
    groups = re.split(r"\n\n(\w+):\n", asked.strip())[1:]
    lines = {name: told.splitlines() for name, told in zip(groups[::2], groups[1::2], strict=True)}
    assert len(lines.pop("Options")) > 4
    assert list(lines) == ["Start", "Search", "Pictures", "Teach", "Releases", "Server", "Upkeep"]
    assert sum(map(len, lines.values())) == len(VERBS)
    for line in chain.from_iterable(lines.values()):
        _, says = line.split(maxsplit=1)
        assert len(says) <= 45, line
        assert says.endswith("."), f"cut or no sentence: {line}"
        assert not says.endswith(".."), line


def test_commands_are_named_as_they_are_typed(tmp_path: Path) -> None:
    # The installed command is a script that calls the same function.
    script = "import sys; sys.argv[0] = '.venv/bin/perennial'; from perennial import main; main()"
    for start, typed in ((["-c", script], "perennial"), (["-m", "perennial"], "python -m perennial")):
        assert f"Usage: {typed} status " in _said(start, "status", "--help")
        assert f"Run `{typed} init --home" in _said(start, "status", "--home", str(tmp_path))
    as_json = _said(["-m", "perennial"], "status", "--home", str(tmp_path), "--json")
    assert "Run `perennial init --home" in as_json  # for programs, which are told the same everywhere


def test_the_version_is_that_of_the_one_public_module() -> None:
    assert _said(["-m", "perennial"], "--version") == f"perennial {perennial.__version__}\n"


def test_every_verb_knows_json_and_home() -> None:
    verbs = {
        name: function
        for module in (
            bench,
            capacity,
            chunks,
            engines,
            folders,
            homes,
            judging,
            learning,
            pictures,
            releasing,
            searching,
            upkeep,
        )
        for name, function in vars(module).items()
        if name in VERBS and inspect.isfunction(function)
    }
    assert set(verbs) == VERBS
    for name, function in verbs.items():
        parameters = set(inspect.signature(function).parameters)
        assert "home" in parameters or name in {"account", "capacity", "methods", "models"}
        assert "is_json" in parameters or name in {
            "serve",
            "work",
            "mcp",
            "account",
            "demo",
            "open_",
            "watch",
        }
