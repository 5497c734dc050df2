"""Held and rejected pairs are kept."""

from alembic import op

revision = "7"
down_revision = "6"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE aside (
            place TEXT NOT NULL,
            outcome TEXT NOT NULL,
            code TEXT NOT NULL,
            sentence TEXT NOT NULL,
            image_id TEXT NOT NULL,
            language TEXT DEFAULT '' NOT NULL,
            text TEXT DEFAULT '' NOT NULL,
            domain TEXT DEFAULT '' NOT NULL,
            split TEXT DEFAULT '' NOT NULL,
            "group" TEXT DEFAULT '' NOT NULL,
            seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
            decided TEXT DEFAULT '' NOT NULL,
            decided_by TEXT DEFAULT '' NOT NULL,
            decided_why TEXT DEFAULT '' NOT NULL,
            decided_at TEXT DEFAULT '' NOT NULL,
            chunk INTEGER NOT NULL,
            FOREIGN KEY(chunk) REFERENCES chunks (seq)
        )
    """)
    op.execute("CREATE INDEX aside_by_chunk ON aside (chunk)")
    op.execute("CREATE INDEX aside_by_image ON aside (image_id)")
