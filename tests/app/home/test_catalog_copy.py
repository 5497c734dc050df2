"""A damaged catalog is said in a sentence, and taken from the copy that is kept after work.

Row 5 of what fell once (SECURITY.md).
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.errors import HomeDamaged, UsageProblem
from app.home import catalog_copy, lock
from app.home.catalog_copy import damage_of, keep_copy, restore_catalog
from app.home.durable import FileSystem
from app.home.folder import Home
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.jobs import worker
from app.learning import adding
from app.local.at_home import AtHome
from app.server.serving import Serving
from ingest.catalog import Catalog
from ingest.errors import CatalogDamaged, CatalogError
from ingest.intake import IntakeOptions
from tests.app.small_home import copy_of, sample_chunk, small_home

PAGE = 4096


@pytest.fixture
def settings(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path), ask_server=False)


def rot(catalog: Path) -> None:
    """Changes the first byte of each page but the first: no tree of the catalog can be walked any more."""
    _settled(catalog)
    with catalog.open("r+b") as file:
        for at in range(PAGE, catalog.stat().st_size, PAGE):
            file.seek(at)
            file.write(b"\xff")


def test_a_damaged_catalog_is_a_sentence_everywhere_and_no_traceback(settings: Settings) -> None:
    rot(settings.home / "catalog.sqlite")
    for verb in (["status"], ["search", "a boat"], ["add", str(Path(__file__).parent)], ["doctor"]):
        run = CliRunner().invoke(app, [*verb, "--home", str(settings.home)])
        said = " ".join(run.output.split())
        assert run.exit_code == 1, (verb, said)
        assert isinstance(run.exception, SystemExit), verb
        assert "perennial repair" in said, (verb, said)
        assert "unexpected" not in said


def test_a_copy_is_made_after_work_and_only_now_and_then(settings: Settings, tmp_path: Path) -> None:
    home = Home(settings.home)
    with AtHome(settings, by="test") as desk:
        desk.add_chunk(sample_chunk(tmp_path / "x.zip", pictures=3, first=3), IntakeOptions(), lambda _: None)
        chunks = len(desk.chunks(probes=True))
        assert damage_of(home.catalog_copy) == ""
        assert keep_copy(home) is False, "nothing has changed, or it was a moment ago"
        os.utime(home.catalog)
        assert keep_copy(home) is False, "it was a moment ago"
        size = sum(
            path.stat().st_size for path in home.root.glob("catalog.sqlite*") if "shm" not in path.name
        )
        long_ago = time.time() - 2 * size / 50e6 * 100
        os.utime(home.catalog_copy, (long_ago, long_ago))
        assert keep_copy(home) is True
    with Workspace.open(settings) as workspace:
        assert len(workspace.catalog.chunks()) == chunks


def test_without_room_a_copy_stays_unless_it_has_what_was_removed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = Home(settings.home)
    assert keep_copy(home)
    monkeypatch.setattr(catalog_copy, "free_bytes", lambda place: 0)
    os.utime(home.catalog_copy, (0, 0))
    assert keep_copy(home) is False
    assert home.catalog_copy.exists()
    assert keep_copy(home, at_once=True) is False
    assert not home.catalog_copy.exists()


def test_a_damaged_catalog_leaves_its_copy_alone(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    home = Home(settings.home)
    assert keep_copy(home)
    before = home.catalog_copy.read_bytes()
    os.utime(home.catalog_copy, (0, 0))
    rot(home.catalog)
    assert keep_copy(home) is False
    monkeypatch.setattr(catalog_copy, "free_bytes", lambda place: 0)
    assert keep_copy(home, at_once=True) is False
    assert home.catalog_copy.read_bytes() == before
    assert sorted(path.name for path in home.root.glob("*.new")) == []


def test_repair_takes_the_copy_and_says_what_came_later(settings: Settings, tmp_path: Path) -> None:
    home = Home(settings.home)
    assert keep_copy(home)
    with Workspace.open(settings) as workspace:
        later = sample_chunk(tmp_path / "later.zip", pictures=4, first=3)
        adding.add_chunk(workspace, later, IntakeOptions(), by="test")
        out = workspace.catalog.gallery_ids()[0]
        workspace.catalog.withheld.take_out([out], by="test", why="private")
        workspace.catalog._engine.dispose()
    _rot_of_an_index(home.catalog)
    assert damage_of(home.catalog)
    run = CliRunner().invoke(app, ["repair", "--plan", "--home", str(settings.home)])
    assert "its copy takes its place" in " ".join(run.output.split())
    told = restore_catalog(home, by="test")
    assert "1 chunks came later and are lost from it: later" in told
    assert "4 stored pictures are in no chunk until they come again." in told
    assert list(home.root.glob("catalog-damaged-*.sqlite"))
    with Workspace.open(settings) as workspace:
        assert out in workspace.catalog.withheld.ids(), "what was hidden stays hidden"
        again = adding.add_chunk(workspace, later, IntakeOptions(), by="test")
        assert again.images_embedded == 0, "pictures are found again by content"
        assert len(workspace.catalog.gallery_ids()) == 43


def _settled(catalog: Path) -> None:
    """Has all pages in the file itself."""
    with closing(sqlite3.connect(catalog)) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _rot_of_an_index(catalog: Path) -> None:
    """Damages what SQLite's check sees and reading the rows of tables does not: an index."""
    _settled(catalog)
    with closing(sqlite3.connect(catalog)) as opened:
        pages = [row[0] for row in opened.execute("SELECT rootpage FROM sqlite_master WHERE type = 'index'")]
    with catalog.open("r+b") as file:
        file.seek((pages[-1] - 1) * PAGE)
        file.write(b"\xff")


def test_without_a_copy_nothing_is_changed(settings: Settings) -> None:
    home = Home(settings.home)
    home.catalog_copy.unlink(missing_ok=True)
    rot(home.catalog)
    before = home.catalog.read_bytes()
    with pytest.raises(HomeDamaged, match="no sound copy"):
        restore_catalog(home, by="test")
    assert home.catalog.read_bytes() == before


def test_a_server_looks_through_the_catalog_and_says_what_it_found(settings: Settings) -> None:
    with Workspace.open(settings) as workspace:
        serving = Serving(workspace)
        assert serving.refresh()
        rot(Home(settings.home).catalog)
        workspace.catalog._engine.dispose()
        serving._check_catalog()
        serving._look_around()
        assert [one.part for one in serving.degraded] == ["catalog"]
        assert serving.degraded[0].mend == "perennial repair"
        with pytest.raises(CatalogDamaged):
            workspace.catalog.gallery_ids()


def test_a_sound_catalog_that_somebody_holds_is_not_replaced(settings: Settings) -> None:
    home = Home(settings.home)
    assert keep_copy(home)
    inode = home.catalog.stat().st_ino
    with closing(sqlite3.connect(home.catalog, isolation_level=None)) as busy:
        busy.execute("PRAGMA locking_mode=exclusive")
        busy.execute("BEGIN IMMEDIATE")
        busy.execute("CREATE TABLE zz(x)")
        with pytest.raises(CatalogError, match="cannot be looked through now"):
            restore_catalog(home, by="test")
        busy.execute("ROLLBACK")
    assert restore_catalog(home, by="test") == "", "nothing is wrong with it"
    assert home.catalog.stat().st_ino == inode


@pytest.mark.parametrize("has_tables", [False, True])
def test_an_emptied_catalog_is_damaged_and_its_copy_survives(settings: Settings, has_tables: bool) -> None:
    home = Home(settings.home)
    assert keep_copy(home)
    kept = home.catalog_copy.read_bytes()
    for path in home.root.glob("catalog.sqlite*"):
        path.unlink()
    if has_tables:
        with Catalog.open(home.catalog):
            pass
    else:
        home.catalog.touch()
        assert damage_of(home.catalog)
        with pytest.raises(HomeDamaged, match="is empty"):
            Workspace.open(settings)
    os.utime(home.catalog_copy, (0, 0))
    assert keep_copy(home) is False
    assert home.catalog_copy.read_bytes() == kept
    if not has_tables:
        assert "as it was" in restore_catalog(home, by="test")
        with Workspace.open(settings) as workspace:
            assert workspace.catalog.gallery_ids()


def test_what_was_removed_or_taken_out_since_stays_so(settings: Settings, tmp_path: Path) -> None:
    home = Home(settings.home)
    with Workspace.open(settings) as workspace:
        assert keep_copy(home)
        later = sample_chunk(tmp_path / "later.zip", pictures=4, first=3)
        before = set(workspace.catalog.gallery_ids())
        adding.add_chunk(workspace, later, IntakeOptions(), by="test")
        new = sorted(set(workspace.catalog.gallery_ids()) - before)
        workspace.catalog.withheld.take_out(new[:1], by="test", why="private")
        removed = sorted(before)[0]
        workspace.catalog.forget([removed])
        workspace.blobs.delete([removed])
        workspace.catalog._engine.dispose()
    _rot_of_an_index(home.catalog)
    restore_catalog(home, by="test")
    with Workspace.open(settings) as workspace:
        assert removed not in workspace.catalog.gallery_ids()
        assert not workspace.catalog.sources.of([removed])
        adding.add_chunk(workspace, later, IntakeOptions(), by="test")
        assert set(new) - set(workspace.catalog.gallery_ids()) == set(new[:1])
        workspace.catalog.withheld.put_back(new[:1])
        adding.add_chunk(workspace, later, IntakeOptions(), by="test")
        assert set(new) <= set(workspace.catalog.gallery_ids()), "put back, it is taken in like any other"


@pytest.mark.parametrize("after", [True, False])
def test_killed_around_the_moment_it_takes_its_place_it_shows_nothing_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    home, rename = Home(settings.home), FileSystem.rename
    with Workspace.open(settings) as workspace:
        assert keep_copy(home)
        out = workspace.catalog.gallery_ids()[0]
        workspace.catalog.withheld.take_out([out], by="test", why="private")
        workspace.catalog._engine.dispose()
    _rot_of_an_index(home.catalog)

    def die(files: FileSystem, source: Path, target: Path) -> None:
        if target != home.catalog or after:
            rename(files, source, target)
        if target == home.catalog:
            raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(FileSystem, "rename", die)
        with pytest.raises(KeyboardInterrupt):
            restore_catalog(home, by="test")
    assert bool(restore_catalog(home, by="test")) is not after
    with Workspace.open(settings) as workspace:
        assert out in workspace.catalog.withheld.ids()


def test_nobody_who_has_the_home_open_loses_its_catalog(settings: Settings) -> None:
    home = Home(settings.home)
    assert keep_copy(home)
    rot(home.catalog)
    worker.lock_file(home, "j1").parent.mkdir(exist_ok=True)
    with (
        lock.hold(worker.lock_file(home, "j1"), "job j1"),
        pytest.raises(UsageProblem, match="works on this home"),
    ):
        restore_catalog(home, by="test")
    worker.lock_file(home, "j1").unlink()
    with Workspace.open(settings, read_only=True), pytest.raises(UsageProblem, match="works on this home"):
        restore_catalog(home, by="test")
    assert restore_catalog(home, by="test")


def test_what_cannot_be_read_of_the_damaged_one_is_said(settings: Settings) -> None:
    home = Home(settings.home)
    assert keep_copy(home)
    rot(home.catalog)
    assert "Not all of the damaged catalog could be read" in restore_catalog(home, by="test")
