"""Claims about carrying a catalog into a database and back while its home serves, and about whose it is there."""

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
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.errors import UpdateRunning, UsageProblem
from app.home import lock
from app.home.backup import write_backup
from app.home.catalog_copy import copying, damage_of, keep_copy
from app.home.catalog_move import DECIDED, HERE, move_catalog
from app.home.durable import FAULT_VARIABLE, KILLED
from app.home.folder import Home
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.jobs import worker
from ingest.catalog import Catalog
from ingest.engines import writing
from ingest.errors import CatalogError
from tests.app.server.served import make_home, sample_upload, search, served
from tests.app.small_home import copy_of, small_home
from tests.ingest.test_carrying import soon
from tests.postgres_server import schema_for


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    return Home.open(copy_of(small_home(tmp_path_factory), tmp_path))


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


@pytest.mark.parametrize("strange", ["\n", "\x7f", "\x85", "\udc80"])
def test_an_address_that_no_file_can_hold_is_refused_before_anything_is_carried(
    home: Home, strange: str
) -> None:
    with pytest.raises(UsageProblem, match="holds the character"):
        move_catalog(home, f"postgresql://ada@127.0.0.1:1/{strange}")
    assert home.catalog_place == home.catalog


@pytest.mark.postgres
def test_a_home_is_carried_there_and_back_while_it_serves(tmp_path: Path) -> None:
    settings = make_home(tmp_path)
    home, address = Home.open(settings.home), schema_for(tmp_path)
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

    address = schema_for(tmp_path)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE jobs (theirs text)")
        connection.execute("INSERT INTO jobs VALUES ('kept')")
        with pytest.raises(CatalogError, match="'jobs' already"):
            move_catalog(home, address)
        assert connection.execute("SELECT theirs FROM jobs").fetchall() == [("kept",)]
    with pytest.raises(CatalogError, match="cannot be reached"):
        move_catalog(home, f"{address}&client_encoding=none")
    assert home.catalog_place == home.catalog


@pytest.mark.parametrize("to", [HERE, pytest.param("database", marks=pytest.mark.postgres)])
def test_who_writes_while_it_is_carried_is_told_to_come_again(home: Home, tmp_path: Path, to: str) -> None:
    if to == "database":
        move_catalog(home, schema_for(tmp_path))
    with served(load_settings(home=home.root)) as server, server.client() as client:
        catalog, hit = server.serving.workspace.catalog, search(client)
        soon(catalog)
        said = {"query": "boat", "language": "en", "release": hit["release"], "image": hit["hits"][0]["id"]}
        with Catalog.open(home.catalog_place) as other, writing(other._engine):
            refused = client.post("/v1/feedback", json=said | {"verdict": "up"})
        assert (refused.status_code, refused.json()["code"]) == (503, "catalog_held")
        assert int(refused.headers["Retry-After"]) > 0
        assert client.post("/v1/feedback", json=said | {"verdict": "up"}).status_code == 201


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
def test_the_copy_goes_with_the_move_and_comes_after_the_way_back(home: Home, tmp_path: Path) -> None:
    address = schema_for(tmp_path)
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
        move_catalog(home, schema_for(tmp_path))
    assert home.catalog_place == home.catalog


@pytest.mark.postgres
def test_a_copy_of_a_home_does_not_write_into_its_catalog(home: Home, tmp_path: Path) -> None:
    address = schema_for(tmp_path)
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
    address = schema_for(tmp_path)
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
