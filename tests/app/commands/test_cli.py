"""Claims about the command line as a whole: its verbs, and what they have in common."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

from app.commands import bench, chunks, homes, judging, learning, pictures, releasing, searching, upkeep

VERBS = {
    *(
        "init",
        "ingest",
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
        "drift",
        "promote",
        "rollback",
        "releases",
        "reject",
        "keep",
        "pin",
        "unpin",
    ),
    *("search", "serve", "work", "mcp", "demo", "status", "models"),
    *("changes", "quality", "feedback", "bench", "canaries", "pictures", "held", "decide", "shadow"),
    *("export", "import_", "doctor"),
}


def test_help_loads_nothing_heavy_and_names_every_verb() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from app.commands.cli import app;"
        "print(CliRunner().invoke(app, ['--help']).output);"
        "heavy = ['torch', 'faiss', 'gradio', 'numpy', 'sqlalchemy', 'PIL', 'pydantic_settings', 'rich'];"
        "print('loaded:', [name for name in heavy if name in sys.modules])"
    )
    root = str(Path(__file__).parents[3])
    environment = os.environ | {"PYTHONPATH": root}
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    ).stdout
    assert "loaded: []" in output
    assert {line.split()[0] for line in output.splitlines() if line.startswith("  ")} >= {
        verb.rstrip("_") for verb in VERBS
    }


def test_every_verb_knows_json_and_home() -> None:
    verbs = {
        name: function
        for module in (bench, chunks, homes, judging, learning, pictures, releasing, searching, upkeep)
        for name, function in vars(module).items()
        if name in VERBS and inspect.isfunction(function)
    }
    assert set(verbs) == VERBS
    for name, function in verbs.items():
        parameters = set(inspect.signature(function).parameters)
        assert "home" in parameters or name in {"methods", "models"}
        assert "is_json" in parameters or name in {"serve", "work", "mcp", "demo"}
