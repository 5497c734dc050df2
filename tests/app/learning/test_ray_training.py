"""Claims about training on a Ray cluster of two simulated nodes: the weights of one process, whatever dies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.desk.errors import ClusterUnusable
from app.desk.jobs import UpdateRequest
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, training
from app.learning.lessons import Lesson, plan
from app.learning.standing import withdraw
from app.learning.training import Trained, trained
from app.learning.update_cycle import update
from ingest.errors import UnknownImage
from ingest.intake import IntakeOptions
from ingest.samples.chunks import write_chunk
from ingest.samples.scenes import all_scenes
from model_updates.progress import TrainingProgress
from model_updates.version_files import read_manifest
from tests.app.learning.ray_nodes import one_thread, processes, two_nodes
from tests.app.small_home import copy_of, small_home

pytestmark = [pytest.mark.ray, pytest.mark.filterwarnings("ignore")]  # Ray's own

TRAINER = "RayTrainWorker"
EPOCHS = 4
LONG = 16  # there is time to do something meanwhile
Progress = Callable[[TrainingProgress], None]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_nodes() as made, one_thread():
        yield made


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copy_of(small_home(tmp_path_factory), tmp_path)


@pytest.fixture
def workspace(home: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setattr(training, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(training, "TRIED_SECONDS", 0.0)
    with Workspace.open(
        load_settings(home=home, ray=cluster.address, training_workers=2, gate={"cross_fit": False})
    ) as workspace:
        yield workspace


def lesson_of(workspace: Workspace, strategy: str, chunk: str = "", **options: Any) -> Lesson:
    """The waiting chunk, or one that is named, made ready for a strategy; the last epoch is kept."""
    record = going_live.live_release(workspace)[1]
    chunk = chunk or workspace.catalog.chunks()[-1].id
    lesson = plan(workspace, UpdateRequest(chunk, strategy, options, seed=3), record)
    return replace(lesson, validation=())


def both(
    workspace: Workspace, strategy: str, progress: Progress | None = None, **options: Any
) -> list[Trained]:
    """What one process makes of a lesson, and what the cluster does."""
    return [
        trained(workspace, lesson_of(workspace, strategy, **options), alone=alone, progress=told)
        for alone, told in ((True, None), (False, progress))
    ]


def furthest(one: Trained, other: Trained) -> float:
    """The largest difference of two weights."""
    ours, theirs = one.encoder.state(), other.encoder.state()
    assert ours.keys() == theirs.keys()
    return max(float((ours[k].float() - theirs[k].float()).abs().max()) for k in ours if ours[k].numel())


def test_two_processes_make_the_weights_of_one(workspace: Workspace) -> None:
    told: list[TrainingProgress] = []
    alone, together = both(workspace, "finetune+er", told.append, epochs=EPOCHS)
    assert (alone.processes, together.processes) == (1, 2)
    assert furthest(alone, together) < 1e-6
    assert together.report.kept_epoch == alone.report.kept_epoch == EPOCHS
    assert together.report.history[-1].keys() == alone.report.history[-1].keys()
    assert together.report.notes[-1] == "Trained by 2 processes of a Ray cluster."
    assert told
    assert processes(TRAINER) == [], "none of them is left"


def test_a_process_that_is_killed_costs_no_more_than_its_epoch(workspace: Workspace) -> None:
    killed: list[int] = []

    def kill(step: TrainingProgress) -> None:
        if step.epoch >= 3 and not killed:
            one = processes(TRAINER)[0]
            killed.append(one.pid)
            one.kill()

    alone, together = both(workspace, "finetune", kill, epochs=LONG)
    assert killed
    assert furthest(alone, together) < 1e-5
    assert len(together.report.history) == LONG


@pytest.mark.parametrize("strategy", ["domain-adapters", "zscl"])
def test_what_changes_in_the_catalog_meanwhile_costs_nothing(
    workspace: Workspace, tmp_path: Path, strategy: str
) -> None:
    other, drawn = tmp_path / "other.zip", list(all_scenes())[3:2000:100]
    write_chunk(other, scenes=[(one, "flat", 1) for one in drawn], languages=["en"], domain="other")
    adding.add_chunk(workspace, other, IntakeOptions(), by="test")
    chunk, beside = [one.id for one in workspace.catalog.chunks()][-2:]
    lesson = lesson_of(workspace, strategy, chunk, epochs=EPOCHS)
    alone = trained(workspace, lesson, alone=True)
    withdrawn: list[str] = []

    def withdraw_beside(step: TrainingProgress) -> None:
        if not withdrawn:
            withdrawn.append(beside)
            withdraw(workspace, beside, why="its captions are wrong", by="test")

    again = replace(lesson, strategy=lesson.again(workspace))
    together = trained(workspace, again, progress=withdraw_beside)
    assert withdrawn
    assert together.report.notes[-1] == "Trained by 2 processes of a Ray cluster."
    assert furthest(alone, together) < 1e-4


@pytest.mark.parametrize(
    ("strategy", "options"), [("der", {}), ("ucir", {}), ("cll-clip+joint", {"oracle_vocabulary": 700})]
)
def test_all_remember_what_others_taught_before(
    workspace: Workspace, tmp_path: Path, strategy: str, options: dict[str, Any]
) -> None:
    """What `memory` finds is more than pairs: stored features, a count, captions for a vocabulary."""
    other, drawn = tmp_path / "other.zip", list(all_scenes())[3:2000:100]
    write_chunk(other, scenes=[(one, "flat", 1) for one in drawn], languages=["en", "fr"])
    adding.add_chunk(workspace, other, IntakeOptions(), by="test")
    before, chunk = [one.id for one in workspace.catalog.chunks()][-2:]
    lesson = lesson_of(workspace, strategy, chunk, epochs=EPOCHS, **options)
    said = replace(lesson.parent.manifest, chunks=(before,), languages=("en", "de"))
    lesson = replace(lesson, parent=replace(lesson.parent, manifest=said))
    alone = trained(workspace, lesson, alone=True)
    together = trained(workspace, replace(lesson, strategy=lesson.again(workspace)))
    assert together.report.notes[-1] == "Trained by 2 processes of a Ray cluster."
    assert furthest(alone, together) < 1e-4


def test_a_picture_that_is_removed_meanwhile_is_named(workspace: Workspace) -> None:
    lesson = lesson_of(workspace, "finetune", epochs=EPOCHS)
    removed: list[str] = []

    def remove(step: TrainingProgress) -> None:
        if not removed:  # the processes have not begun, and have read none
            removed.append(lesson.train[0].image_id)
            workspace.blobs.delete(removed)

    with pytest.raises(UnknownImage, match=f"No picture with id {lesson.train[0].image_id[:12]} is stored"):
        trained(workspace, lesson, progress=remove)
    assert processes(TRAINER) == [], "nobody tries it again"


def test_who_is_interrupted_goes_on_from_the_last_checkpoint(workspace: Workspace, tmp_path: Path) -> None:
    import ray

    lesson = lesson_of(workspace, "finetune", epochs=LONG)

    def stop(step: TrainingProgress) -> None:
        if step.epoch > 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(workspace, lesson, checkpoints=tmp_path / "kept", progress=stop)
    assert not ray.is_initialized()
    told: list[int] = []
    again = lesson_of(workspace, "finetune", epochs=LONG)
    went_on = trained(
        workspace, again, checkpoints=tmp_path / "kept", progress=lambda step: told.append(step.epoch)
    )
    assert min(told) > 1, "the first epochs are not trained again"
    assert (
        furthest(trained(workspace, lesson_of(workspace, "finetune", epochs=LONG), alone=True), went_on)
        < 1e-5
    )


def test_an_update_goes_live_as_without_a_cluster_and_says_by_how_many(
    workspace: Workspace, tmp_path: Path
) -> None:
    chunk = workspace.catalog.chunks()[-1].id
    request = UpdateRequest(chunk, "language-tables", {"epochs": 6}, seed=3)
    outcome = update(workspace, request, scratch=tmp_path / "scratch", progress=lambda stage: None)
    manifest = read_manifest(workspace.releases.version_folder(outcome.version))
    assert manifest["made"]["environment"]["processes"] == "2"
    assert "Trained by 2 processes of a Ray cluster." in manifest["training"]["notes"]


def test_what_is_short_or_solved_at_once_asks_no_cluster(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'perennial-search[ray]'")
    with Workspace.open(load_settings(home=home, ray="127.0.0.1:1", training_workers=2)) as workspace:
        assert trained(workspace, lesson_of(workspace, "cll-clip", epochs=6)).processes == 1
        monkeypatch.setattr(training, "WORTH_SECONDS", 0.0)
        monkeypatch.setattr(training, "TRIED_SECONDS", 0.0)
        assert trained(workspace, lesson_of(workspace, "ridge-heads")).processes == 1
        with pytest.raises(ClusterUnusable, match="No Ray cluster answers at 127.0.0.1:1"):
            trained(workspace, lesson_of(workspace, "cll-clip", epochs=6))


def test_a_cluster_with_too_few_cores_is_refused(
    home: Path, cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training, "WORTH_SECONDS", 0.0)
    monkeypatch.setattr(training, "TRIED_SECONDS", 0.0)
    with (
        Workspace.open(load_settings(home=home, ray=cluster.address, training_workers=3)) as workspace,
        pytest.raises(
            ClusterUnusable, match="has room for 2 processes of 1 threads each, and `training_workers` asks"
        ),
    ):
        trained(workspace, lesson_of(workspace, "cll-clip", epochs=6))
