"""Claims about what one at a time may do in a home that machines share, and about what they share of releases."""

from __future__ import annotations

import json
import threading
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from app.desk.errors import ReleaseDamaged, UpdateRunning
from app.home import engines, holding, lock
from app.home.durable import sha256_of
from app.home.folder import Home
from app.home.shared import SharedFolders, folders_of
from ingest.catalog import Catalog
from ingest.leases import Holder
from ingest.objects import Objects
from tests.bucket import made

OTHER = Holder("another", "other.example.org", 7, "updating", "2026-11-28T10:00:00+00:00", 0.0)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made(f"file://{tmp_path}/bucket")
    home = Home.create(tmp_path / "home")
    engines.write(home.root, engines.Engines(objects=f"file://{tmp_path}/bucket", home="a"))
    return home


def test_two_of_one_machine_take_turns_and_neither_loses_its_lease(home: Home) -> None:
    order: list[str] = []

    def second() -> None:
        with holding.in_turn(home, holding.COMMITS):
            order.append("second")

    with home.open_catalog() as catalog:
        with holding.in_turn(home, holding.COMMITS):
            waiting = threading.Thread(target=second)
            waiting.start()
            time.sleep(0.3)
            catalog.add_job("gallery")
            order.append("first")
        waiting.join()
    assert order == ["first", "second"]


def test_who_comes_second_is_told_which_machine_is_at_it_and_waits_for_one_that_tidies(home: Home) -> None:
    def hold(what: str, seconds: float) -> threading.Thread:
        def held() -> None:
            with Catalog.open(home.catalog) as catalog, catalog.leases.held("a:updater", OTHER_AT[what]):
                time.sleep(seconds)

        thread = threading.Thread(target=held)
        thread.start()
        time.sleep(0.3)
        return thread

    updating = hold("updating", 1.0)
    found = holding.holder(home, holding.UPDATER)
    assert found is not None
    assert (found.host, found.what) == ("other.example.org", "updating")
    with (
        pytest.raises(UpdateRunning, match="Process 7 on other.example.org"),
        holding.hold(home, holding.UPDATER, "me"),
    ):
        pytest.fail("two hold it")
    updating.join()
    tidying = hold(lock.TIDYING, 1.0)
    with holding.hold(home, holding.UPDATER, "me"):  # after it
        pass
    tidying.join()


OTHER_AT = {
    what: Holder(OTHER.machine, OTHER.host, OTHER.pid, what, OTHER.since, 0.0)
    for what in ("updating", lock.TIDYING)
}


def folder(home: Home, name: str, content: bytes) -> Path:
    made_at = home.versions / name
    made_at.mkdir()
    (made_at / "weights").write_bytes(content)
    facts = {"name": name, "files": {"weights": sha256_of(made_at / "weights")}}
    (made_at / "manifest.json").write_text(json.dumps(facts), encoding="utf-8")
    return made_at


def test_a_file_that_another_machine_removes_while_it_is_published_anew_is_written_again(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = (folders_of(home, str(home.objects_address)) for _ in range(2))
    old, new = folder(home, "v1-00000001", b"weights"), folder(home, "v2-00000002", b"weights")
    there.push(old)
    in_turn = SharedFolders._in_turn

    def after_the_other(folders: SharedFolders) -> AbstractContextManager[None]:
        if folders is here:  # which has seen that the file is there
            monkeypatch.undo()
            there.drop([old.name])
        return in_turn(folders)

    monkeypatch.setattr(SharedFolders, "_in_turn", after_the_other)
    here.push(new)
    assert {name for name, _ in Objects(str(home.objects_address)).written("files")} == {
        f"files/{sha256_of(new / 'weights')}"
    }


def test_what_is_dropped_keeps_the_files_of_others(home: Home) -> None:
    shared = folders_of(home, str(home.objects_address))
    for name, content in (("v1-00000001", b"one"), ("v2-00000002", b"one"), ("v3-00000003", b"two")):
        shared.push(folder(home, name, content))
    shared.drop(["v1-00000001", "v3-00000003"])
    left = home.staging / "v2-00000002"
    shared.fetch(left, lambda digest: None)
    assert (left / "weights").read_bytes() == b"one"
    assert len(list(Objects(str(home.objects_address)).written("files"))) == 1


def test_what_came_damaged_is_no_folder(home: Home, tmp_path: Path) -> None:
    shared = folders_of(home, str(home.objects_address))
    shared.push(folder(home, "v1-00000001", b"weights"))
    (file,) = (tmp_path / "bucket" / "files").iterdir()
    file.write_bytes(b"changed")
    target = home.staging / "v1-00000001"
    with pytest.raises(ReleaseDamaged, match="is not what was published"):
        shared.fetch(target, lambda digest: None)
    file.unlink()
    with pytest.raises(ReleaseDamaged, match="any more"):
        shared.fetch(target, lambda digest: None)
    with pytest.raises(ReleaseDamaged, match="not published"):
        shared.fetch(home.staging / "v9-00000009", lambda digest: None)
    assert list(home.staging.iterdir()) == []
