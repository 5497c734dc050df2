"""Claims about a home whose catalog lies in a database: it is the same home, and becomes one while it serves."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import sqlalchemy as sa
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.errors import HomeDamaged, UpdateRunning, UsageProblem
from app.desk.hits import SearchRequest
from app.desk.jobs import Stage, UpdateRequest
from app.desk.troubles import trouble_of
from app.home import engines, lock
from app.home.backup import write_backup
from app.home.backup_files import newest
from app.home.backup_holding import at_one_moment
from app.home.catalog_copy import copying, damage_in, damage_of, keep_copy
from app.home.catalog_move import DECIDED, HERE, move_catalog
from app.home.durable import FAULT_VARIABLE, KILLED
from app.home.folder import Home
from app.home.objects_move import move_objects
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.jobs import worker
from app.learning import adding, going_live, pictures, update_cycle
from app.learning.index_move import move_index
from app.learning.restoring import restore
from app.local.at_home import AtHome
from index import elsewhere
from ingest.carrying import carry
from ingest.catalog import Catalog
from ingest.engines import writing
from ingest.errors import CatalogError, CatalogMissing, CatalogUnreachable
from ingest.intake import IntakeOptions
from ingest.schema import SCHEMA
from tests.app.server.served import make_home, sample_upload, search, served
from tests.app.small_home import copy_of, sample_chunk, small_home
from tests.bucket import bucket
from tests.ingest.material import folder_of, picture
from tests.ingest.test_carrying import soon

GATE: dict[str, Any] = {"samples": 200, "minimum_images": 2}
LEARNING = {"epochs": 2, "batch_size": 32}
ASKED: tuple[dict[str, Any], ...] = (
    {"text": "a red boat"},
    {"text": "ein rotes Boot", "language": "de"},
    {"text": "a boat", "where": "width > 10"},
    {"domains": ["scenes"]},
)


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home.open(copy_of(small_home(tmp_path_factory), tmp_path))


def database(place: Path) -> str:
    from tests.postgres_server import schema_for

    return schema_for(place)


@pytest.mark.parametrize(
    ("to", "says"),
    [
        ("mysql://host/pictures", "PostgreSQL is the one database"),
        ("mysql://host/pictures?password=secret", "holds a password"),
        ("postgresql://ada:secret@host:port/pictures", "no address of a database"),
        ("postgresql://host/pictures?sslpassword=secret", "holds a password"),
        ("postgresql://ada:secret@host/pictures", "holds a password"),
        ("postgresql://host/pictures?password=secret", "holds a password"),
        ("the database", "no address of a database"),
        ("postgresql://ada@127.0.0.1:1/pictures", "cannot be reached"),
    ],
)
def test_what_is_no_place_for_a_catalog_is_refused_and_nothing_changes(
    home: Home, to: str, says: str
) -> None:
    with pytest.raises(CatalogError, match=says) as refused:
        move_catalog(home, to)
    assert "secret" not in str(refused.value)
    assert home.catalog_place == home.catalog
    with Catalog.open(home.catalog_place) as catalog:
        catalog.add_job("gallery")


def test_it_is_not_carried_to_where_it_is_nor_while_a_job_writes(home: Home) -> None:
    with pytest.raises(UsageProblem, match="already"):
        move_catalog(home, HERE)
    (home.root / "workers").mkdir(exist_ok=True)
    with lock.hold(home.root / "workers" / "j7.lock", "job j7"), pytest.raises(UpdateRunning, match="j7"):
        move_catalog(home, "postgresql://host/pictures")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("catalog = ", "no TOML"),
        ("catalog = 'mysql://host/pictures'", "mysql"),
        ("catalog = 7", "7"),
        ("pictures = 's3://bucket'", "'pictures'"),
        ("commits = 'catalog'", "they lie with the catalog"),
        ("catalog = 'postgresql://host/pictures'\ncommits = 's3://bucket'", "they lie with the catalog"),
    ],
)
def test_what_a_home_says_of_its_engines_is_understood_or_refused(home: Home, text: str, says: str) -> None:
    (home.root / engines.FILE).write_text(text, encoding="utf-8")
    with pytest.raises(HomeDamaged, match=says):
        Workspace.open(Settings(home=home.root))


def test_a_database_that_does_not_answer_is_said_and_no_empty_catalog_is_made(home: Home) -> None:
    engines.write(home.root, engines.Engines("postgresql://ada@127.0.0.1:1/pictures", commits=True))
    with pytest.raises(CatalogUnreachable, match="127.0.0.1"):
        Workspace.open(Settings(home=home.root))
    engines.write(home.root, engines.Engines())
    with Workspace.open(Settings(home=home.root)) as workspace:
        assert workspace.catalog.chunks()


def test_an_address_is_read_as_it_was_written(home: Home) -> None:
    for address in ("postgresql:///\"ü\\😀'", "postgresql:///" + chr(0x10FFFF), "postgresql:///\u2028 "):
        engines.write(home.root, engines.Engines(address, commits=True))
        assert home.catalog_place == address


@pytest.mark.parametrize("strange", ["\n", "\x7f", "\x85", "\udc80"])
def test_an_address_that_no_file_can_hold_is_refused_before_anything_is_carried(
    home: Home, strange: str
) -> None:
    with pytest.raises(UsageProblem, match="holds the character"):
        move_catalog(home, f"postgresql://ada@127.0.0.1:1/{strange}")
    assert home.catalog_place == home.catalog


@pytest.mark.postgres
def test_a_home_tells_the_same_story_wherever_its_parts_lie(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    with bucket("s3", tmp_path, monkeypatch) as address:
        for name in ("in a file", "in a database", "in a bucket", "searched there"):
            settings = load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path, name), gate=GATE)
            if name != "in a file":
                move_catalog(Home.open(settings.home), database(tmp_path / name))
            if name == "in a bucket":
                move_objects(Home.open(settings.home), address)
            if name == "searched there":
                monkeypatch.setattr(elsewhere, "EXACT_BELOW", 20)
                with Workspace.open(settings) as workspace:
                    assert move_index(workspace, "pgvector").vectors >= 20
            told.append(list(story(settings, tmp_path / f"{name}.zip")))
            assert (settings.home / engines.FILE).exists() == (name != "in a file")
    assert told[0] == told[1] == told[2]
    assert rounded(told[3]) == rounded(told[0])  # another engine multiplies in another order
    assert len(told[0]) > 20


def rounded(told: list[Any]) -> list[Any]:
    return [
        [(one[0], round(one[1] or 0, 5), *one[2:]) for one in part]
        if isinstance(part, list) and part and len(part[0]) == 4
        else part
        for part in told
    ]


def story(settings: Settings, upload: Path) -> Any:
    """What is answered, judged and numbered while a home takes in, learns, goes live and goes back."""
    with Workspace.open(settings) as workspace, AtHome(settings, by="test", workspace=workspace) as desk:

        def answers() -> Any:
            for asked in ASKED:
                answer = desk.search(SearchRequest(k=20, **asked))
                yield answer.release.partition("-")[0], answer.commit
                yield [(hit.id, hit.score, hit.captions, hit.domain) for hit in answer.hits]
            yield [(one.image_id, one.text) for one in desk.captions("red bo")]

        yield from answers()
        added = adding.add_chunk(
            workspace, sample_chunk(upload, pictures=30, first=5), IntakeOptions(), by="test"
        )
        yield added.report.chunk_id, added.report.new_pairs
        yield from answers()
        request = UpdateRequest(
            chunk=added.report.chunk_id, strategy="language-tables", options=LEARNING, promote=True
        )
        outcome = update_cycle.update(
            workspace, request, scratch=workspace.home.staging / "j", progress=lambda _: None
        )
        yield outcome.verdict, outcome.gate["rules"], outcome.commit
        if outcome.commit is None:
            going_live.promote(workspace, str(outcome.release), why="try it", by="test", force=True)
        yield from answers()
        pictures.take_out(workspace, [workspace.catalog.gallery_ids()[3]], by="test", why="private")
        going_live.rollback(workspace, why="second thoughts", by="test")
        yield from answers()
        yield [one.state for one in workspace.catalog.jobs()], workspace.catalog.languages()


@pytest.mark.postgres
def test_a_home_is_carried_there_and_back_while_it_serves(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    home, address = Home.open(settings.home), database(tmp_path)
    with served(settings) as server, server.client() as client:
        failed, answered = list[str](), list[int]()
        stopping = threading.Event()

        def ask() -> None:
            with server.client() as own:
                while not stopping.is_set():
                    answer = own.post("/v1/search", json={"text": "a red boat", "k": 5})
                    answered.append(answer.status_code)
                    if answer.status_code != 200 or len(answer.json()["hits"]) != 5:
                        failed.append(answer.text)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            for to in (address, HERE, address):
                done = move_catalog(home, to)
                assert done.rows > 50
                wait_until(lambda: server.serving.workspace.catalog.place == home.catalog_place)
                job = take_in(client, sample_upload(tmp_path / "more.zip", first=60 + done.rows % 9, count=3))
                assert server.ended(job).state == "succeeded"
                with Catalog.open(home.catalog_place, read_only=True) as catalog:
                    assert catalog.job(job).state == "succeeded"
        finally:
            stopping.set()
            asking.join()
        assert not failed
        assert len(answered) > 10


@pytest.mark.postgres
def test_tables_of_others_are_left_alone(home: Home, tmp_path: Path) -> None:
    import psycopg

    address = database(tmp_path)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE jobs (theirs text)")
        connection.execute("INSERT INTO jobs VALUES ('kept')")
        with pytest.raises(CatalogError, match="'jobs' already"):
            move_catalog(home, address)
        assert connection.execute("SELECT theirs FROM jobs").fetchall() == [("kept",)]
    with pytest.raises(CatalogError, match="cannot be reached"):
        move_catalog(home, f"{address}&client_encoding=none")
    assert home.catalog_place == home.catalog


@pytest.mark.postgres
def test_a_program_that_has_the_home_open_follows_it(home: Home, tmp_path: Path) -> None:
    with AtHome(load_settings(home=home.root, ask_server=False), by="test") as desk:
        known = [one.id for one in desk.chunks()]
        assert desk.status().catalog == ""
        move_catalog(home, database(tmp_path))
        home.catalog.unlink()
        assert desk.status().catalog == database(tmp_path)
        assert [one.id for one in desk.chunks()] == known
        desk.workspace.catalog.set_pin("boat", "en", desk.catalog.gallery_ids()[0])
        assert [one.query for one in desk.canaries()] == ["boat"]


@pytest.mark.postgres
def test_a_database_that_was_restarted_is_connected_to_again(home: Home, tmp_path: Path) -> None:
    address = database(tmp_path)
    move_catalog(home, f"{address}&application_name=restarted")
    with Workspace.open(Settings(home=home.root)) as workspace:
        known = workspace.catalog.chunks()
        cut_off(address)
        assert workspace.catalog.chunks() == known
        with workspace.catalog._engine.connect() as connection:
            connection.execute(sa.text("SELECT 1"))
            cut_off(address)
            with pytest.raises(CatalogUnreachable, match="look whether the database runs") as lost:
                connection.execute(sa.text("SELECT 1"))
        assert trouble_of(lost.value).status == 503
        assert workspace.catalog.chunks() == known
        cut_off(address)
        workspace.catalog.add_job("gallery")


@pytest.mark.postgres
@pytest.mark.usefixtures("starts_at_once")
def test_what_came_while_the_database_lets_nobody_in_is_done_when_it_does(home: Home, tmp_path: Path) -> None:
    import psycopg

    watched = folder_of(tmp_path / "watched", {})
    address = database(tmp_path)
    guest = f"{address.replace('postgres@', 'guest@')}&application_name=restarted"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest SUPERUSER LOGIN")
        move_catalog(home, guest)
        settings = load_settings(home=home.root, jobs="here", watch=[watched])
        with served(settings) as server, server.client() as client:
            jobs = [
                take_in(client, sample_upload(tmp_path / f"{n}.zip", first=100 * n, count=2)) for n in (1, 2)
            ]
            connection.execute("ALTER ROLE guest NOLOGIN")
            cut_off(address)
            wait_until(lambda: client.get("/readyz").status_code == 503)
            assert client.get("/readyz").json()["code"] == "catalog_unreachable"
            (watched / "new.png").write_bytes(picture(1))
            time.sleep(3)
            connection.execute("ALTER ROLE guest LOGIN")
            wait_until(lambda: client.get("/readyz").status_code == 200)
            for job in jobs:
                wait_until(lambda job=job: client.get(f"/v1/jobs/{job}").json()["state"] == "succeeded")
            wait_until(
                lambda: "watched" in {one["name"] for one in client.get("/v1/chunks").json()["chunks"]}
            )


@pytest.mark.postgres
def test_a_server_that_cannot_follow_says_so(home: Home, tmp_path: Path) -> None:
    address = database(tmp_path)
    with served(load_settings(home=home.root)) as server, server.client() as client:
        move_catalog(home, f"{address}&application_name=restarted")
        wait_until(lambda: client.get("/v1/chunks").status_code == 200)
        wait_until(lambda: server.serving.workspace.catalog.place != home.catalog)
        engines.write(home.root, engines.Engines(f"{address.replace('postgres@', 'nobody@')}", commits=True))
        wait_until(lambda: client.get("/readyz").json()["degraded"])
        (said,) = client.get("/readyz").json()["degraded"]
        assert said["part"] == "catalog"
        assert "nobody@" in said["what"]
        assert client.post("/v1/search", json={"text": "a red boat"}).status_code == 200


@pytest.mark.parametrize("to", [HERE, pytest.param("database", marks=pytest.mark.postgres)])
def test_who_writes_while_it_is_carried_is_told_to_come_again(home: Home, tmp_path: Path, to: str) -> None:
    if to == "database":
        move_catalog(home, database(tmp_path))
    with served(load_settings(home=home.root)) as server, server.client() as client:
        catalog, hit = server.serving.workspace.catalog, search(client)
        soon(catalog)
        said = {"query": "boat", "language": "en", "release": hit["release"], "image": hit["hits"][0]["id"]}
        with Catalog.open(home.catalog_place) as other, writing(other._engine):
            refused = client.post("/v1/feedback", json=said | {"verdict": "up"})
        assert (refused.status_code, refused.json()["code"]) == (503, "catalog_held")
        assert int(refused.headers["Retry-After"]) > 0
        assert client.post("/v1/feedback", json=said | {"verdict": "up"}).status_code == 201


def cut_off(address: str) -> None:
    """Ends every other connection, as a database does that stops."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        others = "SELECT pid FROM pg_stat_activity WHERE application_name = 'restarted'"
        assert connection.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM ({others}) AS other"
        ).fetchall()


def take_in(client: httpx.Client, upload: Path) -> str:
    with upload.open("rb") as file:
        answer = client.post("/v1/chunks", files={"file": file})
    return str(answer.raise_for_status().json()["job"]["id"])


def wait_until(holds: Any) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.postgres
def test_a_backup_of_it_is_a_home_with_a_catalog_of_its_own(home: Home, tmp_path: Path) -> None:
    move_catalog(home, database(tmp_path))
    assert not keep_copy(home, at_once=True), "its database is copied by those who run it"
    home.catalog.unlink()
    assert damage_in(home) == ""
    with Workspace.open(Settings(home=home.root)) as workspace:
        chunks, captions = workspace.catalog.chunks(), workspace.catalog.languages()
        workspace.catalog.add_job("gallery")
    (tmp_path / "backups").mkdir()
    done = write_backup(home, tmp_path / "backups", lambda _: None)
    assert not list(done.path.glob(".rows*"))
    there = tmp_path / "there"
    restore(Settings(home=there), done.path, sha256=done.sha256, tell=lambda _: None)
    assert Home.open(there).catalog_place == there / "catalog.sqlite"
    with Workspace.open(Settings(home=there)) as workspace:
        assert (workspace.catalog.chunks(), workspace.catalog.languages()) == (chunks, captions)
        assert workspace.catalog.damage() == []


@pytest.mark.postgres
def test_a_backup_holds_the_database_no_longer_than_its_rows_are_copied(home: Home, tmp_path: Path) -> None:
    import psycopg

    address = database(tmp_path)
    move_catalog(home, f"{address}&application_name=backed")
    held = dict[str, int]()

    def tell(stage: Stage) -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            others = "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = 'backed'"
            if stage.name in ("blobs", "releases"):
                held[stage.name] = len(connection.execute(others).fetchall())

    done = write_backup(home, tmp_path / "backups", tell)
    assert held == {"blobs": 0, "releases": 0}
    assert newest(tmp_path / "backups").folder == done.path  # type: ignore[union-attr]


@pytest.mark.postgres
def test_a_backup_copies_no_catalog_that_is_being_moved(home: Home, tmp_path: Path) -> None:
    address = database(tmp_path)

    def held_while(root: str | None) -> int:
        """The number of the schema that a backup gets in the moment in which it is decided where the catalog lies."""
        engines.write(home.root, engines.Engines(root, commits=True))
        with at_one_moment(home, tmp_path) as (catalog, _):
            return int(catalog.execute("PRAGMA user_version").fetchone()[0])

    numbers = []

    def undecided() -> None:
        with pytest.raises(CatalogMissing, match="run it again"), at_one_moment(home, tmp_path):
            pass
        numbers.append(held_while(address))

    carry(home.catalog, address, undecided)
    carry(address, home.catalog, lambda: numbers.append(held_while(None)))
    assert numbers == [SCHEMA, SCHEMA]


@pytest.mark.postgres
def test_the_copy_goes_with_the_move_and_comes_after_the_way_back(home: Home, tmp_path: Path) -> None:
    address = database(tmp_path)
    assert keep_copy(home)
    killed = subprocess.run(
        [sys.executable, "-m", "perennial", "home", "move", "--to", address, "--home", str(home.root)],
        env=os.environ | {FAULT_VARIABLE: DECIDED},
        check=False,
    )
    assert killed.returncode == KILLED
    assert not home.catalog_copy.exists(), "it is gone once nobody can remove anything from it"
    move_catalog(home, address)
    with Workspace.open(Settings(home=home.root)) as workspace:
        gone = workspace.catalog.gallery_ids()[0]
        assert workspace.catalog.captions_of(gone)
        workspace.catalog.forget([gone])
    home.catalog_copy.write_text("one of before, by an earlier program")
    move_catalog(home, HERE)
    assert damage_of(home.catalog_copy) == ""
    with Catalog.open(home.catalog_copy, read_only=True) as copy:
        assert copy.chunks()
        assert not copy.captions_of(gone)


@pytest.mark.postgres
def test_no_copy_is_written_of_a_catalog_that_is_being_moved(home: Home, tmp_path: Path) -> None:
    with copying(home), pytest.raises(UpdateRunning, match="copying the catalog"):
        move_catalog(home, database(tmp_path))
    assert home.catalog_place == home.catalog


@pytest.mark.postgres
def test_a_copy_of_a_home_does_not_write_into_its_catalog(home: Home, tmp_path: Path) -> None:
    address = database(tmp_path)
    move_catalog(home, address)
    copy = Home(copy_of(home.root, tmp_path, "copy"))
    with Workspace.open(Settings(home=home.root)) as workspace:
        job = workspace.catalog.add_job("gallery").id
        workspace.catalog.update_job(job, state="running")
        with pytest.raises(CatalogError, match=f"home at {home.root}; this one lies at {copy.root}.*restore"):
            worker.recover(load_settings(home=copy.root))
        for to in (HERE, f"{address}&application_name=another"):
            with pytest.raises(CatalogError, match="home at"):
                move_catalog(copy, to)
        with pytest.raises(CatalogError, match="home at"):
            write_backup(copy, tmp_path / "backups", lambda _: None)
        with copy.open_catalog(read_only=True) as read:
            assert read.job(job).state == "running"
        workspace.catalog.set_pin("boat", "en", workspace.catalog.gallery_ids()[0])


@pytest.mark.postgres
def test_a_home_that_was_moved_takes_its_catalog_along(home: Home, tmp_path: Path) -> None:
    address = database(tmp_path)
    move_catalog(home, address)
    with pytest.raises(UsageProblem, match="already"):
        move_catalog(home, address)
    renamed = Home(home.root.rename(tmp_path / "renamed"))
    renamed.open_catalog().close()
    back = Home(copy_of(renamed.root, tmp_path, home.root.name))
    with pytest.raises(CatalogError, match=f"home at {renamed.root}"):
        back.open_catalog()
    with renamed.open_catalog() as open_there:
        run = CliRunner().invoke(app, ["home", "move", "--to", address, "--home", str(back.root)])
        assert f"that of the home at {renamed.root}" in " ".join(run.output.split())
        with pytest.raises(CatalogError, match=f"home at {back.root}"):
            open_there.add_job("gallery")
    with back.open_catalog() as catalog:
        catalog.add_job("gallery")
    move_catalog(back, HERE)
    move_catalog(back, address)
