"""What a person says of a chunk, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.desk.errors import ChunkHeld, UsageProblem
from app.desk.jobs import UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, standing, update_cycle
from app.learning.fitting import require_fit
from app.learning.yardstick import trusted_chunks
from app.query.finder import Finder
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.intake import IntakeOptions
from tests.app.gate_reports import findings
from tests.app.small_home import copy_of, sample_chunk, small_home


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    with Workspace.open(load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))) as opened:
        yield opened


def more(workspace: Workspace, folder: Path) -> str:
    source = sample_chunk(folder / "more.zip", pictures=6, first=7)
    return adding.add_chunk(workspace, source, IntakeOptions(), by="test").report.chunk_id


BOATS = Question.of("a red boat", 500)


def found(workspace: Workspace, snapshot: Snapshot) -> set[str]:
    return {hit.id for hit in Finder(workspace).find(snapshot, BOATS).hits}


def test_withdrawn_pictures_are_found_in_no_release(workspace: Workspace, tmp_path: Path) -> None:
    chunk = more(workspace, tmp_path)
    before = going_live.live_release(workspace)[1].id
    pictures = workspace.catalog.ids_where(chunks=[chunk])
    assert pictures <= found(workspace, Snapshot.load(workspace))

    gone = standing.withdraw(workspace, chunk, why="not ours", by="anna")
    assert (gone.pictures, gone.learned, gone.back_to) == (6, (), None)
    assert "6 pictures leave the gallery" in gone.sentence
    commit, embedded = adding.extend_gallery(workspace, why="withdrawn", by="anna")

    assert commit is not None
    assert embedded == 0
    live, old = Snapshot.load(workspace), Snapshot.load(workspace, before)
    assert not pictures & set(live.generation.ids)
    assert pictures <= set(old.generation.ids), "what was released is not changed"
    assert not pictures & (found(workspace, live) | found(workspace, old))
    assert not pictures & {move.id for move in Finder(workspace).compare(old, live, BOATS).moves}


def test_withdrawing_says_what_learned_from_it_and_how_to_go_back(workspace: Workspace) -> None:
    chunk = workspace.catalog.chunks()[-1].id
    commit, record = going_live.live_release(workspace)
    learned = workspace.releases.publish_release(record.manifest.successor(record.id, chunks=(chunk,)))
    workspace.releases.commit(learned, parent=commit.number, reason="promote", why="", by="test")
    gone = standing.withdraw(workspace, chunk, why="wrong names", by="anna")
    assert (gone.learned, gone.back_to) == ((learned,), record.id)
    assert f"perennial rollback {record.id}" in gone.sentence
    assert (gone.chunk.standing, gone.chunk.standing_by) == ("withdrawn", "anna")
    with pytest.raises(UsageProblem, match="withdrawn already"):
        standing.withdraw(workspace, chunk, why="again", by="anna")


def test_what_every_home_is_measured_by_cannot_be_withdrawn(workspace: Workspace) -> None:
    with pytest.raises(UsageProblem, match="built-in checks"):
        standing.withdraw(workspace, workspace.catalog.chunks()[0].id, why="odd", by="anna")


def test_a_held_chunk_teaches_when_a_person_accepts_it(workspace: Workspace) -> None:
    chunk = workspace.catalog.chunks()[-1].id
    workspace.catalog.set_findings(chunk, findings())
    workspace.catalog.set_standing(chunk, "held", by="checks", why="row shift")
    request = UpdateRequest(chunk=chunk, strategy="language-tables", options={"epochs": 1}, by="test")
    said = next(f.sentence for f in findings() if f.check == "row_shift")
    with pytest.raises(ChunkHeld, match="is held") as refused:
        require_fit(workspace, request)
    assert said in str(refused.value)
    scratch = workspace.home.staging / "j"
    with pytest.raises(ChunkHeld):
        update_cycle.update(workspace, request, scratch=scratch, progress=lambda _: None)

    with pytest.raises(UsageProblem, match="Say why"):
        standing.accept(workspace, chunk, why=" ", by="anna")
    standing.accept(workspace, chunk, why="I looked", by="anna")
    require_fit(workspace, request)
    assert chunk not in trusted_chunks(workspace)
    standing.accept(workspace, chunk, why="a clean set", by="anna", measure=True)
    assert chunk in trusted_chunks(workspace)


def test_a_withdrawn_chunk_is_not_accepted_and_teaches_nothing(workspace: Workspace) -> None:
    chunk = workspace.catalog.chunks()[-1].id
    standing.withdraw(workspace, chunk, why="wrong names", by="anna")
    with pytest.raises(UsageProblem, match="Upload it again"):
        standing.accept(workspace, chunk, why="after all", by="anna")
    with pytest.raises(ChunkHeld, match="wrong names"):
        require_fit(workspace, UpdateRequest(chunk=chunk))
