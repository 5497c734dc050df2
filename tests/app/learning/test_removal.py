"""A chunk removed from what is live, on a real home with the embedded encoder."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from app.desk.errors import ParentMoved, UpdateRunning, UsageProblem
from app.desk.jobs import Stage, UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.jobs import job_runner, requests, worker
from app.learning import adding, going_live, release_words, removal, standing, update_cycle
from app.learning.outcomes import UpdateOutcome, say_nothing
from ingest.intake import IntakeOptions
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from tests.app.small_home import copy_of, sample_chunk, small_home

PICTURES = 160


@pytest.fixture
def workspace(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    home = copy_of(small_home(tmp_path_factory, pictures=PICTURES), tmp_path)
    with Workspace.open(load_settings(home=home, gate={"samples": 200, "minimum_images": 2})) as opened:
        yield opened


def taught(workspace: Workspace, chunk: str) -> UpdateOutcome:
    request = UpdateRequest(
        chunk, strategy="language-tables", options={"epochs": 5, "batch_size": 32}, by="test"
    )
    scratch = workspace.home.staging / f"teach-{chunk}"
    outcome = update_cycle.update(workspace, request, scratch=scratch, progress=say_nothing)
    assert outcome.commit is not None, outcome.sentence
    return outcome


def test_a_chunk_is_removed_by_going_back_and_teaching_what_came_after_it(
    workspace: Workspace, tmp_path: Path
) -> None:
    german = workspace.catalog.chunks()[-1].id
    before = going_live.live_release(workspace)[1]
    with pytest.raises(UsageProblem, match="has not learned"):
        removal.plan(workspace, german, by="test")
    taught(workspace, german)
    with pytest.raises(UsageProblem, match="Withdraw it first"):
        removal.rebuild_without(workspace, german, why="", by="test", scratch=tmp_path, progress=say_nothing)
    french = tmp_path / "french.zip"
    chosen = list(all_scenes())[:: 4000 // PICTURES][:PICTURES]
    write_chunk(french, scenes=[(scene, "flat", n) for n, scene in enumerate(chosen)], languages=["fr"])
    added = adding.add_chunk(workspace, french, IntakeOptions(), by="test").report.chunk_id
    taught(workspace, added)
    todo = removal.plan(workspace, german, by="test")
    assert (todo.begin.version, [one.chunk for one in todo.again]) == (before.version, [added])

    with pytest.raises(UsageProblem, match="Say why"):
        requests.remove_chunk(workspace, german, why=" ", by="test")
    assert workspace.catalog.chunk(german).standing == "new"
    job = requests.remove_chunk(workspace, german, why="wrong captions", by="test")
    with pytest.raises(UpdateRunning, match=f"Removal {job.id}"):
        worker.submit(workspace.settings, "update", {})
    workspace.close()
    ended = worker.follow(workspace.settings, job.id)

    assert ended.state == "succeeded", (ended.error, ended.result)
    with Workspace.open(workspace.settings) as after:
        commit, live = going_live.live_release(after)
        assert live.manifest.chunks == (added,)
        assert live.manifest.languages == ("en", "fr")
        assert "wrong captions" in commit.why
        assert ended.result["commit"] == commit.number
        assert after.open_encoder(live.version).text_fingerprint("de") == after.open_encoder(
            before.version
        ).text_fingerprint("de")
        assert set(after.open_generation(live.generation).ids) == set(after.catalog.gallery_ids())


def test_the_last_chunk_is_removed_without_teaching_anything(workspace: Workspace, tmp_path: Path) -> None:
    german = workspace.catalog.chunks()[-1].id
    before = going_live.live_release(workspace)[1]
    taught(workspace, german)
    standing.withdraw(workspace, german, why="wrong", by="test")
    ended = removal.rebuild_without(
        workspace, german, why="wrong", by="test", scratch=tmp_path, progress=say_nothing
    )
    live = going_live.live_release(workspace)[1]
    assert (ended.verdict, ended.taught, live.version) == ("promote", (), before.version)
    assert workspace.catalog.gallery_ids() == list(workspace.open_generation(live.generation).ids) == []


def test_what_comes_out_waits_while_what_is_live_is_pinned(workspace: Workspace, tmp_path: Path) -> None:
    german = workspace.catalog.chunks()[-1].id
    taught(workspace, german)
    live = going_live.live_release(workspace)[1]
    standing.withdraw(workspace, german, why="wrong", by="test")
    release_words.pin(workspace, why="the fair", by="test")
    ended = removal.rebuild_without(
        workspace, german, why="wrong", by="test", scratch=tmp_path, progress=say_nothing
    )
    assert ended.commit is None
    assert "pinned by test" in ended.sentence
    assert going_live.live_release(workspace)[1].version == live.version


@pytest.mark.parametrize("meanwhile", ["pictures", "another version"])
def test_what_goes_live_while_a_chunk_is_removed(
    workspace: Workspace, tmp_path: Path, meanwhile: str
) -> None:
    german = workspace.catalog.chunks()[-1].id
    before = going_live.live_release(workspace)[1]
    taught(workspace, german)
    standing.withdraw(workspace, german, why="wrong", by="test")
    more = sample_chunk(tmp_path / "more.zip", pictures=3, first=7)

    def come(stage: Stage) -> None:
        if stage.name == "commit" and going_live.live_release(workspace)[0].reason == "promote":
            if meanwhile == "pictures":
                adding.add_chunk(workspace, more, IntakeOptions(), by="other")
            else:
                going_live.rollback(workspace, why="meanwhile", by="other")

    removing = partial(
        removal.rebuild_without, workspace, german, why="wrong", by="test", scratch=tmp_path, progress=come
    )
    if meanwhile != "pictures":
        with pytest.raises(ParentMoved):
            removing()
        return
    ended = removing()
    newest, live = going_live.live_release(workspace)
    assert (ended.commit, live.version) == (newest.number, before.version)
    assert len(workspace.open_generation(live.generation).ids) == 3


class Died(BaseException):
    """The worker was killed here."""


def test_a_removal_whose_worker_died_right_after_it_went_live_ends_well(
    workspace: Workspace, tmp_path: Path
) -> None:
    german = workspace.catalog.chunks()[-1].id
    taught(workspace, german)
    job = requests.remove_chunk(workspace, german, why="wrong", by="test")
    told: list[Stage] = []

    def die(stage: Stage) -> None:
        if told and told[-1].name == "commit":
            raise Died
        told.append(stage)

    with pytest.raises(Died):
        removal.rebuild_without(workspace, **job.arguments, scratch=tmp_path, progress=die)
    commit, live = going_live.live_release(workspace)
    assert german not in live.manifest.chunks
    workspace.catalog.update_job(job.id, state="interrupted", progress=told[-1].to_json())
    workspace.close()

    assert job_runner.run_job(workspace.settings, job.id) == 0
    with Workspace.open(workspace.settings) as after:
        ended = after.catalog.job(job.id)
        assert (ended.state, ended.result["verdict"], ended.error) == ("succeeded", "promote", None)
        newest, live = going_live.live_release(after)
        assert ended.result["commit"] == newest.number > commit.number
        assert after.catalog.gallery_ids() == list(after.open_generation(live.generation).ids) == []
        assert ended.progress["details"]["parent"] == commit.parent
