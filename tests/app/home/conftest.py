"""A new home and its store of releases, which waits for no disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.home.folder import Home
from app.home.store import ReleaseStore
from tests.app.home.publishing import (
    UnsyncedFileSystem,
)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.create(tmp_path / "home")


@pytest.fixture
def store(home: Home) -> ReleaseStore:
    return ReleaseStore(home, UnsyncedFileSystem())
