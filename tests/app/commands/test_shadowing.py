"""Claims about the verb `shadow`, on a home and on the server of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from app.commands import cli
from tests.app.server.served import Served


def run(server: Served, door: str, *arguments: str) -> Any:
    place = str(server.settings.home) if door == "--home" else server.url
    return CliRunner().invoke(cli.app, ["shadow", *arguments, door, place])


@pytest.mark.parametrize("door", ["--home", "--server"])
def test_a_candidate_is_put_there_looked_at_and_taken_away(server: Served, door: str) -> None:
    begun = run(server, door, "r2", "--share", "0.5")
    assert begun.exit_code == 0, begun.output
    assert "has been in the shadow since" in begun.stdout
    assert "asked 50 % of the live queries" in begun.stdout
    twice = run(server, door, "r3")
    assert twice.exit_code != 0
    assert "is in the shadow already" in twice.stderr
    told = json.loads(run(server, door, "r2", "--report", "--json").stdout)
    assert (told["is_active"], told["share"]) == (True, 0.5)
    ended = run(server, door, "r2", "--stop", "--why", "seen enough")
    assert "ended it: seen enough" in ended.stdout
    assert run(server, door, "r2", "--stop").exit_code != 0


@pytest.mark.parametrize("door", ["--home", "--server"])
def test_what_excludes_each_other_is_refused(server: Served, door: str) -> None:
    for options in (["--stop", "--report"], ["--stop", "--share", "0.5"]):
        refused = run(server, door, "r2", *options)
        assert refused.exit_code == 2
        assert "choose one of them" in refused.stderr
