"""Claims about what a bucket lacks: it is told as it is, also while others publish and take back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.home import garbage, in_bucket
from app.home.folder import Home
from app.home.objects_move import move_objects
from app.home.shared import FOLDER, SharedFolders, folders_of
from app.home.store import ReleaseStore
from ingest.objects import Objects
from tests.app.home.publishing import UnsyncedFileSystem, stage
from tests.app.small_home import copy_of, small_home


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Returns a home whose pictures and releases lie in a folder beside it."""
    home = Home.open(copy_of(small_home(tmp_path_factory), tmp_path))
    move_objects(home, f"file://{tmp_path}/bucket")
    return home


def before_each(monkeypatch: pytest.MonkeyPatch, asked: str, *happens: Callable[[], object]) -> None:
    """Has the first thing happen before the bucket is asked for something, the next before the next time, and so on."""
    left, ask = list(happens), getattr(Objects, asked)

    def ask_later(self: Objects, *arguments: object) -> object:
        if left:
            left.pop(0)()
        return ask(self, *arguments)

    monkeypatch.setattr(Objects, asked, ask_later)


def lacking(home: Home) -> str:
    with home.open_catalog() as catalog:
        return in_bucket.lacking(home, catalog).said


def shared(home: Home) -> SharedFolders:
    return folders_of(home, str(home.objects_address))


def publish(home: Home, content: str) -> str:
    return ReleaseStore(home).publish_version(stage(home, "version", content, UnsyncedFileSystem()))


def test_a_folder_that_is_taken_back_while_the_bucket_is_listed_is_not_missing(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    english = publish(home, "english")
    before_each(monkeypatch, "sizes", lambda: shared(home).drop([english]))
    assert lacking(home) == ""


def test_a_folder_is_not_published_before_a_file_is_there_again_that_went_with_another(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    english, told = publish(home, "english"), list[str]()
    staged = stage(home, "version", "german", UnsyncedFileSystem())
    manifest = json.loads((staged / "manifest.json").read_bytes())
    manifest["files"] = dict(reversed(manifest["files"].items()))  # what both have is looked for first
    (staged / "manifest.json").write_text(json.dumps(manifest))
    before_each(
        monkeypatch,
        "put",
        lambda: None,
        lambda: shared(home).drop([english]),
        lambda: told.append(lacking(home)),
    )
    german = ReleaseStore(home).publish_version(staged)
    assert told == [""]
    assert (german in shared(home).rows.manifests(), lacking(home)) == (True, "")


def test_what_is_taken_back_while_it_is_put_back_does_not_stay(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Objects(str(home.objects_address))
    before = dict(bucket.sizes(FOLDER))
    english = publish(home, "english")
    bucket.delete([name for name, _ in bucket.sizes(FOLDER) if name not in before])
    before_each(monkeypatch, "put", lambda: shared(home).drop([english]))
    with home.open_catalog() as catalog:
        assert "3 files were put back" in in_bucket.put_back(home, catalog)
    assert dict(bucket.sizes(FOLDER)) == before


def test_sizes_are_known_of_what_lies_on_another_machine(home: Home) -> None:
    store = ReleaseStore(home)
    live = store.release(str(getattr(store.current(), "release", "")))
    (old,) = [store.release(name) for name in store.names() if name != live.id]

    def sizes() -> tuple[int, ...]:
        folders = garbage.given_up_by(store, [old.id])
        one = store.version_bytes(live.version), store.generation_bytes(live), store.freed_by(folders)
        return *one, store.version_bytes("v99-00000000")

    before = sizes()
    assert (all(before[:3]), before[3]) == (True, 0)
    for shelf in (home.versions, home.generations):
        for folder in shelf.iterdir():
            shutil.rmtree(folder)
    assert sizes() == before
