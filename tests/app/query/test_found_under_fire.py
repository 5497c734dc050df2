"""Pictures come, leave and come back in any order: whatever release is asked, a search finds what may be seen of it."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.desk.hits import SearchRequest
from app.home.settings import load_settings
from app.learning import adding, going_live, pictures, standing
from app.local.at_home import AtHome
from ingest.intake import IntakeOptions
from ingest.pair import image_id_of
from tests.app.small_home import new_home
from tests.ingest.material import picture

_CHOICE = st.integers(0, 1000)


@pytest.fixture(autouse=True)
def _new_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine asks no fixture itself."""
    monkeypatch.setattr(FoundUnderFire, "new", new_home(tmp_path_factory), raising=False)


class FoundUnderFire(RuleBasedStateMachine):
    """Uploads that share pictures, chunks that are withdrawn, pictures taken out and put back, jobs and rollbacks."""

    new: Path  # a home that was just made, of which each history has a copy

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        home = Path(self.folder.name) / "home"
        shutil.copytree(self.new, home)
        self.desk = AtHome(load_settings(home=home, ask_server=False), by="a test")
        self.chunks: dict[str, set[str]] = {}  # that count, with their pictures
        self.out: set[str] = set()  # pictures that a person took out
        self.drawn = 0
        for _ in range(2):
            self.upload(0)

    def teardown(self) -> None:
        self.desk.close()
        self.folder.cleanup()

    @property
    def visible(self) -> set[str]:
        return set().union(*self.chunks.values()) - self.out

    @rule(shared=st.integers(0, 5))
    def add(self, shared: int) -> None:
        self.upload(shared)

    def upload(self, shared: int) -> None:
        """Two new pictures, and one that other uploads may have, too."""
        upload, ids = Path(self.folder.name) / f"upload-{self.drawn}", set[str]()
        upload.mkdir()
        for number in (shared, 100 + self.drawn, 101 + self.drawn):
            file = upload / f"{number}.png"
            file.write_bytes(picture(number, size=(48, 48)))
            ids.add(image_id_of(file.read_bytes()))
        self.drawn += 2
        added = adding.add_chunk(self.desk.workspace, upload, IntakeOptions(), by="a test")
        self.chunks[added.report.chunk_id] = ids

    @precondition(lambda self: self.chunks)
    @rule(choice=_CHOICE)
    def withdraw(self, choice: int) -> None:
        chunk = sorted(self.chunks)[choice % len(self.chunks)]
        standing.withdraw(self.desk.workspace, chunk, why="wrong", by="a test")
        del self.chunks[chunk]

    @precondition(lambda self: self.visible)
    @rule(choice=_CHOICE)
    def take_out(self, choice: int) -> None:
        one = sorted(self.visible)[choice % len(self.visible)]
        pictures.take_out(self.desk.workspace, [one], by="a test", why="private")
        self.out.add(one)

    @precondition(lambda self: self.out)
    @rule(choice=_CHOICE)
    def put_back(self, choice: int) -> None:
        one = sorted(self.out)[choice % len(self.out)]
        pictures.put_back(self.desk.workspace, [one])
        self.out.discard(one)

    @rule()
    def the_index_is_made_whole(self) -> None:
        """What the job does that follows each of these."""
        adding.extend_gallery(self.desk.workspace, why="a test", by="a test")
        live = going_live.live_release(self.desk.workspace)[1].id
        assert self.found(live) == self.visible

    @rule(choice=_CHOICE)
    def roll_back(self, choice: int) -> None:
        live = going_live.live_release(self.desk.workspace)[1].id
        others = [one.id for one in self.desk.workspace.releases.releases() if one.id != live]
        if others:
            going_live.rollback(self.desk.workspace, others[choice % len(others)], why="", by="a test")

    @invariant()
    def each_release_shows_what_it_has_and_may(self) -> None:
        for record in self.desk.workspace.releases.releases():
            has = set(self.desk.workspace.open_generation(record.generation).ids)
            assert self.found(record.id) == has & self.visible

    def found(self, release: str) -> set[str]:
        asked = SearchRequest(text="a red boat", language="en", release=release, k=1000)
        hits = [hit.id for hit in self.desk.search(asked).hits]
        assert len(hits) == len(set(hits))
        return set(hits)


TestFoundUnderFire = FoundUnderFire.TestCase
TestFoundUnderFire.settings = settings(
    max_examples=4, stateful_step_count=10, deadline=None, derandomize=True
)
