"""Claims about publishing and finding releases."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from app.desk.errors import ReleaseDamaged, UnknownRelease
from app.home.folder import Home
from app.home.manifest import ReleaseManifest
from app.home.store import ReleaseStore
from model_updates.version_files import SOUND
from tests.app.home.publishing import UnsyncedFileSystem, damage, publish, stage


def test_the_same_content_published_again_keeps_its_id(home: Home, store: ReleaseStore) -> None:
    files = UnsyncedFileSystem()
    first = store.publish_version(stage(home, "version", "same", files))
    (home.versions / first / SOUND).write_text("{}")  # no part of it
    again = store.publish_version(stage(home, "version", "same", files))
    other = store.publish_version(stage(home, "version", "other", files))

    assert first == again
    assert other.startswith("v2-")
    assert list(home.staging.iterdir()) == []


class SlowerFileSystem(UnsyncedFileSystem):
    """Another process publishes the same a moment before."""

    def rename(self, source: Path, target: Path) -> None:
        if not target.exists():
            shutil.copytree(source, target)
        super().rename(source, target)


def test_the_same_content_published_by_two_at_once_has_one_id(home: Home) -> None:
    files = SlowerFileSystem()
    generation = ReleaseStore(home, files).publish_generation(stage(home, "generation", "same", files))
    assert [path.name for path in home.generations.iterdir()] == [generation]
    assert not list(home.staging.iterdir())


def test_a_rotten_published_folder_is_not_reused_for_the_same_content(
    home: Home, store: ReleaseStore
) -> None:
    files = UnsyncedFileSystem()
    first = store.publish_version(stage(home, "version", "same", files))
    damage(home.versions / first / "weights.bin")

    again = store.publish_version(stage(home, "version", "same", files))

    assert again.startswith("v2-")
    assert again[3:] == first[3:]


def test_an_unfinished_folder_is_not_published(home: Home, store: ReleaseStore) -> None:
    staged = home.staging / "job"
    staged.mkdir()
    (staged / "weights.bin").write_bytes(b"half")

    with pytest.raises(ReleaseDamaged, match=r"it has no manifest\.json"):
        store.publish_version(staged)

    assert list(home.versions.iterdir()) == []


def test_a_release_can_only_name_what_is_published(home: Home, store: ReleaseStore) -> None:
    version = store.publish_version(stage(home, "version", "a", UnsyncedFileSystem()))

    with pytest.raises(UnknownRelease, match=r"names generation 'g1-00000000', which is not published"):
        store.publish_release(ReleaseManifest(version, "g1-00000000"))

    assert list(home.staging.iterdir()) == []


def test_a_number_finds_its_release_and_never_a_longer_number(home: Home, store: ReleaseStore) -> None:
    ids = [publish(home, f"content {number}") for number in range(11)]

    assert store.release("r1").id == ids[0]
    assert store.release("r11").id == ids[10]
    assert store.release(ids[4]).id == store.release(ids[4][:-3]).id == ids[4]


@pytest.mark.parametrize("asked", ["r9", "", "r", "r1-zzzz", "../commits", "v1"])
def test_an_unknown_release_is_refused_with_the_known_ones(
    home: Home, store: ReleaseStore, asked: str
) -> None:
    known = publish(home, "one")

    with pytest.raises(UnknownRelease, match=known):
        store.release(asked)
