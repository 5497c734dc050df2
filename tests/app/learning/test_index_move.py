"""Claims about a home whose index another engine searches: it is the same home, and goes there and back serving."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pytest
from typer.testing import CliRunner

from app.commands.cli import app
from app.desk.errors import UsageProblem
from app.desk.hits import SearchRequest
from app.home import engines
from app.home.catalog_move import move_catalog
from app.home.folder import Home
from app.home.settings import load_settings
from app.home.workspace import Workspace
from app.learning import adding, going_live
from app.learning.index_move import move_index
from app.local.at_home import AtHome
from app.query.snapshot import Snapshot
from index import elsewhere, faiss_index, milvus, vector_tables
from index.errors import VectorsRefused, VectorsUnreachable
from index.faiss_index import FaissVectors
from index.generation import Generation
from index.milvus import MilvusVectors
from ingest.intake import IntakeOptions
from tests import milvus_server
from tests.app.server.served import search, served
from tests.app.small_home import copy_of, sample_chunk, small_home
from tests.index.engines import MILVUS, PGVECTOR
from tests.tcp_proxy import through_proxy

ASKED = (
    {"text": "a red boat"},
    {"text": "ein rotes Boot", "language": "de"},
    {"text": "boat", "domains": ["scenes"]},
)


@pytest.fixture
def home(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Home:
    """A home where segments of 20 vectors are large."""
    monkeypatch.setattr(elsewhere, "EXACT_BELOW", 20)
    return Home.open(copy_of(small_home(tmp_path_factory), tmp_path))


@pytest.fixture(params=[PGVECTOR, MILVUS])
def to(request: pytest.FixtureRequest, home: Home, tmp_path: Path) -> str:
    """What is to search the home's index; for pgvector its catalog lies in PostgreSQL."""
    if request.param == "milvus":
        return milvus_server.place()
    from tests.postgres_server import schema_for

    move_catalog(home, schema_for(tmp_path))
    return "pgvector"


def opened(home: Home) -> Workspace:
    return Workspace.open(load_settings(home=home.root, poll_seconds=0.1))


def answers(home: Home) -> list[object]:
    with AtHome(load_settings(home=home.root, ask_server=False), by="test") as desk:
        found = [desk.search(SearchRequest(**asked)) for asked in ASKED]
        return [(one.release, [(hit.id, round(hit.score or 0, 5)) for hit in one.hits]) for one in found]


def engine_of(generation: Generation) -> type:
    return type(generation.portions[0].segment.index)


def soon(holds: Callable[[], bool]) -> bool:
    end = time.monotonic() + 20
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    return holds()


def test_a_home_answers_the_same_while_the_database_searches_and_afterwards(
    home: Home, to: str, tmp_path: Path
) -> None:
    before = answers(home)
    with opened(home) as workspace:
        done = move_index(workspace, to)
        first = going_live.live_release(workspace)[1]
        assert (done.release, done.vectors) == (first.id, len(workspace.open_generation(first.generation)))
        assert engine_of(workspace.open_generation(first.generation)) is not FaissVectors
        assert answers(home) == before
        adding.add_chunk(workspace, sample_chunk(tmp_path / "more.zip", first=30), IntakeOptions(), by="test")
        second = going_live.live_release(workspace)[1]
        grown = workspace.open_generation(second.generation)
        assert second.id != first.id
        assert not any(
            isinstance(one.segment.index, FaissVectors) for one in grown.portions if len(one) >= 20
        )
        after = answers(home)
        with AtHome(load_settings(home=home.root, ask_server=False), by="test") as desk:
            told = desk.index()
        name, width = ("pgvector", "ef_search=100") if to == "pgvector" else ("Milvus", "ef=100")
        assert (told.kind, told.kept, told.segments[0].parameters) == (name, 1.0, width)
        going_live.rollback(workspace, first.id, why="to see", by="test")
        assert answers(home) == before
        going_live.rollback(workspace, second.id, why="to see", by="test")

        move_index(workspace, "home")
        assert engine_of(workspace.open_generation(second.generation)) is FaissVectors
        assert answers(home) == after


def test_a_server_follows_to_where_the_index_is_searched(home: Home, to: str) -> None:
    with served(load_settings(home=home.root, poll_seconds=0.1)) as server, server.client() as client:
        before = search(client, text="a red boat")["hits"]
        live = server.serving.snapshot

        with opened(home) as workspace:
            move_index(workspace, to)
            assert soon(lambda: engine_of(live().generation) is not FaissVectors)
            assert [hit["id"] for hit in search(client, text="a red boat")["hits"]] == [
                hit["id"] for hit in before
            ]
            move_index(workspace, "home")
            assert soon(lambda: engine_of(live().generation) is FaissVectors)
            assert [hit["id"] for hit in search(client, text="a red boat")["hits"]] == [
                hit["id"] for hit in before
            ]


def test_what_is_kept_of_pruned_releases_goes_with_them(home: Home, to: str) -> None:
    with opened(home) as workspace:
        move_index(workspace, to)
        engine = workspace.vector_engine
        assert engine is not None
        three = np.eye(3, dtype=np.float32)
        engine.make("0" * 64, FaissVectors(faiss_index.build(three)), "Flat", lambda: three)
        kept = {*engine.known()} - {"0" * 64}
        said = CliRunner().invoke(
            app, ["prune", "--yes", "--home", str(home.root)]
        )  # and there is no release to prune
        assert said.exit_code == 0, said.output
        assert {*engine.known()} == kept


@pytest.mark.sqlite
def test_an_index_is_not_carried_where_nothing_can_search_it(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = copy_of(small_home(tmp_path_factory), tmp_path)
    with Workspace.open(load_settings(home=root)) as workspace:
        with pytest.raises(UsageProblem, match="'milvus' searches no index. There are `pgvector`"):
            move_index(workspace, "milvus")
        with pytest.raises(UsageProblem, match="this home's lies in its folder. Carry that first"):
            move_index(workspace, "pgvector")
    said = CliRunner().invoke(app, ["home", "move", "--index", "pgvector", "--home", str(root)])
    assert said.exit_code == 2
    assert "perennial home move --to postgresql://" in " ".join(said.output.split())


def test_the_command_says_what_was_carried(home: Home, to: str) -> None:
    said = CliRunner().invoke(app, ["home", "move", "--index", to, "--home", str(home.root)])
    assert said.exit_code == 0, said.output
    who = "The database" if to == "pgvector" else f"Milvus ({to})"
    assert f"{who} searches the index of " in " ".join(said.output.split())
    back = CliRunner().invoke(app, ["home", "move", "--index", "home", "--home", str(home.root)])
    assert back.exit_code == 0, back.output
    assert "Each machine searches the index by itself now" in " ".join(back.output.split())


def test_a_home_that_is_open_follows(home: Home, to: str) -> None:
    with (
        AtHome(load_settings(home=home.root, ask_server=False), by="test") as desk,
        opened(home) as workspace,
    ):
        asked = SearchRequest(text="a red boat")
        before = [hit.id for hit in desk.search(asked).hits]
        move_index(workspace, to)
        assert [hit.id for hit in desk.search(asked).hits] == before
        assert engine_of(desk.snapshot().generation) is not FaissVectors
        move_index(workspace, "home")
        workspace.drop_vectors()
        assert [hit.id for hit in desk.search(asked).hits] == before


def test_a_move_that_fails_leaves_the_home_as_it_was(
    home: Home, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_tables, "MOST_COLUMNS", 1)
    monkeypatch.setattr(milvus, "_fill", refuse)
    with opened(home) as workspace:
        with pytest.raises(VectorsRefused):
            move_index(workspace, to)
        engine = workspace.vector_engine
        assert engine is None or not engine.are_kept
        adding.add_chunk(workspace, sample_chunk(tmp_path / "more.zip", first=30), IntakeOptions(), by="test")


def test_what_cannot_be_kept_elsewhere_goes_live_in_its_file(
    home: Home, to: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with opened(home) as workspace:
        move_index(workspace, to)
        monkeypatch.setattr(vector_tables, "MOST_COLUMNS", 1)
        monkeypatch.setattr(milvus, "_fill", refuse)
        more = sample_chunk(tmp_path / "more.zip", first=40, pictures=30)
        adding.add_chunk(workspace, more, IntakeOptions(), by="test")
        live = workspace.open_generation(going_live.live_release(workspace)[1].generation)
    assert "is searched in its files" in caplog.text
    assert any(isinstance(one.segment.index, FaissVectors) for one in live.portions)
    assert len(answers(home)) == len(ASKED)


def refuse(*_: object) -> None:
    raise VectorsRefused("no room")


@pytest.mark.postgres
def test_a_server_leaves_the_tables_of_a_database_that_was_left(home: Home, tmp_path: Path) -> None:
    from tests.postgres_server import schema_for

    move_catalog(home, schema_for(tmp_path))
    with served(load_settings(home=home.root, poll_seconds=0.1)) as server:
        live = server.serving.snapshot
        with opened(home) as workspace:
            move_index(workspace, "pgvector")
        assert soon(lambda: engine_of(live().generation) is not FaissVectors)
        move_catalog(home, "sqlite")
        assert soon(lambda: engine_of(live().generation) is FaissVectors)


@pytest.mark.milvus
def test_a_milvus_that_is_away_is_no_damage_of_the_releases(home: Home) -> None:
    engines.write(home.root, engines.Engines(index="http://127.0.0.1:1/pictures"))
    with Workspace.open(load_settings(home=home.root), read_only=True) as workspace:
        with pytest.raises(VectorsUnreachable, match="cannot be reached"):
            Snapshot.load(workspace)
        assert workspace.releases.standing().skipped == ()
    with opened(home) as workspace:  # who learns reads the files
        assert len(workspace.open_generation(going_live.live_release(workspace)[1].generation)) > 0


@pytest.mark.milvus
def test_a_server_that_starts_while_milvus_is_away_searches_the_files_says_so_and_goes_back(
    home: Home,
) -> None:
    there = urlsplit(milvus_server.place())
    with through_proxy((str(there.hostname), int(there.port or 0))) as proxy:
        with opened(home) as workspace:
            move_index(workspace, f"http://127.0.0.1:{proxy.port}{there.path}")
        proxy.refuse()
        settings = load_settings(home=home.root, poll_seconds=0.1)
        with served(settings) as server, server.client() as client:

            def degraded() -> str:
                return " ".join(one["what"] for one in client.get("/readyz").json()["degraded"])

            assert search(client, text="a red boat")["hits"]
            assert soon(lambda: "this server searches the index in its files" in degraded())
            proxy.restore()
            assert soon(lambda: engine_of(server.serving.snapshot().generation) is MilvusVectors)
            assert soon(lambda: degraded() == "")
            assert search(client, text="a red boat")["hits"]
            proxy.refuse()
            assert soon(lambda: "searches are refused" in degraded())


@pytest.mark.parametrize(
    "address", ["http://ada:secret@host:19530", "http://host/my-museum", "http://", "http://host/a/b"]
)
def test_an_address_with_a_password_or_a_name_that_cannot_be_is_refused(home: Home, address: str) -> None:
    assert not engines.is_milvus(address)
    with opened(home) as workspace, pytest.raises(UsageProblem, match="searches no index"):
        move_index(workspace, address)
