"""Claims about a home whose pictures and releases lie in a bucket: it is the same home, and comes there serving."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.errors import ParentMoved, ReleaseDamaged, UpdateRunning, UsageProblem
from app.desk.hits import SearchRequest
from app.home import engines, garbage, in_bucket, lock
from app.home.backup import write_backup
from app.home.durable import FAULT_VARIABLE, KILLED, PUSH_POINTS, sha256_of
from app.home.folder import Home
from app.home.objects_move import DECIDED, HERE, move_objects
from app.home.settings import load_settings
from app.home.store import ReleaseStore
from app.home.workspace import Workspace
from app.learning import adding, mending
from app.local.at_home import AtHome
from ingest.catalog import Catalog
from ingest.intake import IntakeOptions
from ingest.leases import Holder
from ingest.objects import Objects
from tests.app.server.served import sample_upload, search, served
from tests.app.small_home import copy_of, sample_chunk, small_home
from tests.bucket import S3, bucket
from tests.ingest.test_carrying import soon

ASKED = ({"text": "a red boat"}, {"text": "ein rotes Boot", "language": "de"}, {"domains": ["scenes"]})


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home.open(copy_of(small_home(tmp_path_factory), tmp_path))


@pytest.fixture(params=["file", S3])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with bucket(request.param, tmp_path, monkeypatch) as given:
        yield given


def answers(home: Home) -> list[object]:
    with AtHome(load_settings(home=home.root, ask_server=False), by="test") as desk:
        found = [desk.search(SearchRequest(**asked)) for asked in ASKED]
        return [(one.release, [(hit.id, hit.score) for hit in one.hits]) for one in found]


def empty(home: Home) -> None:
    """Takes away what lies in the bucket, so that all of it has to come from there."""
    for folder in (home.blobs, home.versions, home.generations, home.releases):
        shutil.rmtree(folder)
    for folder in (home.versions, home.generations, home.releases):
        folder.mkdir()


def test_a_home_answers_the_same_from_a_bucket_and_back_home(
    home: Home, address: str, tmp_path: Path
) -> None:
    before = answers(home)
    done = move_objects(home, f"{address}/")
    assert done.objects == address
    assert done.records > 80
    assert done.folders == len(ReleaseStore(home).names()) + 3
    empty(home)
    assert answers(home) == before
    with Workspace.open(load_settings(home=home.root)) as workspace:
        adding.add_chunk(workspace, sample_chunk(tmp_path / "more.zip", first=3), IntakeOptions(), by="test")
        ids = workspace.catalog.gallery_ids()
        assert all(workspace.blobs.contains(ids))
        assert not workspace.blobs.damage(ids[-1])
        kept = {one: workspace.blobs.original(one) for one in ids}
    after = answers(home)
    assert after != before
    assert move_objects(home, HERE).records == done.records + 2 * 40
    assert not (home.root / engines.FILE).exists()
    assert answers(home) == after
    with Workspace.open(load_settings(home=home.root)) as workspace:
        assert {one: workspace.blobs.original(one) for one in workspace.catalog.gallery_ids()} == kept
    assert move_objects(home, address).records == done.records + 2 * 40  # into the bucket that was left
    empty(home)
    assert answers(home) == after


def test_a_home_is_carried_while_it_answers_and_takes_in(home: Home, address: str, tmp_path: Path) -> None:
    answered, failed, stopping = list[int](), list[str](), threading.Event()
    with served(load_settings(home=home.root, poll_seconds=0.1, jobs="elsewhere")) as server:

        def ask() -> None:
            with server.client() as client:
                while not stopping.is_set():
                    hit = search(client)["hits"][0]
                    told = client.get(f"/v1/images/{hit['id']}/thumbnail")
                    answered.append(told.status_code)
                    if told.status_code != 200:
                        failed.append(told.text)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            with server.client() as client:
                for number, to in enumerate((address, HERE, address)):
                    move_objects(home, to)
                    job = take_in(
                        client, sample_upload(tmp_path / "more.zip", first=60 + 5 * number, count=3)
                    )
                    assert server.ended(job).state == "succeeded"
        finally:
            stopping.set()
            asking.join()
    assert not failed
    assert len(answered) > 10


def take_in(client: httpx.Client, upload: Path) -> str:
    with upload.open("rb") as file:
        told = client.post("/v1/chunks", files={"file": file})
    assert told.status_code == 202, told.text
    return str(told.json()["job"]["id"])


@pytest.mark.parametrize("point", [DECIDED, *PUSH_POINTS])
def test_killed_at_any_moment_it_is_where_it_was_and_asking_again_finishes(
    home: Home, tmp_path: Path, point: str
) -> None:
    before, address = answers(home), f"file://{tmp_path}/bucket"
    command = [
        sys.executable,
        "-m",
        "perennial",
        "home",
        "move",
        "--objects",
        address,
        "--home",
        str(home.root),
    ]
    if point != DECIDED:
        move_objects(home, address)
        command = [sys.executable, "-m", "perennial", "ingest", str(sample_upload(tmp_path / "more.zip"))]
        command += ["--home", str(home.root)]
    ended = subprocess.run(command, env={**os.environ, FAULT_VARIABLE: point}, check=False, timeout=120)
    if point == "version:push":  # taking pictures in publishes none
        assert ended.returncode == 0
        return
    assert ended.returncode == KILLED
    assert answers(home) == before
    if point == DECIDED:
        assert engines.read(home.root).objects is None
        move_objects(home, address)
        assert answers(home) == before
        return
    with Workspace.open(load_settings(home=home.root)) as workspace:
        adding.extend_gallery(workspace, why="again", by="test")
        assert len(workspace.catalog.gallery_ids()) > 40
    empty(home)
    assert answers(home) != before


def test_what_is_damaged_here_is_fetched_again(home: Home, address: str) -> None:
    before = answers(home)
    move_objects(home, address)
    index = max(home.generations.iterdir()) / "index.faiss"
    data = bytearray(index.read_bytes())
    data[-9] ^= 1
    index.write_bytes(data)
    with Workspace.open(load_settings(home=home.root)) as workspace:
        done = mending.mend(workspace, by="test")
        assert done.images_embedded == 0
        assert "fetched again" in done.sentence
    assert answers(home) == before


def test_a_picture_that_is_removed_for_good_is_in_no_object(home: Home, tmp_path: Path) -> None:
    move_objects(home, f"file://{tmp_path}/bucket")
    with Workspace.open(load_settings(home=home.root)) as workspace:
        image = workspace.catalog.gallery_ids()[0]
        original = workspace.blobs.original(image)
        workspace.blobs.delete([image])
    assert not any(original in path.read_bytes() for path in (tmp_path / "bucket" / "packs").iterdir())
    move_objects(home, HERE)
    assert original not in (home.blobs / "data.mdb").read_bytes()
    with Workspace.open(load_settings(home=home.root)) as workspace:
        assert workspace.blobs.contains([image]) == [False]
        assert len(list(workspace.blobs.ids())) > 80


def test_what_a_release_alone_had_goes_with_it(home: Home, tmp_path: Path) -> None:
    move_objects(home, f"file://{tmp_path}/bucket")
    store = ReleaseStore(home)
    live = store.current()
    assert live is not None
    (old,) = [name for name in store.names() if name != live.release]
    before = {path.name for path in (tmp_path / "bucket" / "files").iterdir()}
    generation = store.release(old).generation
    assert garbage.prune(store, [old], by="test", why="room") == [generation]
    gone = before - {path.name for path in (tmp_path / "bucket" / "files").iterdir()}
    assert gone
    assert store.release(old).pruned is not None
    empty(home)
    assert store.release(old).pruned is not None
    store.verify_release(live.release)
    move_objects(home, HERE)
    assert ReleaseStore(home).release(old).pruned is not None


def test_a_bucket_is_one_homes(home: Home, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    address = f"file://{tmp_path}/bucket"
    move_objects(home, address)
    assert move_objects(home, address).records == 0  # once more is no error
    other = Home.open(copy_of(small_home(tmp_path_factory), tmp_path, "other"))
    with pytest.raises(UsageProblem, match="another home's pictures"):
        move_objects(other, address)
    with pytest.raises(UsageProblem, match="Carry them back first"):
        move_objects(home, f"file://{tmp_path}/second")
    with pytest.raises(UsageProblem, match="in the home already"):
        move_objects(other, HERE)
    assert Objects(address).size("perennial.json")


def test_a_bucket_that_lost_its_mark_is_not_taken_for_empty(home: Home, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/bucket"
    move_objects(home, address)
    before = answers(home)
    (tmp_path / "bucket").rename(tmp_path / "away")
    for there in (False, True):
        if there:
            (tmp_path / "bucket").mkdir()  # as where nothing is mounted
        with pytest.raises(UsageProblem, match="Is its disk there"):
            move_objects(home, address)
    shutil.rmtree(tmp_path / "bucket")
    (tmp_path / "away").rename(tmp_path / "bucket")
    empty(home)
    assert answers(home) == before


def test_what_is_damaged_here_is_not_published_elsewhere(home: Home, tmp_path: Path) -> None:
    store = ReleaseStore(home)
    live = store.current()
    assert live is not None
    (old,) = [store.release(name) for name in store.names() if name != live.release]
    index = home.generations / old.generation / "index.faiss"
    data = bytearray(index.read_bytes())
    data[-1] ^= 1
    index.write_bytes(data)
    done = move_objects(home, f"file://{tmp_path}/bucket")
    assert done.left_out == (old.generation,)
    data[-1] ^= 1
    index.write_bytes(data)
    assert move_objects(home, f"file://{tmp_path}/bucket").left_out == ()
    empty(home)
    ReleaseStore(home).verify_release(old.id)


def test_it_is_not_carried_back_while_another_machine_serves(home: Home, tmp_path: Path) -> None:
    move_objects(home, f"file://{tmp_path}/bucket")
    other = Holder("another", "other.example.org", 7, "serving", "2026-11-28T10:00:00+00:00", 0.0)
    with Catalog.open(home.catalog) as catalog:
        catalog.leases.say(f"{engines.read(home.root).home[:16]}:machine-another", other)
        with pytest.raises(UpdateRunning, match=r"other.example.org \(serving\)"):
            move_objects(home, HERE)
        catalog.leases.say(f"{engines.read(home.root).home[:16]}:machine-another", other, seconds=0.0)
    time.sleep(0.1)
    move_objects(home, HERE)


def test_two_that_go_live_at_once_on_one_machine_take_turns(home: Home, tmp_path: Path) -> None:
    move_objects(home, f"file://{tmp_path}/bucket")
    store = ReleaseStore(home)
    live = store.current()
    assert live is not None
    told: list[object] = []

    def promote(by: str) -> None:
        try:
            told.append(
                ReleaseStore(home).commit(live.release, parent=live.number, reason="promote", why="a", by=by)
            )
        except ParentMoved as error:
            told.append(error)

    both = [threading.Thread(target=promote, args=(by,)) for by in ("one", "two")]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert sorted(type(one).__name__ for one in told) == ["CommitRecord", "ParentMoved"]


def test_it_is_not_carried_while_a_job_writes(home: Home, tmp_path: Path) -> None:
    (home.root / "workers").mkdir(exist_ok=True)
    with lock.hold(home.root / "workers" / "j7.lock", "job j7"), pytest.raises(UpdateRunning, match="j7"):
        move_objects(home, f"file://{tmp_path}/bucket")
    assert engines.read(home.root).objects is None


def test_what_cannot_be_done_with_a_bucket_is_said(home: Home, tmp_path: Path) -> None:
    address = f"file://{tmp_path}/bucket"
    runner = CliRunner()
    for told, says in (
        (["home", "move"], "`--to` the catalog, `--objects` pictures"),
        (["home", "join"], "home join --to postgresql://"),
        (["home", "move", "--objects", "ftp://host/a"], "no address of a bucket"),
    ):
        refused = runner.invoke(app, [*told, "--home", str(home.root)])
        assert (refused.exit_code, says in " ".join(refused.output.split())) == (2, True), refused.output
    moved = runner.invoke(app, ["home", "move", "--objects", address, "--home", str(home.root)])
    assert moved.exit_code == 0, moved.output
    assert f"lie in {address} now" in " ".join(moved.output.split())
    with pytest.raises(UsageProblem, match="carry both back first"):
        write_backup(home, tmp_path / "backup", lambda _: None)
    said = runner.invoke(app, ["status", "--home", str(home.root)])
    assert f"Pictures and releases lie in {address}." in " ".join(said.output.split())


def test_a_bucket_that_has_gone_is_said_and_searching_goes_on(home: Home, tmp_path: Path) -> None:
    move_objects(home, f"file://{tmp_path}/bucket")
    (tmp_path / "bucket").rename(tmp_path / "away")
    with served(load_settings(home=home.root, poll_seconds=0.1)) as server, server.client() as client:
        soon(server.serving.workspace.catalog)
        hit = search(client)["hits"][0]
        told = client.get(f"/v1/images/{hit['id']}/thumbnail")
        assert told.status_code == 503, told.text
        assert "as if its disk were away" in told.text
        (tmp_path / "away").rename(tmp_path / "bucket")
        assert client.get(f"/v1/images/{hit['id']}/thumbnail").status_code == 200


def test_repair_and_doctor_say_what_the_bucket_lacks_or_that_it_cannot_be_asked(
    home: Home, tmp_path: Path
) -> None:
    address, place = f"file://{tmp_path}/bucket", tmp_path / "bucket"
    move_objects(home, address)

    def said(*verb: str) -> str:
        return " ".join(CliRunner().invoke(app, [*verb, "--home", str(home.root)]).output.split())

    assert "Everything is in the bucket" in said("doctor", "--quick")
    assert said("repair") == "Nothing of what is live is damaged."
    (pack,) = (place / "packs").iterdir()
    pack.rename(tmp_path / "pack")
    for verb in (["repair"], ["doctor", "--quick"]):
        found = said(*verb)
        assert f"1 of 1 packs of pictures are missing in the bucket {address}. Look whether" in found
        assert "Files of" not in found
    shutil.rmtree(place / "files")
    torn = "Files of 3 of 5 versions, indexes and releases are missing or damaged"
    assert torn in said("repair", "--plan")  # a release has none but its manifest
    assert re.search(r"`perennial repair` puts back \d+ files", said("doctor", "--quick"))
    place.rename(tmp_path / "elsewhere")
    for verb in (["repair"], ["repair", "--plan"], ["doctor", "--quick"]):
        assert "Whether everything is in the bucket is not known. The bucket" in said(*verb)


def test_repair_puts_back_what_the_bucket_lost_or_has_damaged(home: Home, tmp_path: Path) -> None:
    address, place = f"file://{tmp_path}/bucket", tmp_path / "bucket"
    move_objects(home, address)
    before = {file.name: file.read_bytes() for file in (place / "files").iterdir()}
    lost, short, rotten, *_ = (place / "files").iterdir()
    rotten.write_bytes(bytes(len(before[rotten.name])))
    other = Home.open(shutil.copytree(home.root, tmp_path / "other"))
    empty(other)
    for name in ReleaseStore(other).names():  # another machine finds out what listing does not
        with suppress(ReleaseDamaged):
            ReleaseStore(other).verify_release(name)
    lost.unlink()
    short.write_bytes(short.read_bytes()[:-1])
    with Workspace.open(load_settings(home=home.root)) as workspace:
        lacking = in_bucket.lacking(home, workspace.catalog)
        assert lacking.copies.keys() == {lost.name, short.name, rotten.name}
        told = mending.mend(workspace, by="test").sentence
        assert f"3 files were put back in the bucket {address}." in told
        assert in_bucket.lacking(home, workspace.catalog).said == ""
    assert {file.name: file.read_bytes() for file in (place / "files").iterdir()} == before
    for name in ReleaseStore(other).names():
        ReleaseStore(other).verify_release(name)


def test_a_damaged_copy_is_not_put_back(home: Home, tmp_path: Path) -> None:
    place = tmp_path / "bucket"
    move_objects(home, f"file://{place}")
    live = ReleaseStore(home).current()
    assert live is not None
    generation = home.generations / ReleaseStore(home).release(live.release).generation
    index = generation / "index.faiss"
    (generation / "manifest.json").write_text("torn")
    (place / "files" / sha256_of(index)).unlink()
    index.write_bytes(bytes(index.stat().st_size))
    with home.open_catalog() as catalog:
        assert "Files of 1 of 5" in in_bucket.put_back(home, catalog)
        assert in_bucket.lacking(home, catalog).copies == {}
