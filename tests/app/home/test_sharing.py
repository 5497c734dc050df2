"""Claims about files that several published folders have in common: they take room once, and none needs another."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from app.desk.errors import ReleaseDamaged
from app.home.folder import Home
from app.home.store import ReleaseStore
from tests.app.home.publishing import COMMON, UnsyncedFileSystem, damage, promote, publish, stage


def _files(home: Home, name: str) -> list[Path]:
    return sorted(home.versions.glob(f"*/{name}"))


def test_a_file_that_is_the_same_takes_room_once_and_every_other_is_its_own(home: Home) -> None:
    promote(home, "english")
    promote(home, "german")
    first, second = _files(home, COMMON)
    assert first.samefile(second)
    assert not Path.samefile(*_files(home, "weights.bin"))
    assert [path.name for path in first.parent.iterdir()] == [path.name for path in second.parent.iterdir()]


def test_what_is_removed_takes_nothing_from_what_stays(home: Home) -> None:
    english = publish(home, "english")
    german = publish(home, "german")
    store = ReleaseStore(home)
    shutil.rmtree(home.versions / store.release(english).version)
    assert store.verify_release(german).id == german
    with pytest.raises(ReleaseDamaged):
        store.verify_release(english)


def test_a_file_that_rotted_on_the_shelf_is_not_shared(home: Home) -> None:
    english = publish(home, "english")
    damage(_files(home, COMMON)[0])
    german = publish(home, "german")
    store = ReleaseStore(home)
    assert store.verify_release(german).id == german
    with pytest.raises(ReleaseDamaged):
        store.verify_release(english)
    # A third one shares the sound file.
    publish(home, "french")
    _, second, third = _files(home, COMMON)
    assert second.samefile(third)


class _NoLinks(UnsyncedFileSystem):
    def link(self, source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")


def test_a_disk_without_hard_links_keeps_each_folder_its_own_files(home: Home) -> None:
    store = ReleaseStore(home, _NoLinks())
    for content in ("english", "german"):
        store.publish_version(stage(home, "version", content, UnsyncedFileSystem()))
    first, second = _files(home, COMMON)
    assert not first.samefile(second)
    assert first.read_bytes() == second.read_bytes()
    assert list(home.staging.iterdir()) == []


def test_who_may_read_a_manifest_may_read_the_files_beside_it(home: Home) -> None:
    files = UnsyncedFileSystem()
    staged = stage(home, "version", "english", files)
    (staged / "weights.bin").chmod(0o600)  # as safetensors writes its files
    folder = home.versions / ReleaseStore(home, files).publish_version(staged)
    modes = {path.name: path.stat().st_mode & 0o777 for path in folder.rglob("*") if path.is_file()}
    assert set(modes.values()) == {modes["manifest.json"]}


def test_files_that_an_earlier_perennial_kept_for_their_owner_alone_are_opened_with_the_next(
    home: Home,
) -> None:
    publish(home, "english")
    (old,) = _files(home, COMMON)
    old.chmod(0o600)
    publish(home, "german")
    first, second = _files(home, COMMON)
    assert first.samefile(second)
    assert second.stat().st_mode == (second.parent / "manifest.json").stat().st_mode


def test_a_file_is_never_closed_to_whom_it_is_open(home: Home) -> None:
    publish(home, "english")
    (old,) = _files(home, COMMON)
    files = UnsyncedFileSystem()
    staged = stage(home, "version", "german", files)
    (staged / COMMON).unlink()
    (staged / COMMON).hardlink_to(old)  # as segments of an index are
    (staged / "manifest.json").chmod(0o600)
    ReleaseStore(home, files).publish_version(staged)
    assert old.stat().st_mode & 0o044
