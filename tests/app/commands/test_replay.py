"""Claims about `replay`: what an update made is made again to the bit, or it is said why not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from app.desk.jobs import Stage, UpdateRequest
from app.home import garbage
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, standing, update_cycle
from app.learning.replaying import replay
from app.learning.training import CHECKPOINTS
from app.words.replay import replay_lines
from ingest.intake import IntakeOptions
from ingest.pair import Split
from model_updates.strategies import strategy_named
from model_updates.version_files import SOUND
from model_updates.versions import load_version, write_version
from tests.app.commands.running import document
from tests.app.small_home import copy_of, sample_chunk, small_home
from tests.model_updates.tiny import quick

# Generous, so that everything taught here becomes a release.
DROPS = ("slice_drop", "pooled_drop", "first_slice_drop", "first_pooled_drop")
GATE = {"samples": 200, "cross_fit": False} | dict.fromkeys(DROPS, 100.0)
# Tables alone; both towers beside a memory; adapters beside what is known. `make soak` has more.
STRATEGIES = ("language-tables", "er", "domain-adapters")
STOPPED = 1  # the place of the one that was stopped and resumed


class Stopped(BaseException):
    """The process was stopped here."""


def teach(workspace: Workspace, strategy: str, chunk: str, *, stop_in: int | None = None) -> str:
    """Teaches a chunk, once more from a checkpoint where it is stopped in an epoch, and makes the release live."""
    options = quick(strategy_named(strategy)) | ({"epochs": 3} if stop_in else {})
    request = UpdateRequest(chunk, strategy, options, seed=5, promote=False, by="test")
    scratch = workspace.home.staging / f"job-{strategy}"
    if stop_in:

        def stopping(stage: Stage) -> None:
            if stage.name == "train" and stage.details["epoch"] == stop_in:
                raise Stopped

        with pytest.raises(Stopped):
            update_cycle.update(workspace, request, scratch=scratch, progress=stopping)
        assert list((scratch / CHECKPOINTS).iterdir())
    outcome = update_cycle.update(workspace, request, scratch=scratch, progress=lambda _: None)
    assert outcome.release is not None, outcome.sentence
    going_live.promote(workspace, outcome.release, why="test", by="test", force=True)
    return outcome.release


@pytest.fixture(scope="module")
def taught(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A home in which each strategy taught a release onto the one before, and the releases."""
    place = tmp_path_factory.mktemp("taught")
    home = copy_of(small_home(tmp_path_factory), place)
    found = []
    with Workspace.open(load_settings(home=home, gate=GATE)) as workspace:
        for number, strategy in enumerate(STRATEGIES):
            source = sample_chunk(place / f"{number}.zip", pictures=20, first=number)
            chunk = adding.add_chunk(workspace, source, IntakeOptions(), by="test").report.chunk_id
            found.append(teach(workspace, strategy, chunk, stop_in=2 if number == STOPPED else None))
    return home, found


def files_of(home: Path) -> dict[str, tuple[int, int]]:
    """Every file of a home with its size and time, but logs, locks, and what was found sound."""
    passing = {".log", ".lock", ".sqlite-shm", ".sqlite-wal"}
    found = {}
    for path in home.rglob("*"):
        if path.is_file() and path.suffix not in passing and path.name not in {"lock.mdb", SOUND}:
            found[str(path.relative_to(home))] = (path.stat().st_size, path.stat().st_mtime_ns)
    return found


@pytest.mark.parametrize("number", range(len(STRATEGIES)))
def test_what_each_strategy_taught_is_made_again_to_the_bit_and_nothing_is_written(
    taught: tuple[Path, list[str]], number: int
) -> None:
    home, releases = taught
    before = files_of(home)
    found = document("replay", releases[number], home=home)
    assert (found["is_identical"], found["differing"], found["changed"]) == (True, [], [])
    assert found["files"] > 3
    assert files_of(home) == before


def test_it_says_which_tensors_differ_and_in_what_the_machine_does(
    taught: tuple[Path, list[str]], tmp_path: Path
) -> None:
    """The manifest is rewritten as if other weights had been trained by another torch with two threads."""
    home = copy_of(taught[0], tmp_path)
    with Workspace.open(load_settings(home=home)) as workspace:
        record = workspace.releases.release(taught[1][0])
        version = load_version(home / "versions" / record.version)
        with torch.no_grad():
            next(version.encoder.model.parameters())[0] += 0.5
        made = version.manifest["made"]
        made["environment"] |= {"torch": "1.0", "threads": "2"}
        staged = home / "staging/other"
        facts = {
            name: version.manifest[name]
            for name in ("strategy", "options", "seed", "chunk", "parent", "root")
        }
        write_version(staged, version.encoder, facts | {"made": made})
        other = workspace.releases.publish_version(staged)
        release = workspace.releases.publish_release(
            replace(record.manifest, version=other, version_sha256="", generation_sha256="", files={})
        )
    with Workspace.open(load_settings(home=home), read_only=True) as workspace:
        found = replay(workspace, release, lambda _: None)
    first, *_, made_with = replay_lines(found)
    assert "came out otherwise" in first
    names, then = ([str(cell) for cell in column.cells] for column in made_with.columns[:2])
    assert then[names.index("torch")] == "1.0"
    (moved,) = (one for one in found.differing if one.most is not None)
    assert moved.most == pytest.approx(0.5, abs=1e-6)
    assert found.environment["threads"] == ("2", "2"), "it computes with as many threads as then"
    assert torch.get_num_threads() != 2


def test_chunks_that_came_or_went_since_are_left_out_or_named(
    taught: tuple[Path, list[str]], tmp_path: Path
) -> None:
    home, last = copy_of(taught[0], tmp_path), taught[1][-1]
    source = sample_chunk(tmp_path / "later.zip", pictures=20, first=20)
    with Workspace.open(load_settings(home=home)) as workspace:
        adding.add_chunk(workspace, source, IntakeOptions(), by="test")
    assert document("replay", last, home=home)["is_identical"], "the memory is drawn from the chunks of then"
    with Workspace.open(load_settings(home=home)) as workspace:
        earlier = workspace.releases.release(last).manifest.chunks[1]
        standing.withdraw(workspace, earlier, why="wrong", by="test")
    found = document("replay", last, home=home, code=1)
    assert f"Chunk {earlier}, whose pairs it could be taught beside, has gone since." in found["changed"]


def test_what_cannot_be_replayed_says_why(taught: tuple[Path, list[str]], tmp_path: Path) -> None:
    home, releases = copy_of(taught[0], tmp_path), taught[1]
    assert "no update trained it" in refused("r1", home)
    with Workspace.open(load_settings(home=home)) as workspace:
        record = workspace.releases.release(releases[0])
        loaded = load_version(home / "versions" / record.version)
        staged = home / "staging/old"
        write_version(staged, loaded.encoder, {"strategy": "er", "parent": loaded.manifest["parent"]})
        old = workspace.releases.publish_version(staged)
        before = workspace.releases.publish_release(
            replace(record.manifest, version=old, version_sha256="", generation_sha256="", files={})
        )
        standing.withdraw(workspace, record.manifest.chunks[-1], why="wrong", by="test")
        taught_then = workspace.releases.release(releases[1]).manifest.chunks[-1]
        pair = workspace.catalog.pairs(chunk=taught_then, split=Split.TRAIN)[0]
        workspace.catalog.withheld.take_out([pair.image_id], by="test", why="private")
    assert "made before Perennial wrote down" in refused(before, home)
    assert "which it was taught, was withdrawn" in refused(releases[0], home)
    assert f"the pairs of chunk {taught_then} are not those it was taught" in refused(releases[1], home)
    with Workspace.open(load_settings(home=home)) as workspace:
        version = workspace.releases.release(releases[1]).version
        alike = [one.id for one in workspace.releases.releases() if one.version == version]
        garbage.prune(workspace.releases, alike, by="test", why="room")
    assert "which it was taught onto, was pruned" in refused(releases[2], home)
    assert "was pruned" in document("replay", releases[1], home=home, code=1)["error"]
    (weights,) = list(home.glob(f"versions/{old}/manifest.json"))
    weights.chmod(0o644)
    weights.write_text("{}")
    assert document("replay", before, home=home, code=1)["code"] == "release_damaged"
    assert not list((home / "staging").glob("replay-*"))


def refused(release: str, home: Path) -> str:
    found = document("replay", release, home=home, code=2)
    assert found["code"] == "usage_problem"
    return str(found["error"])
