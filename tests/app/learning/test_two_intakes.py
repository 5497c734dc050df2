"""Claims about two uploads to one home at once, each in a process or thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from app.desk.errors import UpdateRunning
from app.desk.jobs import Stage
from app.home import holding
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding
from ingest import named_pictures
from ingest.blobs import BlobStore
from ingest.errors import NoValidPair
from ingest.intake import IntakeOptions
from ingest.pair import image_id_of
from tests.app.small_home import copy_of, new_home
from tests.ingest.material import folder_of, picture, zip_of

PICTURES = 30


def _upload(path: Path, captions: Iterable[str]) -> Path:
    members: dict[str, bytes | str] = {}
    for n, caption in enumerate(captions):
        members |= {f"{n}.png": picture(n), f"{n}.txt": caption}
    return zip_of(path, members)


def test_an_upload_that_keeps_nothing_leaves_the_files_of_one_beside_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(home=copy_of(new_home(tmp_path_factory), tmp_path))
    spam = _upload(tmp_path / "spam.zip", ["the very same words"] * PICTURES)
    good = _upload(tmp_path / "good.zip", [f"a drawn picture of number {n}" for n in range(PICTURES)])
    stages: list[Stage] = []
    is_far = threading.Event()

    def told(stage: Stage) -> None:
        stages.append(stage)
        if stage.name != "ingest" or "Process" in stage.message:  # it has recorded, or waits
            is_far.set()

    def add_good() -> None:
        with Workspace.open(settings) as workspace:
            adding.add_chunk(workspace, good, IntakeOptions(language="en"), by="b", progress=told)

    beside = threading.Thread(target=add_good)
    delete = BlobStore.delete

    def after_the_other(blobs: BlobStore, image_ids: Iterable[str]) -> None:
        if beside.ident is None:
            beside.start()
            assert is_far.wait(60)
        delete(blobs, image_ids)

    monkeypatch.setattr(BlobStore, "delete", after_the_other)
    with Workspace.open(settings) as workspace:
        with pytest.raises(NoValidPair):
            adding.add_chunk(workspace, spam, IntakeOptions(language="en"), by="a")
        beside.join()
        ids = [image_id_of(picture(n)) for n in range(PICTURES)]
        assert len(workspace.catalog.images(ids)) == PICTURES
        assert workspace.blobs.contains(ids) == [True] * PICTURES
    assert any("taking pictures into this home" in stage.message for stage in stages)


def test_a_small_upload_comes_between_the_parts_of_a_large_folder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_pictures, "FIRST_PORTION", 2)
    monkeypatch.setattr(named_pictures, "PORTION", 3)
    settings = load_settings(home=copy_of(new_home(tmp_path_factory), tmp_path))
    folder = folder_of(tmp_path / "large", {f"{n}.png": picture(n) for n in range(8)})
    small = zip_of(tmp_path / "small.zip", {f"{n}.png": picture(n) for n in (20, 21)})
    sizes: list[int] = []

    def add_small() -> None:
        with Workspace.open(settings) as workspace:
            adding.add_chunk(workspace, small, IntakeOptions(language="en"), by="b")
            sizes.append(workspace.catalog.gallery_size())

    beside = threading.Thread(target=add_small, daemon=True)

    def told(stage: Stage) -> None:
        if stage.name == "embed" and beside.ident is None:  # the first part is recorded, others are to come
            beside.start()
            beside.join(60)

    with Workspace.open(settings) as workspace:
        report = adding.add_chunk(workspace, folder, IntakeOptions(), by="a", progress=told).report
        assert sizes == [4]  # the first two of the folder, and its own
        assert report.new_images == 8
        assert workspace.catalog.gallery_size() == 10


def test_who_does_not_wait_for_long_is_told_who_takes_pictures_in(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with Workspace.open(load_settings(home=copy_of(new_home(tmp_path_factory), tmp_path))) as workspace:
        with (
            holding.intake(workspace.home),
            pytest.raises(UpdateRunning, match="taking pictures in"),
            holding.intake(workspace.home, patience=0.2),
        ):
            pass
        with holding.intake(workspace.home, patience=0.0):
            pass
