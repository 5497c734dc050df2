"""Waiting for PostgreSQL: as long as it takes while the database answers, and some seconds where it does not.

A statement may take long: it waits for a lock, builds an index, copies a catalog. So none has a time-out. Where one is
silent for some seconds, another connection asks whether the database answers at all; libpq's own options find a
connection that the network has lost (https://www.postgresql.org/docs/current/libpq-connect.html).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen
from psycopg.errors import ConnectionTimeout
from psycopg.pq import TransactionStatus

from ingest.circuit import Circuit

Answer = TypeVar("Answer")
_SILENT_SECONDS = _PROBE_SECONDS = 3
_LONG_SECONDS = 15
OPTIONS = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,  # milliseconds
}
_SILENT = "it does not answer"
_circuits: dict[Hashable, Circuit] = {}


class WatchedConnection(psycopg.Connection[Any]):
    """A connection that is given up where it is silent, and the database answers nobody else, either."""

    circuit: Circuit | None = None  # none: of what asks whether it answers

    def wait(self, gen: PQGen[Answer], *interval: Any, **more: Any) -> Answer:
        """Waits for the database.

        Raises:
            ConnectionTimeout: it does not answer; the connection is closed.
        """
        is_new = self.pgconn.transaction_status == TransactionStatus.IDLE
        return super().wait(self._listening(gen, is_new=is_new), *interval, **more)

    def _listening(self, gen: PQGen[Answer], *, is_new: bool) -> PQGen[Answer]:
        began = heard = time.monotonic()
        misses = 0
        try:
            wanted = next(gen)  # what needs no answer, such as a setting of the connection, ends here
            if is_new and self.circuit is not None and (why := self.circuit.why_open()):
                self._give_up(why)
            while True:
                ready = yield wanted
                if ready:
                    heard, misses = time.monotonic(), 0
                elif time.monotonic() - heard > _SILENT_SECONDS:
                    answers = self.circuit is not None and self.circuit.answers()
                    misses = 0 if answers else misses + 1
                    # What has taken long may be worth more than one answer that came too late.
                    if misses > (time.monotonic() - began > _LONG_SECONDS):
                        self._give_up(_SILENT)
                    heard = time.monotonic()
                wanted = gen.send(ready)
        except StopIteration as ended:
            answer: Answer = ended.value
            return answer

    def _give_up(self, why: str) -> None:
        self.close()
        raise ConnectionTimeout(why)


def connecting(address: Hashable) -> Callable[..., WatchedConnection]:
    """Returns what connects to a database instead of SQLAlchemy (its event `do_connect`), unless it is not to be asked.

    All that connects to the same address shares a circuit breaker.
    """

    def connect(
        _: object, __: object, positional: tuple[Any, ...], named: dict[str, Any]
    ) -> WatchedConnection:
        circuit = _circuits.setdefault(address, Circuit(partial(_ask, positional, dict(named))))
        if why := circuit.why_open():
            raise ConnectionTimeout(why)
        try:
            connection = WatchedConnection.connect(*positional, **named)
        except ConnectionTimeout:
            circuit.doubt()
            raise
        connection.circuit = circuit
        return connection

    return connect


def _ask(positional: tuple[Any, ...], named: dict[str, Any]) -> str:
    """Returns why a database does not answer; nothing where it does, or refuses."""
    try:
        with WatchedConnection.connect(
            *positional, **{**named, "connect_timeout": _PROBE_SECONDS}, autocommit=True
        ) as connection:
            connection.execute("SELECT 1")
    except psycopg.Error as error:
        return _SILENT if isinstance(error, ConnectionTimeout) else ""
    return ""
