"""What alembic runs to take a catalog from schema to schema, on the connection that `ingest.migration` gives it."""

from collections.abc import Collection, Mapping
from typing import Any

from alembic import context
from alembic.runtime.migration import MigrationContext, MigrationInfo

from ingest.engines import kind_of

connection = context.config.attributes["connection"]


def _number(
    ctx: MigrationContext, step: MigrationInfo, heads: Collection[Any], run_args: Mapping[str, Any]
) -> None:
    """Writes the schema's number where programs of any age, and whoever opens a catalog, look for it."""
    kind_of(connection.dialect.name).set_number(connection, int(str(step.up_revision_id)))


context.configure(connection=connection, on_version_apply=_number)
with context.begin_transaction():  # the caller's: all steps or none
    context.run_migrations()
