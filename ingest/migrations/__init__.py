"""How a catalog of an earlier release becomes one of this release; alembic runs it."""
