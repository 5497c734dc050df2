"""Claims about a server whose database is away: it refuses quickly, says that it is not ready, and goes on after."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from app.home.catalog_move import move_catalog
from app.home.folder import Home
from tests.app.server.served import Served, make_home, search, served
from tests.postgres_server import blockable
from tests.tcp_proxy import TcpProxy

pytestmark = pytest.mark.postgres


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[TcpProxy]:
    """The way to the database of the server's catalog."""
    with blockable(tmp_path) as (address, proxy):
        settings = make_home(tmp_path)
        move_catalog(Home.open(settings.home), address)
        yield proxy


@pytest.fixture
def server(tmp_path: Path, proxy: TcpProxy) -> Iterator[Served]:
    """A server that by itself looks once a minute."""
    settings = make_home(tmp_path / "settings").model_copy(
        update={"home": tmp_path / "home", "poll_seconds": 60.0}
    )
    with served(settings, with_jobs=False) as server:
        yield server


def seconds_until(client: httpx.Client, status: int) -> float:
    """Asks until the answer has a status, and returns how long that took; no answer may take long."""
    began = time.monotonic()
    while (answer := client.get("/readyz", timeout=4)).status_code != status:
        assert time.monotonic() - began < 20, answer.text
        time.sleep(0.1)
    return time.monotonic() - began


def test_a_server_whose_database_refuses_is_not_ready_until_it_is_back(
    server: Served, proxy: TcpProxy
) -> None:
    with server.client() as client:
        assert client.get("/readyz").status_code == 200
        proxy.refuse()
        assert seconds_until(client, 503) < 2.5
        said = client.get("/readyz").json()
        assert said["code"] == "catalog_unreachable"
        assert "look whether the database runs" in said["error"]
        proxy.restore()
        assert seconds_until(client, 200) < 2.5
        assert search(client)["hits"]


def test_a_server_whose_database_hangs_says_so_within_seconds(server: Served, proxy: TcpProxy) -> None:
    with server.client() as client:
        assert client.get("/readyz").status_code == 200
        proxy.hang()
        assert seconds_until(client, 503) < 5
        assert client.get("/readyz", timeout=4).json()["code"] == "catalog_unreachable"
        assert client.get("/healthz", timeout=1).status_code == 200
        proxy.restore()
        seconds_until(client, 200)


def test_whatever_is_asked_of_a_server_whose_database_hangs_is_refused_in_seconds_and_then_at_once(
    server: Served, proxy: TcpProxy
) -> None:
    with server.client() as client, ThreadPoolExecutor(24) as people:

        def ask(number: int) -> tuple[float, httpx.Response]:
            began = time.monotonic()
            question = {"text": "a red boat"}
            answer = client.get("/v1/chunks") if number % 2 else client.post("/v1/search", json=question)
            return time.monotonic() - began, answer

        assert {answer.status_code for _, answer in people.map(ask, range(2))} == {200}
        proxy.hang()
        for patience in (10.0, 2.0):
            for seconds, answer in people.map(ask, range(24)):
                assert seconds < patience
                assert answer.status_code == 503
                assert answer.headers["Retry-After"]
        assert answer.json()["code"] == "catalog_unreachable"
        assert "look whether the database runs" in answer.json()["error"]
        proxy.restore()
        assert seconds_until(client, 200) < 5
        assert search(client)["hits"]


def test_the_catalog_is_asked_once_a_second_however_often_the_server_is(server: Served) -> None:
    asked = []
    withheld = server.serving.workspace.catalog.withheld
    sa.event.listen(withheld._engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    with server.client() as client:
        began = time.monotonic()
        while time.monotonic() - began < 1.5:
            client.get("/readyz").raise_for_status()
    assert 1 <= len([one for one in asked if "withheld" in one]) <= 3
