"""Claims about the verb `canaries`, on a home and on the server of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from app.commands import cli
from tests.app.server.served import Served


def run(server: Served, door: str, *arguments: str) -> Any:
    place = str(server.settings.home) if door == "--home" else server.url
    return CliRunner().invoke(cli.app, ["canaries", *arguments, door, place])


@pytest.mark.parametrize("door", ["--home", "--server"])
def test_canaries_are_listed_and_one_is_taken_away(server: Served, door: str) -> None:
    assert "There are none yet" in run(server, door).stdout
    catalog = server.serving.workspace.catalog
    catalog.set_pin("a red boat", "en", catalog.gallery_ids()[0])
    assert [one["query"] for one in json.loads(run(server, door, "--json").stdout)] == ["a red boat"]
    assert "a red boat" in run(server, door).stdout
    gone = run(server, door, "--remove", "a red boat")
    assert (gone.exit_code, "is no canary in en any more" in gone.stdout) == (0, True)
    refused = run(server, door, "--remove", "a red boat")
    assert refused.exit_code != 0
    assert "is no canary" in refused.stderr
    assert catalog.pins() == []
