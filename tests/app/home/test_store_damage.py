"""Claims about damage: what is not as it was written is passed over with a reason."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from app.desk.errors import (
    NoRelease,
    ReleaseDamaged,
)
from app.home.damage import Damage
from app.home.folder import Home
from app.home.store import ReleaseStore
from tests.app.home.publishing import (
    commit_file,
    current,
    damage,
    live_content,
    promote,
    publish,
)


def test_every_damaged_byte_of_the_newest_commit_falls_back_to_the_one_before(
    home: Home, store: ReleaseStore
) -> None:
    promote(home, "english")
    promote(home, "german")
    newest = commit_file(home, 2)
    intact = newest.read_bytes()

    for position in range(len(intact)):
        newest.write_bytes(intact[:position] + bytes([intact[position] ^ 1]) + intact[position + 1 :])
        commit = current(store)
        assert (commit.number, [skipped.number for skipped in commit.skipped]) == (1, [2]), position


def test_after_a_damaged_commit_the_next_number_is_above_it(home: Home, store: ReleaseStore) -> None:
    promote(home, "english")
    promote(home, "german")
    commit_file(home, 2).write_bytes(b"")

    commit = promote(home, "french")

    assert (commit.number, commit.parent) == (3, 1)
    assert live_content(home) == "french"


@pytest.mark.parametrize("shelf", ["versions", "generations", "releases"])
@pytest.mark.parametrize(
    "harm", ["manifest changed", "manifest lost", "folder lost", "file lost", "file cut"]
)
def test_a_live_release_that_is_damaged_is_skipped_with_the_reason(
    home: Home, store: ReleaseStore, shelf: str, harm: str
) -> None:
    promote(home, "english")
    promote(home, "german")
    folder = sorted((home.root / shelf).iterdir())[1]
    file = folder / ("report.html" if shelf == "releases" else "weights.bin")
    if harm == "manifest changed":
        damage(folder / "manifest.json", change=lambda data: data.replace(b"german", b"gherkin"))
    elif harm == "manifest lost":
        (folder / "manifest.json").unlink()
    elif harm == "folder lost":
        folder.rename(home.staging / "lost")
    elif harm == "file lost":
        file.unlink()
    else:
        damage(file, change=lambda data: data[:-1])

    commit = current(store)

    assert commit.number == 1
    assert [skipped.number for skipped in commit.skipped] == [2]
    assert commit.skipped[0].why


def test_a_changed_byte_in_a_large_file_is_found_by_full_verification(
    home: Home, store: ReleaseStore
) -> None:
    record = store.release(promote(home, "english").release)
    damage(home.versions / record.version / "state" / "memory.bin")

    with pytest.raises(ReleaseDamaged, match=r"state/memory\.bin of version v1-.* has changed"):
        store.verify_release(record.id)


def test_what_cannot_be_read_for_a_moment_is_not_marked(
    home: Home, store: ReleaseStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = store.release(promote(home, "english").release)
    manifest, read = home.versions / record.version / "manifest.json", Path.read_bytes

    def stale(path: Path) -> bytes:
        if path == manifest:
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", stale)
        with pytest.raises(ReleaseDamaged):
            store.find_damage(record)
    assert store.damage.mark(record.version) is None
    manifest.unlink()
    assert store.find_damage(record)
    assert store.damage.mark(record.version) is not None


def test_a_mark_that_cannot_be_written_counts_before_an_older_one(tmp_path: Path) -> None:
    folder = tmp_path / "v1"
    folder.mkdir()
    damage = Damage(tmp_path / "damaged")
    damage.note("v1", "the first", folder)
    (folder / "other").touch()
    (tmp_path / "damaged" / ".v1.json.new").mkdir()  # nothing can be written there
    damage.note("v1", "the second", folder)
    mark = damage.of(folder)
    assert mark is not None
    assert mark.why == "the second"


def test_a_damaged_release_cannot_be_made_live(home: Home, store: ReleaseStore) -> None:
    promote(home, "english")
    release = publish(home, "german")
    (home.versions / store.release(release).version / "weights.bin").unlink()

    with pytest.raises(ReleaseDamaged, match=r"lost its file weights\.bin"):
        store.commit(release, parent=1, reason="promote", why="", by="")

    assert live_content(home) == "english"


def test_a_home_whose_commits_are_all_damaged_says_so_and_can_be_repaired(
    home: Home, store: ReleaseStore
) -> None:
    release = promote(home, "english").release
    commit_file(home, 1).write_bytes(b"rot")
    with pytest.raises(NoRelease, match="None of the 1 commits can be trusted"):
        store.current()

    store.commit(release, parent=None, reason="rollback", why="repair", by="me")

    assert current(store).number == 2
