"""What keeps a machine that was paused from writing what another has taken over: see `ingest.leases`."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import sqlalchemy as sa

from ingest.dialect import WHOLE
from ingest.errors import LeaseLost
from ingest.tables import metadata

leases = sa.Table(
    "leases",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("token", WHOLE, nullable=False),
    sa.Column("machine", sa.Text, nullable=False),
    sa.Column("host", sa.Text, nullable=False),
    sa.Column("pid", sa.Integer, nullable=False),
    sa.Column("what", sa.Text, nullable=False),
    sa.Column("since", sa.String(32), nullable=False),  # ISO 8601, UTC
    sa.Column("until", sa.Float, nullable=False),  # seconds of the database's clock
)
held_now: ContextVar[tuple[tuple[str, int], ...]] = ContextVar("leases held", default=())
"""Names and numbers of the leases under which this thread writes."""


def require_held(connection: sa.Connection) -> None:
    """Refuses to write what was begun under a lease that another machine has taken since.

    Until the transaction ends nobody takes it; its holder may prolong it meanwhile.

    Raises:
        LeaseLost: another has.
    """
    for name, token in held_now.get():
        if connection.dialect.name == "postgresql":  # SQLite has one writer
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock_shared(*turn_of(name))))
        if connection.scalar(sa.select(leases.c.token).where(leases.c.name == name)) not in (None, token):
            raise LeaseLost


def turn_of(name: str) -> tuple[int, Any]:
    """Returns the key of the lock that keeps a lease from being taken while somebody writes under it."""
    return 0x7065_726C, sa.func.hashtext(sa.func.current_schema() + name)  # "perl"
