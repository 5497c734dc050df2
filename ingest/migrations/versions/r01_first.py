"""The tables of the first release; `ingest.schema` makes those of a new catalog at once."""

revision = "1"
down_revision = None


def upgrade() -> None:
    """Nothing is before it."""
