"""Claims about a home whose catalog lies in a database: it is the same home, whatever becomes of the database."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from app.desk.hits import SearchRequest
from app.desk.jobs import UpdateRequest
from app.desk.troubles import trouble_of
from app.home import engines
from app.home.catalog_move import move_catalog
from app.home.folder import Home
from app.home.objects_move import move_objects
from app.home.settings import Settings, load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live, pictures, update_cycle
from app.learning.index_move import move_index
from app.local.at_home import AtHome
from index import elsewhere
from ingest.errors import CatalogUnreachable
from ingest.intake import IntakeOptions
from tests.app.home.test_catalog_move import take_in, wait_until
from tests.app.server.served import sample_upload, served
from tests.app.small_home import copy_of, sample_chunk, small_home
from tests.bucket import bucket
from tests.ingest.material import folder_of, picture
from tests.postgres_server import schema_for

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


@pytest.mark.postgres
def test_a_home_tells_the_same_story_wherever_its_parts_lie(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = []
    with bucket("s3", tmp_path, monkeypatch) as address:
        for name in ("in a file", "in a database", "in a bucket", "searched there"):
            settings = load_settings(home=copy_of(small_home(tmp_path_factory), tmp_path, name), gate=GATE)
            if name != "in a file":
                move_catalog(Home.open(settings.home), schema_for(tmp_path / name))
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
def test_a_program_that_has_the_home_open_follows_it(home: Home, tmp_path: Path) -> None:
    with AtHome(load_settings(home=home.root, ask_server=False), by="test") as desk:
        known = [one.id for one in desk.chunks()]
        assert desk.status().catalog == ""
        move_catalog(home, schema_for(tmp_path))
        home.catalog.unlink()
        assert desk.status().catalog == schema_for(tmp_path)
        assert [one.id for one in desk.chunks()] == known
        desk.workspace.catalog.set_pin("boat", "en", desk.catalog.gallery_ids()[0])
        assert [one.query for one in desk.canaries()] == ["boat"]


@pytest.mark.postgres
def test_a_database_that_was_restarted_is_connected_to_again(home: Home, tmp_path: Path) -> None:
    address = schema_for(tmp_path)
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
    address = schema_for(tmp_path)
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
    address = schema_for(tmp_path)
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


def cut_off(address: str) -> None:
    """Ends every other connection, as a database does that stops."""
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        others = "SELECT pid FROM pg_stat_activity WHERE application_name = 'restarted'"
        assert connection.execute(
            f"SELECT pg_terminate_backend(pid, 5000) FROM ({others}) AS other"
        ).fetchall()
