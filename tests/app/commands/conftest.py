"""Homes for the tests of verbs: one to look at, one to change, one that waits for a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.desk.jobs import UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import update_cycle
from tests.app import small_home


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home to be looked at, not changed."""
    return small_home.small_home(tmp_path_factory)


@pytest.fixture
def home(template: Path, tmp_path: Path) -> Path:
    return small_home.copy_of(template, tmp_path)


@pytest.fixture(scope="module")
def reviewed(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home in which an update has left a release for a person to review."""
    place = small_home.copy_of(template, tmp_path_factory.mktemp("reviewed"))
    # Generous, so that a home too small to teach anything gets a review and no rejection.
    gate = {"samples": 200, "cross_fit": False, "slice_drop": 100.0, "pooled_drop": 100.0}
    with Workspace.open(load_settings(home=place, gate=gate)) as workspace:
        request = UpdateRequest(
            chunk=small_home.taught_chunk(place), strategy="language-tables", options={"epochs": 1}, by="test"
        )
        scratch = workspace.home.staging / "j1"
        outcome = update_cycle.update(workspace, request, scratch=scratch, progress=lambda _: None)
    assert outcome.verdict == "review", outcome.sentence
    return place
