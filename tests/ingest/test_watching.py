"""Watched folders: each change once, a batch at a time, and folders that come later."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from ingest import watching
from ingest.watching import Failures, changed_folders


class Next(Protocol):
    """Waits for the next batch, so many seconds."""

    def __call__(self, timeout: float = 20) -> list[Path]: ...


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[list[Path]], Next]]:
    """Watches folders in a thread; what it returns waits for the next batch."""
    for name, milliseconds in (("_QUIET", 50), ("_LONGEST", 300), ("_LOOK", 200)):
        monkeypatch.setattr(watching, f"{name}_MILLISECONDS", milliseconds)
    stopping, threads = threading.Event(), list[threading.Thread]()

    def begin(folders: list[Path]) -> Next:
        batches: queue.Queue[list[Path]] = queue.Queue()

        def run() -> None:
            for batch in changed_folders(folders, stopping):
                batches.put(batch)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return lambda timeout=20: batches.get(timeout=timeout)

    yield begin
    stopping.set()
    for thread in threads:
        thread.join(timeout=20)
        assert not thread.is_alive()


def _folder(path: Path) -> Path:
    path.mkdir(parents=True)
    return path.resolve()


def test_all_come_first_and_then_the_one_that_changed(
    watched: Callable[[list[Path]], Next], tmp_path: Path
) -> None:
    one, other = _folder(tmp_path / "one"), _folder(tmp_path / "other/deep")
    batch = watched([one, tmp_path / "other"])
    assert batch() == [one, other.parent]
    for name in ("a.png", "b.png", "c.png"):
        (other / name).write_bytes(b"x")
    assert batch() == [other.parent]
    (one / "d.png").write_bytes(b"x")
    assert batch() == [one]


def test_a_folder_that_comes_later_is_looked_at_then(
    watched: Callable[[list[Path]], Next], tmp_path: Path
) -> None:
    one, late = _folder(tmp_path / "one"), tmp_path / "late"
    batch = watched([one, late])
    assert batch() == [one]
    late.mkdir()
    assert batch() == [late.resolve()]
    (late / "a.png").write_bytes(b"x")
    assert batch() == [late.resolve()]


def test_it_waits_where_no_folder_is_there(watched: Callable[[list[Path]], Next], tmp_path: Path) -> None:
    batch = watched([tmp_path / "late"])
    late = _folder(tmp_path / "late")
    assert batch() == [late]


@pytest.mark.parametrize("comes", ["before", "later"])
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_name_that_is_no_text_does_not_end_it(
    watched: Callable[[list[Path]], Next],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    comes: str,
    kind: str,
) -> None:
    monkeypatch.setattr(watching, "_AGAIN_SECONDS", 0.2)
    folder = _folder(tmp_path / "pictures")
    strange = folder / os.fsdecode(b"caf\xe9")

    def come() -> None:
        if kind == "folder":
            strange.mkdir()
        else:
            strange.write_bytes(b"x")

    if comes == "before":
        come()
    batch = watched([folder])
    assert batch() == [folder]
    if comes == "later":
        come()
    for name in ("a.png", "b.png"):
        time.sleep(0.5)
        (folder / name).write_bytes(b"x")
        assert batch() == [folder]


@pytest.mark.parametrize("how", ["removed", "renamed", "link"])
def test_a_folder_in_the_place_of_another_is_watched(
    watched: Callable[[list[Path]], Next], tmp_path: Path, how: str
) -> None:
    first, other = _folder(tmp_path / "first"), _folder(tmp_path / "other")
    place = tmp_path / "link" if how == "link" else first
    if how == "link":
        place.symlink_to(first)
    batch = watched([place])
    assert batch() == [first]
    if how == "removed":
        first.rmdir()
        first.mkdir()
    elif how == "renamed":
        first.rename(tmp_path / "before")
        other.rename(first)
    else:
        place.unlink()
        place.symlink_to(other)
    now = place.resolve()
    while batch() != [now]:  # what happens to the old one may be seen first
        pass
    time.sleep(0.5)
    (now / "a.png").write_bytes(b"x")
    assert batch() == [now]


@pytest.mark.parametrize("change", ["new", "rewritten", "rights", "removed", "moved"])
def test_where_changes_cannot_be_followed_what_changed_is_looked_at(
    watched: Callable[[list[Path]], Next], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, change: str
) -> None:
    def refused(*_: object, **__: object) -> Iterator[set[object]]:
        raise PermissionError("Permission denied")

    monkeypatch.setattr(watching, "_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(watching, "watch", refused)  # as it does for everybody but root
    one, other = _folder(tmp_path / "one"), _folder(tmp_path / "other")
    (file := _folder(one / "inner") / "a.png").write_bytes(b"x")
    batch = watched([one, other])
    assert batch() == [one, other]
    with pytest.raises(queue.Empty):
        batch(0.5)
    if change == "new":
        (one / "inner/b.png").write_bytes(b"x")
    elif change == "rewritten":
        file.write_bytes(b"y")
    elif change == "rights":
        file.chmod(0o600)
    elif change == "removed":
        file.unlink()
    else:
        file.rename(one / "a.png")
    assert batch() == [one]
    with pytest.raises(queue.Empty):
        batch(0.5)


def test_what_failed_is_due_after_pauses_that_grow_up_to_an_hour(tmp_path: Path) -> None:
    now = [0.0]
    failures = Failures(lambda: now[0])
    assert not failures.is_due(tmp_path)
    pauses = []
    for _ in range(9):
        pauses.append(failures.note(tmp_path))
        now[0] += pauses[-1] - 1
        assert not failures.is_due(tmp_path)
        now[0] += 1
        assert failures.is_due(tmp_path)
        assert not failures.is_due(tmp_path / "other")
        failures.begin(tmp_path)
        assert not failures.is_due(tmp_path)
    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    failures.forget(tmp_path)
    assert failures.note(tmp_path) == 60
