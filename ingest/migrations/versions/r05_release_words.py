"""What people say of releases."""

from alembic import op

revision = "5"
down_revision = "4"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE release_words (
            seq INTEGER NOT NULL,
            created TEXT NOT NULL,
            release TEXT NOT NULL,
            said TEXT NOT NULL,
            "by" TEXT NOT NULL,
            why TEXT NOT NULL,
            PRIMARY KEY (seq)
        )
    """)
