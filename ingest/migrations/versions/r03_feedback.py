"""What people say of answers."""

from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE feedback (
            seq INTEGER NOT NULL,
            created TEXT NOT NULL,
            "by" TEXT NOT NULL,
            "query" TEXT NOT NULL,
            language TEXT NOT NULL,
            release TEXT NOT NULL,
            other TEXT NOT NULL,
            image_id TEXT NOT NULL,
            verdict TEXT NOT NULL,
            PRIMARY KEY (seq),
            UNIQUE ("by", "query", release, other, image_id)
        )
    """)
