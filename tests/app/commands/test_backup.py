"""Claims about backups: written while a server works, they are whole; what is made of one is the home that it was."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.client import Refused, connect
from app.desk.desk import Desk
from app.desk.errors import ParentMoved
from app.desk.hits import SearchRequest
from app.desk.opinions import Opinion
from app.home.backup_files import newest
from app.home.durable import KILLED
from app.home.package import sealed
from app.home.packs import records_of, write_pack
from app.home.published import sequence
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.jobs import requests, worker
from app.jobs.intake import receive
from app.jobs.job_runner import run_job
from app.local.at_home import AtHome
from ingest.catalog import Catalog
from ingest.intake import IntakeOptions
from ingest.records import FINAL_STATES
from tests.app.commands.running import document, run
from tests.app.doctor.test_damage_at_start import make_other_release, taught_weights
from tests.app.home.test_catalog_copy import rot
from tests.app.small_home import sample_chunk

pytestmark = pytest.mark.usefixtures("starts_at_once")

QUERIES = (("a red boat", "en"), ("zwei rote Boote", "de"), ("a green house and a tree", "auto"))


@contextmanager
def serving(home: Path) -> Iterator[Desk]:
    command = [sys.executable, "-u", "-m", "perennial", "serve", "--home", str(home), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        ready = next(line for line in server.stdout if "is ready" in line)
        try:
            with connect(ready.split("pages on ")[1].split("/ ")[0]) as desk:
                yield desk
        finally:
            server.send_signal(signal.SIGINT)
            server.wait(timeout=60)


def killed(fault: str, *words: object) -> None:
    command = [sys.executable, "-m", "perennial", *map(str, words)]
    done = subprocess.run(
        command, env=os.environ | {"PERENNIAL_FAULT": fault}, capture_output=True, check=False
    )
    assert done.returncode == KILLED, done.stderr


def backup(home: Path, to: Path) -> Any:
    return document("backup", to, home=home)


def answers(desk: Desk, release: str) -> list[Any]:
    asked = (SearchRequest(text=text, language=tag, release=release, k=20) for text, tag in QUERIES)
    return [[(hit.id, round(hit.score or 0.0, 5)) for hit in desk.search(one).hits] for one in asked]


class Busy:
    """Adds, promotes, rolls back and prunes until it is told to stop; a failure is raised at the end."""

    def __init__(self, own: Desk, server: Desk, folder: Path) -> None:
        self._own, self._server, self._folder = own, server, folder
        self._stopping = threading.Event()
        self._added = threading.Semaphore(0)
        self.chunks: list[str] = []  # that were acknowledged
        self._spared = sys.maxsize  # releases from this number on are not pruned
        self._failed: list[BaseException] = []

    def __enter__(self) -> Busy:
        self._threads = [
            threading.Thread(target=self._loop, args=(work,)) for work in (self._add, self._change)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        for error in self._failed:
            raise error

    def wait(self, chunks: int) -> None:
        """Waits until so many more were taken in."""
        for _ in range(chunks):
            assert self._added.acquire(timeout=120), self._failed

    def spare(self) -> None:
        """Prunes nothing that is the newest release now, or becomes it: one of them will be live in a backup."""
        self._spared = max(sequence(one.id) for one in self._server.releases())

    def _loop(self, work: Callable[[int], None]) -> None:
        try:
            for turn in range(1000):
                work(turn)
                if self._stopping.wait(0.05):
                    return
        except BaseException as error:  # noqa: BLE001 - told by who waits
            self._failed.append(error)

    def _add(self, turn: int) -> None:
        file = sample_chunk(self._folder / f"busy-{turn}.zip", pictures=2, first=turn + 1)
        while True:
            try:
                self.chunks.append(self._own.add_chunk(file, IntakeOptions(), lambda _: None).chunk.id)
            except ParentMoved:  # too busy a home to get a word in; the same again, as it says
                continue
            self._added.release()
            return

    def _change(self, turn: int) -> None:
        try:
            self._server.promote("r2", "drill", True) if turn % 2 else self._server.roll_back("r1", "drill")
            plan = self._server.prune_plan(3)
            going = [one.release for one in plan.going if sequence(one.release) < self._spared]
            self._server.prune(going, 3, "drill")
        except Refused as error:
            if error.code not in {
                "parent_moved",
                "update_running",
                "usage_problem",
                "release_pruned",
            }:  # an addition came between
                raise


def test_a_home_is_restored_from_a_backup_that_was_written_while_its_server_worked(
    home: Path, tmp_path: Path
) -> None:
    to, there = tmp_path / "backups", tmp_path / "there"
    with serving(home) as desk:
        hit = desk.search(SearchRequest(text="a red boat", language="en")).hits[0].id
        desk.give_feedback(Opinion(query="a red boat", release="r2", image=hit, verdict="up"))
        own = AtHome(load_settings(home=home, ask_server=False), by="drill")
        with own, Busy(own, desk, tmp_path) as busy:
            busy.wait(3)
            before = list(busy.chunks)
            busy.spare()
            written = backup(home, to)
            busy.wait(1)
        release = written["release"]
        expected = answers(desk, release)
    done = document("restore", to, "--sha256", written["sha256"], home=there)
    assert done["release"] == release
    with serving(there) as desk:
        waiting = [job.id for job in desk.jobs() if job.state not in FINAL_STATES]
        assert [desk.follow(job, lambda _: None).state for job in waiting] == ["succeeded"]
        assert answers(desk, release) == expected
        assert set(before) <= {chunk.id for chunk in desk.chunks(probes=True)}
        assert [one.query for one in desk.feedback().feedback] == ["a red boat"]
    found = document("doctor", home=there)
    assert {one["level"] for one in found["found"]} == {"ok"}, found


@pytest.fixture(scope="module")
def written(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup not to be changed."""
    return Path(backup(template, tmp_path_factory.mktemp("backups"))["path"])


@pytest.fixture
def copy(written: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(written, tmp_path / written.name))


def seal(backup: Path, change: Callable[[dict[str, Any]], None] = lambda _: None) -> None:
    """Makes all checksums fit what lies there, as whoever forges a backup would."""
    facts = json.loads((backup / "backup.json").read_bytes())
    for name in facts["files"]:
        if (backup / name).is_file():
            data = (backup / name).read_bytes()
            facts["files"][name] = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    change(facts)
    (backup / "backup.json").write_bytes(sealed(facts))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def weights(backup: Path) -> Path:
    return next(backup.glob("versions/*/weights-*"))


def linked(path: Path) -> None:
    path.symlink_to(path.rename(path.parent / "elsewhere"))


def cut(backup: Path) -> None:
    os.truncate(weights(backup), 99)


def grown(backup: Path) -> None:
    weights(backup).write_bytes(weights(backup).read_bytes() + b"x")


def newer(backup: Path) -> None:
    (backup / "FORMAT").write_text("9\n")
    seal(backup)


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def named(name: str) -> Callable[[Path], None]:
    return lambda backup: seal(backup, lambda facts: facts["files"].update({name: facts["files"]["FORMAT"]}))


def repacked(backup: Path, change: Callable[[bytes, bytes], tuple[bytes, bytes]]) -> None:
    pack = next(backup.glob("blobs-*.pack"))
    with pack.open("rb") as file:
        records = [change(*record) for record in records_of(file)]
    pack.unlink()
    write_pack(pack, records)
    seal(backup)


def with_trigger(backup: Path) -> None:
    with closing(sqlite3.connect(backup / "catalog.sqlite")) as opened:
        opened.execute("CREATE TRIGGER x AFTER INSERT ON jobs BEGIN DELETE FROM images; END")
    seal(backup)


FORGED: dict[str, tuple[Callable[[Path], None], str]] = {
    "a byte": (lambda one: flip(weights(one)), "is not what its manifest says"),
    "a byte of a pack": (lambda one: flip(next(one.glob("blobs-*"))), "refused"),
    "a byte of the manifest": (lambda one: flip(one / "backup.json"), "holds no backup"),
    "cut short": (cut, "is not what its manifest says"),
    "grown": (
        grown,
        "is not what its manifest says",
    ),
    "missing": (lambda one: weights(one).unlink(), "cannot be read"),
    "a link in place of a file": (lambda one: linked(weights(one)), "cannot be read"),
    "a link in place of a folder": (lambda one: linked(one / "versions"), "is a link"),
    "a pipe": (lambda one: piped(one / "FORMAT"), "is no file"),
    "a name above": (named("versions/../x"), "which no backup has"),
    "an absolute name": (named("/tmp/x"), "which no backup has"),
    "a name of ours that is none of a backup": (named("updater.lock"), "which no backup has"),
    "no size": (lambda one: seal(one, lambda facts: facts["files"]["FORMAT"].update(bytes=-1)), "how large"),
    "no catalog": (
        lambda one: seal(one, lambda facts: facts["files"].pop("catalog.sqlite")),
        "has no catalog",
    ),
    "a newer format": (lambda one: seal(one, lambda facts: facts.update(format=2)), "has format 2"),
    "a newer home": (newer, "of a home of format 9"),
    "another picture": (lambda one: repacked(one, lambda key, data: (key, data + b"x")), "another picture"),
    "a trigger": (with_trigger, "'x', which none of ours has"),
    "another release": (lambda one: seal(one, lambda facts: facts.update(release="r1")), "another release"),
}


@pytest.mark.parametrize("what", FORGED)
def test_a_backup_that_is_not_what_was_written_makes_no_home(copy: Path, tmp_path: Path, what: str) -> None:
    harm, said = FORGED[what]
    harm(copy)
    home = tmp_path / "made" / "home"
    done = run("restore", copy, home=home)
    assert done.exit_code in {1, 2}, done.output
    assert said in " ".join(done.output.split())
    assert "unexpected" not in done.output
    assert not home.parent.exists() or not list(home.parent.iterdir())
    assert not (tmp_path / "x").exists()


def test_a_backup_of_a_damaged_home_is_restored_with_its_newest_whole_release(
    home: Path, tmp_path: Path
) -> None:
    make_other_release(load_settings(home=home))
    damaged = taught_weights(home)
    sound = damaged.read_bytes()
    flip(damaged)
    first = backup(home, tmp_path / "backups")
    (tmp_path / "made").mkdir()  # nothing is logged there meanwhile, or the home could not take its place
    made = document("restore", first["path"], home=tmp_path / "made")
    for told in (first, made):
        assert told["release"].startswith("r2-"), told
        assert damaged.name in told["passed_over"]
    assert "`perennial repair` mends it" in run("search", "a red boat", home=tmp_path / "made").output
    # What was damaged in a backup is not taken over from there once the home is mended.
    damaged.write_bytes(sound)
    second = backup(home, tmp_path / "backups")
    made = document("restore", second["path"], home=tmp_path / "again")
    assert (made["release"][:3], second["passed_over"], made["passed_over"]) == ("r3-", "", "")
    for weights_of_a_version in home.glob("versions/*/weights-*"):
        flip(weights_of_a_version)
    refused = run("backup", tmp_path / "backups", home=home)
    assert (refused.exit_code, "`perennial repair` first" in " ".join(refused.output.split())) == (1, True)
    assert len(list((tmp_path / "backups").glob("perennial-*"))) == 2


def test_a_backup_is_the_one_that_was_written_where_its_sha256_is_told(written: Path, tmp_path: Path) -> None:
    done = run("restore", written, "--sha256", "0" * 64, home=tmp_path / "home")
    assert (done.exit_code, "another than was given" in done.output) == (1, True), done.output


def test_a_home_is_made_again_and_no_home_is_replaced(template: Path, written: Path, tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    document("restore", written.parent, home=home)
    was, desk = (AtHome(load_settings(home=one, ask_server=False), by="test") for one in (template, home))
    with was, desk:
        assert answers(desk, "r2") == answers(was, "r2")
    assert {one["level"] for one in document("doctor", home=home)["found"]} == {"ok"}
    for taken in (home, template):
        done = run("restore", written, home=taken)
        assert (done.exit_code, "replaces nothing" in done.output) == (2, True), done.output
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    done = run("restore", written, home=tmp_path / "link")
    assert (done.exit_code, "link/home" in "".join(done.output.split())) == (2, True), done.output


def test_a_second_backup_has_what_is_new_and_nothing_that_was_removed(home: Path, tmp_path: Path) -> None:
    to = tmp_path / "backups"
    first = backup(home, to)
    with AtHome(load_settings(home=home, ask_server=False), by="test") as desk:
        desk.add_chunk(sample_chunk(tmp_path / "x.zip", pictures=3, first=3), IntakeOptions(), lambda _: None)
    second = backup(home, to)
    assert second["new_bytes"] < first["new_bytes"] / 4
    assert second["bytes"] > first["bytes"]
    first_files, second_files = (
        {path.stat().st_ino for path in Path(one["path"]).glob("versions/*/*")} for one in (first, second)
    )
    assert first_files == second_files
    with Workspace.open(load_settings(home=home)) as workspace:
        removed = workspace.catalog.gallery_ids()[0]
        workspace.catalog.forget([removed])
        workspace.blobs.delete([removed])
    third = Path(backup(home, to)["path"])
    for pack in third.glob("blobs-*.pack"):
        with pack.open("rb") as file:
            assert removed not in {key[1:].hex() for key, _ in records_of(file)}


@pytest.mark.parametrize("harm", ["cut short", "missing"])
@pytest.mark.parametrize("what", ["blobs-*.pack", "versions/*/weights-*"])
def test_what_an_earlier_backup_has_lost_is_written_again(
    home: Path, tmp_path: Path, what: str, harm: str
) -> None:
    first = Path(backup(home, tmp_path / "backups")["path"])
    for lost in first.glob(what):
        data = lost.read_bytes()
        lost.unlink()  # on the home's own disk it is a second name of the home's file
        if harm == "cut short":
            lost.write_bytes(data[:-9])
    second = backup(home, tmp_path / "backups")
    restored = document("restore", second["path"], home=tmp_path / "there")
    assert restored["backup"] == second["path"]


def test_the_newest_backup_is_the_last_one_written_whatever_the_clock_says(
    home: Path, tmp_path: Path
) -> None:
    to = tmp_path / "backups"
    backup(home, to)
    last = Path(backup(home, to)["path"])
    early = last.rename(last.with_name("perennial-20200101-000000"))
    found = newest(to)
    assert found is not None
    assert found.folder == early
    assert document("restore", to, home=tmp_path / "there")["backup"] == str(early)


def test_uploads_that_wait_go_on_and_nothing_else_does(home: Path, tmp_path: Path) -> None:
    settings = load_settings(home=home)
    uploads = [sample_chunk(home / "inbox" / f"{name}.zip", pictures=2) for name in "ab"]
    options = IntakeOptions(pictures_beside=False)  # as a server takes uploads
    plain = requests.intake_job(settings, uploads[0], options, by="test")
    fetching = requests.intake_job(settings, uploads[1], replace(options, fetch=True), by="test")
    folder = worker.submit(settings, "folder", {"folder": "/etc", "by": "test"})
    escaping = worker.submit(settings, "ingest", {"source": "../../FORMAT", "by": "test", "options": {}})
    there = tmp_path / "there"
    done = document("restore", backup(home, tmp_path / "backups")["path"], home=there)
    assert set(done["ended_jobs"]) == {fetching.id, folder.id, escaping.id}
    with Catalog.open(there / "catalog.sqlite") as catalog:
        waiting = {job.kind for job in catalog.jobs(state="queued")}
    assert waiting == {"ingest", "gallery"}
    assert run_job(load_settings(home=there), plain.id) == 0


def test_a_file_with_a_name_that_no_backup_has_is_left_out_and_named(home: Path, tmp_path: Path) -> None:
    settings = load_settings(home=home)
    upload = sample_chunk(home / "inbox" / "a.zip", pictures=2)
    assert receive(upload.rename(upload.with_name("urlaub.größe.zip")), home / "inbox").suffixes == [".zip"]
    strange = upload.with_name("urlaub.größe.zip").rename(home / "inbox" / "a.größe.zip")
    options = IntakeOptions(pictures_beside=False)
    job = requests.intake_job(settings, strange, options, by="test")  # as an earlier release took it
    written = backup(home, tmp_path / "backups")
    assert written["left_out"] == [f"staging/{job.id}/a.größe.zip"]
    assert document("restore", written["path"], home=tmp_path / "there")["ended_jobs"] == [job.id]


@pytest.mark.parametrize("step", ["fsync-files", "rename"])
def test_a_backup_or_a_restore_that_was_killed_is_none_and_is_made_again(
    home: Path, tmp_path: Path, step: str
) -> None:
    to, there = tmp_path / "backups", tmp_path / "there"
    killed(f"backup:{step}", "backup", to, "--home", home)
    assert not list(to.glob("perennial-*"))
    assert run("restore", to, home=there).exit_code == 2
    written = backup(home, to)
    assert [path.name for path in to.iterdir() if path.name != ".lock"] == [Path(written["path"]).name]
    killed(f"restore:{step}", "restore", to, "--home", there)
    assert not there.exists()
    document("restore", to, home=there)
    assert sorted(path.name for path in tmp_path.iterdir() if "restoring" in path.name) == []


def test_a_damaged_catalog_is_not_backed_up(home: Path, tmp_path: Path) -> None:
    rot(home / "catalog.sqlite")
    done = run("backup", tmp_path / "backups", home=home)
    assert (done.exit_code, "perennial repair" in done.output) == (1, True), done.output
    assert not list((tmp_path / "backups").glob("perennial-*"))


def test_a_place_in_the_home_or_nowhere_is_refused(template: Path, tmp_path: Path) -> None:
    for place in (template / "backups", tmp_path / "no" / "such"):
        assert run("backup", place, home=template).exit_code == 2
