"""Options of the whole suite."""

from __future__ import annotations

import pytest

from tests.claims import ClaimsHold


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--claims", action="store_true", help="Fail when a test that docs/peers.md names did not pass."
    )


def pytest_configure(config: pytest.Config) -> None:
    # The reports of all workers come to the process that started them.
    is_worker = hasattr(config, "workerinput")
    if config.getoption("--claims") and not is_worker:
        config.pluginmanager.register(ClaimsHold())
