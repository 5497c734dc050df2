"""What happens to a home in any order: what was acknowledged is there, what is live is whole, and goes on working."""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from PIL import Image

from app.desk.errors import AppError, ParentMoved, UpdateRunning, UsageProblem
from app.home import garbage
from app.home.settings import load_settings
from app.home.store import ReleaseStore
from app.home.workspace import Workspace
from app.learning import release_words, standing
from ingest.intake import IntakeOptions, ingest_source
from ingest.pair import ImageId, image_id_of
from ingest.standing import WITHDRAWN
from tests.app.home.publishing import (
    FailingFileSystem,
    Killed,
    UnsyncedFileSystem,
    full_disk,
    live_content,
    promote,
    publish,
)

_CHOICE = st.integers(0, 1000)


class HomeUnderFire(RuleBasedStateMachine):
    """Uploads, updates, promotions, rejections, rollbacks, removals, deaths, full disks, rot and races in any order.

    Catalog, stores, commits and locks are real; a version is a few bytes. The model lists what was committed, which
    pictures were acknowledged, and what people said.
    """

    def __init__(self) -> None:
        super().__init__()
        memory = Path("/dev/shm")
        self.folder = tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None)
        self.place = Path(self.folder.name)
        self.workspace = Workspace.create(load_settings(home=self.place / "home"))
        self.home = self.workspace.home
        self.committed = {promote(self.home, "0").number: "0"}
        self.contents = 0
        self.uploads: dict[str, set[ImageId]] = {}  # acknowledged, by chunk
        self.gone: dict[str, set[ImageId]] = {}  # of chunks that were removed
        self.rejected: list[str] = []

    def teardown(self) -> None:
        self.workspace.close()
        self.folder.cleanup()

    def live_number(self) -> int:
        commit = ReleaseStore(self.home).current()
        assert commit is not None
        return commit.number

    def next_content(self) -> str:
        self.contents += 1
        return str(self.contents)

    def upload(self) -> tuple[Path, set[ImageId]]:
        """A folder of two pictures that nobody has seen."""
        folder, ids = self.place / f"upload-{self.next_content()}", set()
        folder.mkdir()
        for number in range(2):
            dice = np.random.default_rng([self.contents, number])
            file = folder / f"{number}.png"
            Image.fromarray(dice.integers(0, 255, (64, 64, 3), np.uint8)).save(file)
            ids.add(image_id_of(file.read_bytes()))
        return folder, ids

    @rule()
    def ingest(self) -> None:
        folder, ids = self.upload()
        workspace = self.workspace
        done = ingest_source(
            folder, catalog=workspace.catalog, blobs=workspace.blobs, options=IntakeOptions()
        )
        self.uploads[done.chunk_id] = ids

    @rule(step=st.integers(0, 2))
    def ingest_that_dies(self, step: int) -> None:
        """Nothing of it was acknowledged; the same folder can be taken in again."""
        folder, ids = self.upload()
        catalog, blobs = self.workspace.catalog, self.workspace.blobs

        def dying(done: int, _: int | None) -> None:
            if done >= step:
                raise Killed

        with suppress(Killed):
            ingest_source(folder, catalog=catalog, blobs=blobs, options=IntakeOptions(), progress=dying)
        again = ingest_source(folder, catalog=catalog, blobs=blobs, options=IntakeOptions())
        self.uploads[again.chunk_id] = ids

    @precondition(lambda self: self.uploads)
    @rule(choice=_CHOICE)
    def remove(self, choice: int) -> None:
        chunk = sorted(self.uploads)[choice % len(self.uploads)]
        standing.withdraw(self.workspace, chunk, why="wrong", by="a test")
        self.gone[chunk] = self.uploads.pop(chunk)

    @rule()
    def update(self) -> None:
        content = self.next_content()
        self.committed[promote(self.home, content).number] = content

    @rule(step=st.integers(0, 45), is_death=st.booleans())
    def update_that_fails(self, step: int, is_death: bool) -> None:
        before, content = self.live_number(), self.next_content()
        files = FailingFileSystem(step, Killed() if is_death else full_disk())
        with suppress(Killed, OSError, AppError):
            promote(self.home, content, files)
        if self.live_number() != before:
            self.committed[self.live_number()] = content

    @rule()
    def two_updates_at_once(self) -> None:
        """A second updater is refused while one works; of two that were judged against the same commit one wins."""
        store, other = ReleaseStore(self.home, UnsyncedFileSystem()), ReleaseStore(self.home)
        refused: list[type[Exception]] = []

        def second() -> None:
            try:
                promote(self.home, "of the second")
            except UpdateRunning as error:
                refused.append(type(error))

        parent, content = self.live_number(), self.next_content()
        with store.updater_lock("a test"):
            thread = threading.Thread(target=second)
            thread.start()
            thread.join()
            release = publish(self.home, content)
        assert refused == [UpdateRunning]
        won = store.commit(release, parent=parent, reason="promote", why="", by="the first")
        self.committed[won.number] = content
        with pytest.raises(ParentMoved):
            other.commit(release, parent=parent, reason="promote", why="", by="the second")

    @rule()
    def reject(self) -> None:
        """A candidate can be rejected, and what is live cannot."""
        candidate, live = publish(self.home, self.next_content()), ReleaseStore(self.home).current()
        assert live is not None
        with pytest.raises(UsageProblem, match="is live"):
            release_words.judge_release(self.workspace, live.release, "rejected", why="bad", by="a test")
        release_words.judge_release(self.workspace, candidate, "rejected", why="bad", by="a test")
        self.rejected.append(candidate)

    @rule()
    def promote_a_candidate(self) -> None:
        release = publish(self.home, self.next_content())
        release_words.require_free(self.workspace, self.workspace.releases.release(release), force=False)
        self.goes_live(release, "promote")

    @precondition(lambda self: self.rejected)
    @rule(choice=_CHOICE)
    def promote_what_was_rejected(self, choice: int) -> None:
        record = self.workspace.releases.release(self.rejected[choice % len(self.rejected)])
        with pytest.raises(UsageProblem, match="rejected"):
            release_words.require_free(self.workspace, record, force=False)
        release_words.require_free(self.workspace, record, force=True)
        self.goes_live(record.id, "promote")

    @rule(choice=_CHOICE)
    def roll_back(self, choice: int) -> None:
        records = ReleaseStore(self.home).releases()
        self.goes_live(records[choice % len(records)].id, "rollback")

    def goes_live(self, release: str, reason: str) -> None:
        store = ReleaseStore(self.home, UnsyncedFileSystem())
        commit = store.commit(release, parent=self.live_number(), reason=reason, why="", by="")
        self.committed[commit.number] = str(store.release(release).manifest.strategy)

    @precondition(lambda self: len(self.committed) > 1)
    @rule(position=_CHOICE, bit=st.integers(0, 7))
    def rot(self, position: int, bit: int) -> None:
        newest = self.home.commits / f"{max(self.committed):08d}.json"
        data = bytearray(newest.read_bytes())
        data[position % len(data)] ^= 1 << bit
        newest.write_bytes(data)
        del self.committed[max(self.committed)]

    @rule()
    def crash(self) -> None:
        """The process dies and another one opens the home."""
        self.workspace.close()
        self.workspace = Workspace.open(load_settings(home=self.home.root))
        garbage.clean_staging(self.workspace.releases, grace_seconds=0)

    @invariant()
    def the_newest_sound_commit_is_live(self) -> None:
        assert self.live_number() == max(self.committed)
        assert live_content(self.home) == self.committed[max(self.committed)]

    @invariant()
    def every_acknowledged_picture_is_there_and_no_other(self) -> None:
        wanted = set().union(*self.uploads.values())
        assert set(self.workspace.catalog.gallery_ids()) == wanted
        assert all(self.workspace.blobs.contains(sorted(wanted)))
        for chunk in self.gone:
            assert self.workspace.catalog.chunk(chunk).standing == WITHDRAWN


TestHomeUnderFire = HomeUnderFire.TestCase
TestHomeUnderFire.settings = settings(
    max_examples=12, stateful_step_count=12, deadline=None, derandomize=True
)
