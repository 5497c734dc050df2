"""Claims about a server whose bucket hangs: it searches as before, and refuses pictures quickly until it answers."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from app.home.folder import Home
from app.home.objects_move import move_objects
from tests.app.server.served import Served, make_home, search, served
from tests.bucket import blockable
from tests.tcp_proxy import TcpProxy

pytestmark = pytest.mark.postgres  # needs what `make scale-test` installs
PEOPLE = 16


@pytest.fixture
def proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TcpProxy]:
    """The way to the bucket of the server's pictures."""
    with blockable(tmp_path, monkeypatch) as (address, proxy):
        move_objects(Home.open(make_home(tmp_path).home), address)
        yield proxy


@pytest.fixture
def server(tmp_path: Path, proxy: TcpProxy) -> Iterator[Served]:
    settings = make_home(tmp_path / "settings").model_copy(update={"home": tmp_path / "home"})
    with served(settings, with_jobs=False) as server:
        yield server


def asked(client: httpx.Client, path: str) -> tuple[float, httpx.Response]:
    began = time.monotonic()
    answer = client.get(path)
    return time.monotonic() - began, answer


def searching_takes(client: httpx.Client, word: str) -> float:
    """Searches for a while, and returns what a search takes, in seconds."""
    took = []
    for number in range(60):
        began = time.monotonic()
        assert client.post("/v1/search", json={"text": f"{word} {number}"}).status_code == 200
        took.append(time.monotonic() - began)
    return statistics.median(took)


def test_while_the_bucket_hangs_searching_goes_on_and_pictures_are_refused_at_once(
    server: Served, proxy: TcpProxy
) -> None:
    stopping = threading.Event()

    def look(number: int) -> list[float]:
        took = []
        with server.client() as client:
            while not stopping.wait(0.2):
                seconds, answer = asked(client, pictures[number % len(pictures)])
                assert answer.status_code == 503
                took.append(seconds)
        return took

    with server.client() as client, ThreadPoolExecutor(PEOPLE) as people, ExitStack() as stack:
        stack.callback(stopping.set)  # also where something does not hold
        pictures = [f"/v1/images/{hit['id']}/original" for hit in search(client)["hits"]]
        assert asked(client, pictures[0])[1].status_code == 200
        quiet = searching_takes(client, "boat")
        proxy.hang()
        looking = [people.submit(look, number) for number in range(PEOPLE)]
        time.sleep(1)
        seconds, answer = asked(client, "/v1/chunks")
        assert (answer.status_code, seconds < 1) == (200, True)
        assert searching_takes(client, "dog") < 5 * quiet
        time.sleep(8)
        seconds, answer = asked(client, pictures[0])
        assert answer.json()["code"] in ("objects_unreachable", "too_busy")
        assert seconds < 1.5
        stopping.set()
        assert max(seconds for one in looking for seconds in one.result()) < 8
        assert all(max(one.result()[-5:]) < 1.5 for one in looking)
        proxy.restore()
        began = time.monotonic()
        while asked(client, pictures[0])[1].status_code != 200:
            assert time.monotonic() - began < 8
            time.sleep(0.1)
