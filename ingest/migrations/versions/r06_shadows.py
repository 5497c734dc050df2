"""Candidates that are asked live queries, too."""

from alembic import op

revision = "6"
down_revision = "5"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE shadows (
            seq INTEGER NOT NULL,
            release TEXT NOT NULL,
            share FLOAT NOT NULL,
            started TEXT NOT NULL,
            "by" TEXT NOT NULL,
            stopped TEXT DEFAULT '' NOT NULL,
            stopped_by TEXT DEFAULT '' NOT NULL,
            why TEXT DEFAULT '' NOT NULL,
            dropped INTEGER DEFAULT 0 NOT NULL,
            PRIMARY KEY (seq)
        )
    """)
    op.execute("""
        CREATE TABLE shadow_counts (
            release TEXT NOT NULL,
            against TEXT NOT NULL,
            language TEXT NOT NULL,
            queries INTEGER DEFAULT 0 NOT NULL,
            refused INTEGER DEFAULT 0 NOT NULL,
            overlap FLOAT DEFAULT (0.0) NOT NULL,
            same_first INTEGER DEFAULT 0 NOT NULL,
            moved FLOAT DEFAULT (0.0) NOT NULL,
            stronger INTEGER DEFAULT 0 NOT NULL,
            weaker INTEGER DEFAULT 0 NOT NULL,
            seconds FLOAT DEFAULT (0.0) NOT NULL,
            seconds_live FLOAT DEFAULT (0.0) NOT NULL,
            PRIMARY KEY (release, against, language)
        )
    """)
