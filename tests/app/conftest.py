"""A server of a small home, and a client of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx

    from tests.app.server.served import Served


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with a home of its own, for the tests of one file."""
    # Loads torch and Gradio, which most folders do without.
    from tests.app.server.served import make_home, served

    with served(make_home(tmp_path_factory.mktemp("home"))) as running:
        yield running


@pytest.fixture
def client(server: Served) -> Iterator[httpx.Client]:
    with server.client() as client:
        yield client
