"""Claims about what a home says of where its parts lie: it is understood, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.desk.errors import HomeDamaged
from app.home import engines
from app.home.folder import Home
from app.home.settings import Settings
from app.home.workspace import Workspace
from ingest.errors import CatalogUnreachable
from tests.app.small_home import copy_of, small_home


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home.open(copy_of(small_home(tmp_path_factory), tmp_path))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("catalog = ", "no TOML"),
        ("catalog = 'mysql://host/pictures'", "mysql"),
        ("catalog = 7", "7"),
        ("pictures = 's3://bucket'", "'pictures'"),
        ("commits = 'catalog'", "they lie with the catalog"),
        ("catalog = 'postgresql://host/pictures'\ncommits = 's3://bucket'", "they lie with the catalog"),
    ],
)
def test_what_a_home_says_of_its_engines_is_understood_or_refused(home: Home, text: str, says: str) -> None:
    (home.root / engines.FILE).write_text(text, encoding="utf-8")
    with pytest.raises(HomeDamaged, match=says):
        Workspace.open(Settings(home=home.root))


def test_a_database_that_does_not_answer_is_said_and_no_empty_catalog_is_made(home: Home) -> None:
    engines.write(home.root, engines.Engines("postgresql://ada@127.0.0.1:1/pictures", commits=True))
    with pytest.raises(CatalogUnreachable, match="127.0.0.1"):
        Workspace.open(Settings(home=home.root))
    engines.write(home.root, engines.Engines())
    with Workspace.open(Settings(home=home.root)) as workspace:
        assert workspace.catalog.chunks()


def test_an_address_is_read_as_it_was_written(home: Home) -> None:
    for address in ("postgresql:///\"ü\\😀'", "postgresql:///" + chr(0x10FFFF), "postgresql:///\u2028 "):
        engines.write(home.root, engines.Engines(address, commits=True))
        assert home.catalog_place == address
