"""What is asked of a place for commits, of each that there is: files of the home, and rows of a database."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from app.desk.errors import CommitUnconfirmed, HomeDamaged, ParentMoved
from app.home.catalog_move import HERE, move_catalog
from app.home.commit_files import CommitFiles
from app.home.commits import Commits, carry_commits
from app.home.durable import FileSystem
from app.home.folder import Home
from app.home.store import ReleaseStore
from ingest.errors import CatalogError
from ingest.storage import Store
from tests.app.home.publishing import UnsyncedFileSystem, live_content, promote, publish

Open = Callable[[], Commits]


@pytest.fixture(params=["files", pytest.param("rows", marks=pytest.mark.postgres)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Opens the same empty place, each time as another process would."""
    if request.param == "files":
        folder = tmp_path / "commits"
        folder.mkdir()
        yield lambda: CommitFiles(folder, FileSystem())
        return
    from ingest.commit_rows import CommitRows
    from tests.postgres_server import made_in

    address = made_in(tmp_path)
    yield lambda: CommitRows(address, owner="ada")


def test_what_is_written_is_read_and_never_written_again(opened: Open) -> None:
    first, other = opened(), opened()
    assert (first.numbers(), first.read(1)) == ([], None)
    assert first.put_if_absent(1, b"one\n\x00\xff")
    assert not other.put_if_absent(1, b"another")
    assert other.put_if_absent(10_000_000, b"")
    for place in (first, other, opened()):
        assert place.numbers() == [1, 10_000_000]
        assert (place.read(1), place.read(2), place.read(10_000_000)) == (b"one\n\x00\xff", None, b"")


def test_of_many_that_write_under_one_number_one_is_told_that_it_did(opened: Open) -> None:
    won: list[tuple[int, int]] = []

    def race(name: int) -> None:
        mine = opened()
        won.extend((number, name) for number in range(1, 21) if mine.put_if_absent(number, b"%d" % name))

    racers = [threading.Thread(target=race, args=(name,)) for name in range(4)]
    for one in racers:
        one.start()
    for one in racers:
        one.join()
    place = opened()
    assert sorted(number for number, _ in won) == place.numbers() == list(range(1, 21))
    assert all(place.read(number) == b"%d" % name for number, name in won)


def test_they_are_carried_and_another_under_the_same_number_is_refused(opened: Open, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    here, there = opened(), CommitFiles(tmp_path / "there", FileSystem())
    for number in (1, 2, 5):
        assert here.put_if_absent(number, b"%d" % number)
    assert there.put_if_absent(1, b"1")
    carry_commits(here, there)
    assert [there.read(number) for number in there.numbers()] == [b"1", b"2", b"5"]
    assert there.put_if_absent(7, b"7")
    assert here.put_if_absent(6, b"6")
    with pytest.raises(HomeDamaged, match="Commit 7 is another one there than here, or is not here"):
        carry_commits(here, there)
    assert here.put_if_absent(7, b"another")
    with pytest.raises(HomeDamaged, match="Commit 7"):
        carry_commits(here, there)
    assert there.numbers() == [1, 2, 5, 7]
    assert here.read_many([2, 3, 7]) == {2: b"2", 7: b"another"}
    assert here.read_many([]) == {}


def _with_stores(home: Home) -> None:
    home.open_catalog(read_only=False).close()
    Store.open(home.blobs).close()


def test_one_that_cannot_be_read_is_not_left_behind(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    here, there = (CommitFiles(tmp_path / name, FileSystem()) for name in ("here", "there"))
    assert here.put_if_absent(1, b"1")
    (tmp_path / "here" / "00000002.json").mkdir()  # its bytes cannot be read
    with pytest.raises(HomeDamaged, match="Commit 2 cannot be read, so nothing was moved"):
        carry_commits(here, there)
    assert there.numbers() == []


@pytest.mark.postgres
def test_a_home_commits_where_its_catalog_lies_and_its_open_stores_follow(home: Home, tmp_path: Path) -> None:
    from tests.postgres_server import schema_for

    _with_stores(home)
    open_before = ReleaseStore(home, UnsyncedFileSystem())
    promote(home, "english")
    move_catalog(home, schema_for(tmp_path))
    promote(home, "german")
    assert [path.name for path in home.commits.iterdir()] == ["00000001.json"]
    assert [one.number for one in open_before.history()] == [1, 2]
    late = publish(home, "late")
    with pytest.raises(ParentMoved, match="commit 2 is current"):
        open_before.commit(late, parent=1, reason="promote", why="", by="")
    move_catalog(home, HERE)
    assert sorted(path.name for path in home.commits.iterdir()) == ["00000001.json", "00000002.json"]
    assert live_content(home) == "german"
    assert open_before.commit(late, parent=2, reason="promote", why="", by="").number == 3


@pytest.mark.postgres
def test_a_copy_of_a_home_commits_nothing_in_its_database(home: Home, tmp_path: Path) -> None:
    import shutil

    from tests.postgres_server import schema_for

    _with_stores(home)
    promote(home, "english")
    move_catalog(home, schema_for(tmp_path))
    copied = Home.open(shutil.copytree(home.root, tmp_path / "copied"))
    release = publish(copied, "theirs")
    with pytest.raises(CatalogError, match="A copy cannot share it"):
        ReleaseStore(copied, UnsyncedFileSystem()).commit(
            release, parent=1, reason="promote", why="", by="them"
        )
    assert [one.number for one in ReleaseStore(home).history()] == [1]


@pytest.mark.postgres
@pytest.mark.parametrize("is_there", [True, False], ids=["written", "not written"])
@pytest.mark.parametrize("comes_back", [True, False], ids=["comes back", "stays away"])
def test_where_the_connection_breaks_at_the_end_it_is_looked_whether_it_was_written(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_there: bool, comes_back: bool
) -> None:
    """The last answer of the database, to COMMIT, does not arrive; the database itself is a real one."""
    import psycopg
    import sqlalchemy as sa

    from ingest.commit_rows import CommitRows
    from ingest.postgres_waiting import WatchedConnection
    from tests.postgres_server import schema_for

    _with_stores(home)
    move_catalog(home, schema_for(tmp_path))
    release = publish(home, "english")
    store = ReleaseStore(home, UnsyncedFileSystem())
    rows = store._log._kept.now()
    assert isinstance(rows, CommitRows)
    dialect = rows._engine.dialect
    commit, connect = dialect.do_commit, WatchedConnection.connect

    def break_off(connection: sa.PoolProxiedConnection) -> None:
        if is_there:
            commit(connection)
        cast(psycopg.Connection[Any], connection.driver_connection).close()
        monkeypatch.setattr(dialect, "do_commit", commit)
        if not comes_back:
            monkeypatch.setattr(WatchedConnection, "connect", _refuse)
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    def _refuse(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("connection refused")

    monkeypatch.setattr(dialect, "do_commit", break_off)
    if comes_back:
        assert store.commit(release, parent=None, reason="init", why="", by="").number == 1
    else:
        with pytest.raises(CommitUnconfirmed, match="is not known yet"):
            store.commit(release, parent=None, reason="init", why="", by="")
    monkeypatch.setattr(WatchedConnection, "connect", connect)
    assert [one.number for one in store.history()] == [1] * (is_there or comes_back)


@pytest.mark.postgres
def test_a_database_that_has_no_commits_is_said_and_the_old_files_are_not_taken(
    home: Home, tmp_path: Path
) -> None:
    import psycopg

    from tests.postgres_server import schema_for

    _with_stores(home)
    promote(home, "english")
    address = schema_for(tmp_path)
    move_catalog(home, address)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE catalog_commits")
    with pytest.raises(CatalogError, match="The commits in postgresql.*cannot be read"):
        ReleaseStore(home).current()
