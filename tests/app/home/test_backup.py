"""Claims about backups of a home whose catalog lies in a database, or is on its way there."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.desk.jobs import Stage
from app.home import engines
from app.home.backup import write_backup
from app.home.backup_files import newest
from app.home.backup_holding import at_one_moment
from app.home.catalog_copy import damage_in, keep_copy
from app.home.catalog_move import move_catalog
from app.home.folder import Home
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning.restoring import restore
from ingest.carrying import carry
from ingest.errors import CatalogMissing
from ingest.schema import SCHEMA
from tests.app.small_home import copy_of, small_home
from tests.postgres_server import schema_for


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home.open(copy_of(small_home(tmp_path_factory), tmp_path))


@pytest.mark.postgres
def test_a_backup_of_it_is_a_home_with_a_catalog_of_its_own(home: Home, tmp_path: Path) -> None:
    move_catalog(home, schema_for(tmp_path))
    assert not keep_copy(home, at_once=True), "its database is copied by those who run it"
    home.catalog.unlink()
    assert damage_in(home) == ""
    with Workspace.open(Settings(home=home.root)) as workspace:
        chunks, captions = workspace.catalog.chunks(), workspace.catalog.languages()
        workspace.catalog.add_job("gallery")
    (tmp_path / "backups").mkdir()
    done = write_backup(home, tmp_path / "backups", lambda _: None)
    assert not list(done.path.glob(".rows*"))
    there = tmp_path / "there"
    restore(Settings(home=there), done.path, sha256=done.sha256, tell=lambda _: None)
    assert Home.open(there).catalog_place == there / "catalog.sqlite"
    with Workspace.open(Settings(home=there)) as workspace:
        assert (workspace.catalog.chunks(), workspace.catalog.languages()) == (chunks, captions)
        assert workspace.catalog.damage() == []


@pytest.mark.postgres
def test_a_backup_holds_the_database_no_longer_than_its_rows_are_copied(home: Home, tmp_path: Path) -> None:
    import psycopg

    address = schema_for(tmp_path)
    move_catalog(home, f"{address}&application_name=backed")
    held = dict[str, int]()

    def tell(stage: Stage) -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            others = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'backed'"
            if stage.name in ("blobs", "releases"):
                held[stage.name] = len(connection.execute(others).fetchall())

    done = write_backup(home, tmp_path / "backups", tell)
    assert held == {"blobs": 0, "releases": 0}
    assert newest(tmp_path / "backups").folder == done.path  # type: ignore[union-attr]


@pytest.mark.postgres
def test_a_backup_copies_no_catalog_that_is_being_moved(home: Home, tmp_path: Path) -> None:
    address = schema_for(tmp_path)

    def held_while(root: str | None) -> int:
        """The number of the schema that a backup gets in the moment in which it is decided where the catalog lies."""
        engines.write(home.root, engines.Engines(root, commits=True))
        with at_one_moment(home, tmp_path) as (catalog, _):
            return int(catalog.execute("PRAGMA user_version").fetchone()[0])

    numbers = []

    def undecided() -> None:
        with pytest.raises(CatalogMissing, match="run it again"), at_one_moment(home, tmp_path):
            pass
        numbers.append(held_while(address))

    carry(home.catalog, address, undecided)
    carry(address, home.catalog, lambda: numbers.append(held_while(None)))
    assert numbers == [SCHEMA, SCHEMA]
