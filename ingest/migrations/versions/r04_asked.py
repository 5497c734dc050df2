"""How often each language is asked for."""

from alembic import op

revision = "4"
down_revision = "3"


def upgrade() -> None:
    op.execute("""
        CREATE TABLE asked (
            language TEXT NOT NULL,
            queries INTEGER NOT NULL,
            unanswered INTEGER NOT NULL,
            day TEXT NOT NULL,
            PRIMARY KEY (language, day)
        )
    """)
