"""Claims about search on a home."""

from __future__ import annotations

from pathlib import Path

from app.home.settings import load_settings
from app.home.workspace import Workspace
from tests.app.commands.running import document, run


def test_search_prints_ranks_and_a_pin_is_kept(home: Path) -> None:
    result = run("search", "a red boat", "-k", "3", "--pin", home=home)
    assert result.exit_code == 0
    assert "Pinned" in result.stdout
    found = document("search", "a red boat", "-k", "3", home=home)
    assert [hit["rank"] for hit in found["hits"]] == [1, 2, 3]
    with Workspace.open(load_settings(home=home)) as workspace:
        assert [pin.image_id for pin in workspace.catalog.pins()] == [found["hits"][0]["id"]]
