"""Damage found when a server starts, or a search opens a home.

One release can be damaged anywhere and the one before it answers, says so, and is mended by one command.

Row 5 of what fell once (SECURITY.md).
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.errors import NoRelease, ReleaseDamaged
from app.desk.jobs import UpdateRequest
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, removal, update_cycle
from app.learning.mending import mend, plan
from app.local.at_home import AtHome
from app.query.finder import Finder
from app.query.question import Question
from app.query.snapshot import LiveSnapshot, Snapshot
from app.server.serving import Serving
from ingest.intake import IntakeOptions
from model_updates.versions import write_version
from tests.app.server.served import served
from tests.app.small_home import copy_of, sample_chunk, small_home

pytestmark = pytest.mark.usefixtures("starts_at_once")

FLIPS = 40
"""How many bytes are flipped one by one, over all files that are served; `make soak` flips 1,000."""
QUESTION = {"text": "a red boat on the beach", "language": "en", "k": 5}


def flip(path: Path, at: int, *, keep_time: bool = False) -> None:
    """Changes one bit of a file, which other releases may share, and keeps its time where a disk rots."""
    before, data = path.stat(), bytearray(path.read_bytes())
    data[at] ^= 1 << (at % 8)
    path.chmod(0o644)
    path.write_bytes(data)
    if keep_time:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose live release has a version with graphs, and an index, that the first release does not have."""
    home = copy_of(small_home(tmp_path_factory), tmp_path_factory.mktemp("two"))
    make_other_release(load_settings(home=home))
    return home


def make_other_release(settings: Settings) -> None:
    """Makes a release live whose encoder has other weights than the one before."""
    with Workspace.open(settings) as workspace:
        record = going_live.live_release(workspace)[1]
        encoder = workspace.open_encoder(record.version)
        with torch.no_grad():
            next(encoder.model.parameters()).mul_(1.01)
        staged = settings.home / "staging/version"
        facts = {"strategy": "test", "root": record.version, "languages": ["en", "de"]}
        write_version(staged, encoder, facts, portable=True)
        version = workspace.releases.publish_version(staged)
        said = record.manifest.successor(record.id, version=version)
        release = workspace.releases.publish_release(said)
        going_live.promote(workspace, release, why="test", by="test")


@pytest.fixture
def settings(template: Path, tmp_path: Path) -> Settings:
    return load_settings(home=copy_of(template, tmp_path), poll_seconds=0.1)


def own_files(settings: Settings) -> list[Path]:
    """Every file that answering from what is live reads and the first release does not have."""
    with Workspace.open(settings) as workspace:
        releases, home = workspace.releases, workspace.home
        first, live = releases.release("r1"), releases.releases()[-1]
        number = releases.standing().highest
    folders = [
        [home.versions / one.version, home.generations / one.generation, one.folder] for one in (first, live)
    ]
    others, found = ([path for folder in every for path in folder.iterdir()] for every in folders)
    shared = {path.stat().st_ino for path in others}
    served = [path for path in found if not path.name.startswith(("state-", "sound.json"))]
    alone = [path for path in served if path.stat().st_ino not in shared]
    return sorted([*alone, home.commits / f"{number:08d}.json"])


def answers(settings: Settings) -> str:
    """Which release answers."""
    with Workspace.open(settings) as workspace:
        return Snapshot.load(workspace).release.id


def flips(settings: Settings, count: int) -> Iterator[tuple[str, float]]:
    """Flips so many bytes of what is served, one by one; yields what is wrong, or "", and the seconds to an answer."""
    files, newest = own_files(settings), answers(settings)
    assert {path.parent.parent.name for path in files} >= {"versions", "generations", "releases"}
    rng = random.Random(7)
    for number in range(count):
        path = files[number % len(files)]
        whole, at = path.read_bytes(), rng.randrange(path.stat().st_size)
        flip(path, at, keep_time=number % 2 == 0)
        began = time.monotonic()
        # Graphs are made again of the weights, to the byte; all else is stepped over.
        is_found = answers(settings) < newest or path.read_bytes() == whole
        seconds = time.monotonic() - began
        path.write_bytes(whole)
        is_back = answers(settings) == newest
        wrong = "" if is_found else f"byte {at} of {path} was not found"
        yield wrong or ("" if is_back else f"{path} was put back, and is not trusted"), seconds


def test_flipped_bytes_of_all_that_is_served_are_found_and_a_release_before_answers(
    settings: Settings,
) -> None:
    assert [wrong for wrong, _ in flips(settings, FLIPS) if wrong] == []


def test_what_rots_without_a_trace_is_found_right_after_the_start(settings: Settings) -> None:
    """What an earlier start noted as sound is read again, since a disk that rots changes neither size nor time."""
    newest = answers(settings)
    weights = next(path for path in own_files(settings) if path.name.startswith("weights"))
    flip(weights, -5)
    noted, seen = weights.with_name("sound.json"), weights.stat()
    # As if the byte had changed after this was noted.
    manifest = json.loads(weights.with_name("manifest.json").read_text())
    stamp = [manifest["files"][weights.name]["sha256"], seen.st_mtime_ns, seen.st_ctime_ns, seen.st_ino]
    noted.write_text(json.dumps({weights.name: stamp}))
    assert answers(settings) == newest
    with Workspace.open(settings) as workspace:
        serving = Serving(workspace)
        serving.start()
        try:
            _until(lambda: serving.snapshot().release.id < newest and bool(serving.degraded))
        finally:
            serving.stop()
    assert f"{weights.name} of version" in serving.degraded[0].what
    assert answers(settings) < newest


def test_graphs_that_rot_without_a_trace_are_made_again_while_the_release_answers(settings: Settings) -> None:
    newest = answers(settings)
    graph = next(path for path in own_files(settings) if path.name.startswith("search-text"))
    whole = graph.read_bytes()
    with Workspace.open(settings) as workspace:
        serving = Serving(workspace)
        assert serving.refresh()
        flip(graph, -5)
        serving._read_whole(serving.snapshot())
        assert serving.snapshot().release.id == newest
        assert serving.snapshot().encoder.encode_texts(["a boat"], "en").shape[0] == 1
    assert graph.read_bytes() == whole


@pytest.fixture
def rotten(settings: Settings) -> Settings:
    """The same, with a flipped byte in weights that the live version alone has."""
    flip(taught_weights(settings.home), -5)
    return settings


def taught_weights(home: Path) -> Path:
    """Returns weights that the newer one of a home's two versions alone has."""
    first, live = sorted(home.glob("versions/*/manifest.json"))
    known = [said["sha256"] for said in json.loads(first.read_text())["files"].values()]
    files = json.loads(live.read_text())["files"]
    return live.with_name(
        next(name for name, said in files.items() if "weights" in name and said["sha256"] not in known)
    )


def test_a_server_says_that_it_steps_down_everywhere(rotten: Settings) -> None:
    with served(rotten) as server, server.client() as client:
        assert client.post("/v1/search", json=QUESTION).json()["release"].startswith("r2-")
        ready = client.get("/readyz").json()
        assert ready["release"].startswith("r2-")
        (said,) = ready["degraded"]
        assert (said["part"], said["mend"]) == ("release", "perennial repair")
        assert said["since"]
        assert "weights" in said["what"]
        assert client.get("/v1/status").json()["degraded"] == [said]
        line = 'perennial_degraded_since_timestamp_seconds{mend="perennial repair",part="release"}'
        assert line in client.get("/metrics").text
    # Since when is kept, and another process says the same.
    time.sleep(1.1)
    run = CliRunner().invoke(app, ["status", "--home", str(rotten.home)])
    assert f"Since {said['since']}; `perennial repair` mends it." in run.output
    run = CliRunner().invoke(app, ["search", "a red boat", "--home", str(rotten.home)])
    assert "`perennial repair` mends it" in run.output


def test_pictures_that_were_taken_out_stay_hidden_and_later_ones_are_counted(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))
    with Workspace.open(settings) as workspace:
        first = LiveSnapshot(workspace).current
        adding.add_chunk(
            workspace, sample_chunk(tmp_path / "x.zip", pictures=4, first=3), IntakeOptions(), by="test"
        )
        out = workspace.catalog.gallery_ids()[0]
        workspace.catalog.withheld.take_out([out], by="test", why="private")
        live = workspace.releases.release(workspace.releases.current().release)  # type: ignore[union-attr]
        flip(workspace.home.generations / live.generation / "index-2.faiss", 60)
        serving = Serving(workspace)
        assert serving.refresh()
        serving._look_around()
        answering = serving.snapshot()
        hits = Finder(workspace).find(answering, Question.of("a red boat", 1000, language="en")).hits
    assert answering.release.id == first.release.id
    assert out in first.generation.ids
    assert out not in {hit.id for hit in hits}
    assert len(hits) == len(first.generation) - 1
    assert "4 pictures that came later are not found until then." in serving.degraded[0].what


def test_a_lost_index_is_made_again_of_vectors_that_are_kept(settings: Settings) -> None:
    newest = answers(settings)
    index = next(path for path in own_files(settings) if path.name.startswith("index"))
    flip(index, -5)
    run = CliRunner().invoke(app, ["repair", "--plan", "--json", "--home", str(settings.home)])
    said = json.loads(run.stdout)
    assert (said["pictures"], said["embedded"]) == (40, 0), said
    assert 0 < said["seconds"] < 10
    assert "become searchable again in about 1 s" in " ".join(said["steps"])
    assert answers(settings) < newest
    with Workspace.open(settings) as workspace:
        done = mend(workspace, by="test")
        again = Snapshot.load(workspace)
    assert done.images_embedded == 0
    assert (again.release.version, len(again.generation)) == (_version(settings, newest), 40)
    assert again.skipped == ()
    assert (
        "Nothing of what is live is damaged."
        in CliRunner().invoke(app, ["repair", "--home", str(settings.home)]).output
    )


def test_where_weights_are_lost_the_release_before_goes_live_with_all_pictures(rotten: Settings) -> None:
    newest = answers_with(rotten)
    assert newest.skipped
    with AtHome(rotten.model_copy(update={"jobs": "here"}), by="test") as desk:
        done = desk.follow(desk.repair().id, lambda _: None)
        assert (done.state, done.error) == ("succeeded", None)
        status = desk.status()
    assert status.degraded == ()
    again = answers_with(rotten)
    assert (again.skipped, again.release.version) == ((), newest.release.version)
    assert len(again.generation) == 40


@pytest.mark.parametrize("is_noticed", [False, True])
def test_nothing_is_built_on_a_release_that_answers_in_the_place_of_a_damaged_one(
    rotten: Settings, tmp_path: Path, is_noticed: bool
) -> None:
    if is_noticed:
        assert answers_with(rotten).skipped
    upload = sample_chunk(tmp_path / "x.zip", pictures=4, first=3)
    with Workspace.open(rotten) as workspace:
        commits, chunks = workspace.releases.history(), workspace.catalog.chunks()
        known = chunks[-1].id
        with pytest.raises(ReleaseDamaged, match="run `perennial repair`, then this again"):
            adding.add_chunk(workspace, upload, IntakeOptions(), by="test")
        with pytest.raises(ReleaseDamaged, match="run `perennial repair`, then this again"):
            update_cycle.update(
                workspace, UpdateRequest(known, by="test"), scratch=tmp_path, progress=lambda _: None
            )
        with pytest.raises(ReleaseDamaged, match="run `perennial repair`, then this again"):
            removal.plan(workspace, known, by="test")
        assert (workspace.releases.history(), workspace.catalog.chunks()) == (commits, chunks)
        mend(workspace, by="test")
        assert adding.add_chunk(workspace, upload, IntakeOptions(), by="test").commit


def test_where_the_manifest_of_weights_is_lost_it_is_mended_like_any_other_damage(settings: Settings) -> None:
    with Workspace.open(settings) as workspace:
        record = workspace.releases.release(workspace.releases.history()[-1].release)
        manifest = settings.home / "versions" / record.version / "manifest.json"
        manifest.chmod(0o644)
        manifest.write_bytes(b'{"files": [')
        assert plan(workspace).steps
        assert workspace.releases.damage.mark(record.version) is not None, "it is marked from then on"
        assert mend(workspace, by="test").release != record.id


def test_weights_that_nobody_taught_are_taken_from_the_installed_encoder(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    settings = load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path))
    newest = answers(settings)
    weights = max(settings.home.glob("versions/*/weights-*"), key=lambda path: path.stat().st_size)
    whole = weights.read_bytes()
    flip(weights, -5)
    with Workspace.open(settings) as workspace:
        with pytest.raises(NoRelease, match="perennial repair"):
            Snapshot.load(workspace)
        assert "from the installed encoder" in plan(workspace).steps[1]
        assert mend(workspace, by="test").release == newest
    assert weights.read_bytes() == whole
    assert answers(settings) == newest


def answers_with(settings: Settings) -> Snapshot:
    with Workspace.open(settings) as workspace:
        return Snapshot.load(workspace)


def _version(settings: Settings, release: str) -> str:
    with Workspace.open(settings) as workspace:
        return workspace.releases.release(release).version


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)
