"""Running verbs as a shell would, and reading what they say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from app.commands import cli


def run(*arguments: str | Path, home: Path | None = None) -> Any:
    place = [] if home is None else ["--home", str(home)]
    return CliRunner().invoke(cli.app, [*map(str, arguments), *place])


def document(*arguments: str | Path, home: Path, code: int = 0) -> Any:
    result = run(*arguments, "--json", home=home)
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)
