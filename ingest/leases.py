"""Who may do what one machine at a time does, of several that share a home: leases in the catalog.

A lease is held until a time of the database's clock, and prolonged by a thread while its holder lives. Who takes one
that has run out gets the next number, and what the one before still writes is refused by that number: a machine that
was paused comes back and changes nothing (https://doi.org/10.1145/74850.74870, on leases).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from ingest.dialect import upsert
from ingest.engines import POSTGRESQL, writing
from ingest.errors import CatalogError, LeaseHeld
from ingest.fence import held_now, leases, turn_of
from ingest.tables import TableQueries

logger = logging.getLogger(__name__)

SECONDS = 30.0
"""For so long a holder is believed to be alive that says nothing."""
_EVERY = 5.0  # seconds, after which it says so again


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a lease, or held it last."""

    machine: str  # which folder of which machine
    host: str
    pid: int
    what: str  # it does, in words
    since: str  # ISO 8601, UTC
    left: float  # seconds for which it still counts; below zero: it ran out so long ago
    is_given_back: bool = False


class _Clock(FunctionElement[float]):
    """The database's clock, in seconds; as the statement runs, not as its transaction began."""

    inherit_cache = True
    type = sa.Float()


@compiles(_Clock, "postgresql")
def _clock_of_postgres(element: _Clock, compiler: Any, **how: Any) -> str:
    return "extract(epoch from clock_timestamp())"


@compiles(_Clock, "sqlite")
def _clock_of_sqlite(element: _Clock, compiler: Any, **how: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


class LeaseTable(TableQueries):
    """The leases of a catalog."""

    def holder(self, name: str) -> Holder | None:
        """Returns who holds a lease, or held it last; None where nobody did."""
        return self.holders(name).get(name)

    def holders(self, prefix: str) -> dict[str, Holder]:
        """Returns who holds each lease whose name begins so, or held it last, by name."""
        row = leases.c
        asked = (row.machine, row.host, row.pid, row.what, row.since, row.until - _Clock(), row.until == 0)
        found = self._rows(sa.select(row.name, *asked).where(row.name.startswith(prefix, autoescape=True)))
        return {name: Holder(*rest) for name, *rest in found}

    def say(self, name: str, holder: Holder, *, seconds: float = SECONDS) -> None:
        """Says that a machine is there, until it has said nothing for so long."""
        with self._brief() as connection:
            connection.execute(self._taking(name, holder, seconds))

    @contextmanager
    def held(self, name: str, holder: Holder, *, seconds: float = SECONDS) -> Iterator[None]:
        """Holds a lease while a block runs; what the block writes is refused from the moment that another has it.

        What the same machine held before goes over: it looked whether that process lives.

        Raises:
            LeaseHeld: another machine holds it.
            LeaseLost: by what the block writes, when another machine has taken it since.
        """
        token = self._take(name, holder, seconds)
        if token is None:
            raise LeaseHeld(name)
        stopping = threading.Event()
        beating = threading.Thread(
            target=self._prolong, args=(name, token, seconds, stopping), name=f"lease-{name}", daemon=True
        )
        beating.start()
        before = held_now.set((*held_now.get(), (name, token)))
        try:
            yield
        finally:
            held_now.reset(before)
            stopping.set()
            beating.join()
            try:
                self._set(name, token, sa.literal(0.0))
            except (CatalogError, SQLAlchemyError) as error:  # it runs out by itself
                logger.warning("lease=%s was not given back: %s", name, error)

    @contextmanager
    def briefly(self, name: str, holder: Holder, *, patience: float = SECONDS) -> Iterator[None]:
        """Holds a lease for a moment; waits for it.

        Raises:
            LeaseHeld: it took longer than that, in seconds.
        """
        end = time.monotonic() + patience
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(self.held(name, holder))
                    break
                except LeaseHeld:
                    if time.monotonic() > end:
                        raise
                    time.sleep(0.05)
            yield  # beyond the loop: the block may be refused another lease

    def _take(self, name: str, holder: Holder, seconds: float) -> int | None:
        with self._brief() as connection:
            if connection.dialect.name == POSTGRESQL:  # SQLite has one writer
                connection.execute(sa.select(sa.func.pg_advisory_xact_lock(*turn_of(name))))
            token: int | None = connection.scalar(self._taking(name, holder, seconds))
        return token

    @staticmethod
    def _taking(name: str, holder: Holder, seconds: float) -> sa.Insert:
        facts = {
            "name": name,
            "token": 1,
            "machine": holder.machine,
            "host": holder.host,
            "pid": holder.pid,
            "what": holder.what,
            "since": holder.since,
            "until": _Clock() + seconds,
        }
        statement = upsert(leases).values(facts)
        anew = {one: statement.excluded[one] for one in facts if one not in ("name", "token")}
        is_free = sa.or_(leases.c.until < _Clock(), leases.c.machine == holder.machine)
        return statement.on_conflict_do_update(
            index_elements=["name"], set_=anew | {"token": leases.c.token + 1}, where=is_free
        ).returning(leases.c.token)

    def _prolong(self, name: str, token: int, seconds: float, stopping: threading.Event) -> None:
        every = pause = min(_EVERY, seconds / 3)
        while not stopping.wait(pause):
            pause = every
            try:
                if not self._set(name, token, _Clock() + seconds):
                    logger.warning("lease=%s is another machine's now", name)
                    return
            except (CatalogError, SQLAlchemyError) as error:  # it comes back, or another has it then
                logger.warning("lease=%s could not be prolonged: %s", name, error)
                pause = min(1.0, every)

    def _set(self, name: str, token: int, until: sa.ColumnElement[float]) -> bool:
        own = sa.update(leases).where(leases.c.name == name, leases.c.token == token)
        with self._brief() as connection:
            return connection.execute(own.values(until=until)).rowcount == 1

    @contextmanager
    def _brief(self) -> Iterator[sa.Connection]:
        """Runs one statement; in PostgreSQL it waits for no other writer, who may be at it for long."""
        if self._engine.dialect.name == POSTGRESQL:
            with self._engine.execution_options(isolation_level="READ COMMITTED").begin() as connection:
                yield connection
            return
        with writing(self._engine) as connection:
            yield connection
