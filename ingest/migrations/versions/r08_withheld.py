"""Pictures that a person took out by themselves."""

from alembic import op

revision = "8"
down_revision = "7"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE withheld (
            image_id TEXT NOT NULL,
            since TEXT NOT NULL,
            "by" TEXT NOT NULL,
            why TEXT NOT NULL,
            links JSON NOT NULL,
            PRIMARY KEY (image_id)
        )
    """)
