"""A server for the tests of REST that change nothing, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from tests.app.server.served import Served, make_home, served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(make_home(tmp_path_factory.mktemp("home"))) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client
