"""Claims about a database that stops answering: waiting for it ends, and what takes long is waited for."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
import sqlalchemy as sa

from ingest import postgres
from ingest.errors import CatalogUnreachable
from ingest.postgres_connection import address_of, connect
from ingest.postgres_waiting import _circuits
from tests.postgres_server import blockable
from tests.tcp_proxy import TcpProxy

pytestmark = pytest.mark.postgres
REFUSED = 8.0  # seconds: three of silence, three in which another connection asks, and some
ONE = sa.text("SELECT 1")


@pytest.fixture
def database(tmp_path: Path) -> Iterator[tuple[sa.Engine, TcpProxy]]:
    with blockable(tmp_path) as (address, proxy):
        engine = connect(address, read_only=False)
        yield engine, proxy
        engine.dispose()


def ask(engine: sa.Engine, statement: sa.TextClause = ONE) -> float:
    """Asks a database that does not answer; returns how long it took until that was said."""
    began = time.monotonic()
    with pytest.raises(CatalogUnreachable, match="does not answer|timeout expired"), engine.connect() as one:
        one.execute(statement)
    return time.monotonic() - began


def answers(engine: sa.Engine) -> bool:
    try:
        with engine.connect() as connection:
            return bool(connection.scalar(ONE))
    except CatalogUnreachable:
        return False


def seconds_until_it_answers(engine: sa.Engine) -> float:
    began = time.monotonic()
    while not answers(engine):
        assert time.monotonic() - began < 20
        time.sleep(0.05)
    return time.monotonic() - began


def test_a_database_that_hangs_is_waited_for_once_and_then_refused_at_once_until_it_answers(
    database: tuple[sa.Engine, TcpProxy],
) -> None:
    engine, proxy = database
    assert answers(engine)
    proxy.hang()
    assert ask(engine) < REFUSED
    accepted = proxy.accepted
    assert max(ask(engine) for _ in range(50)) < 0.5
    assert proxy.accepted <= accepted + 1  # one tries
    proxy.restore()
    assert seconds_until_it_answers(engine) < 5


def test_whoever_connects_anew_or_is_in_the_middle_of_a_statement_waits_no_longer(
    database: tuple[sa.Engine, TcpProxy],
) -> None:
    engine, proxy = database
    with ThreadPoolExecutor() as elsewhere:
        asked = [elsewhere.submit(ask, engine, sa.text("SELECT pg_sleep(60)")) for _ in range(3)]
        while engine.pool.checkedout() < 3 and not any(one.done() for one in asked):  # type: ignore[attr-defined]
            time.sleep(0.05)
        time.sleep(0.5)
        proxy.hang()
        other = connect(engine.url.set(drivername="postgresql").render_as_string(), read_only=True)
        assert ask(other) < REFUSED
        assert max(one.result() for one in asked) < REFUSED + 1
        other.dispose()
    proxy.restore()
    assert seconds_until_it_answers(engine) < 5


def test_what_takes_long_is_waited_for_while_the_database_answers(
    database: tuple[sa.Engine, TcpProxy],
) -> None:
    engine, _ = database
    waited = threading.Event()

    def write() -> None:
        with postgres.locked(engine) as connection:
            connection.execute(ONE)
            waited.set()

    with ThreadPoolExecutor() as elsewhere:
        with postgres.locked(engine) as connection:
            writer = elsewhere.submit(write)
            connection.execute(sa.text("SELECT pg_sleep(8)"))
            assert not waited.is_set()
        writer.result(5)


def test_one_that_refuses_lets_everybody_try_again_at_once(database: tuple[sa.Engine, TcpProxy]) -> None:
    engine, proxy = database
    assert answers(engine)
    proxy.refuse()
    began = time.monotonic()
    assert not answers(engine)
    proxy.restore()
    assert answers(engine)
    assert time.monotonic() - began < 3


def test_who_reads_as_others_find_that_it_hangs_keeps_no_place_of_the_pool(
    database: tuple[sa.Engine, TcpProxy],
) -> None:
    engine, _ = database
    assert answers(engine)
    circuit = _circuits[address_of(engine.url.set(drivername="postgresql").render_as_string())]
    for statement in ("SELECT 1", "SELECT 1/0"):
        with suppress(sa.exc.DBAPIError, CatalogUnreachable), engine.connect() as connection:
            connection.execute(sa.text(statement))
            circuit._why = "it does not answer"
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert seconds_until_it_answers(engine) < 10
