"""Where pictures lie in a bucket, which folders were published there, and who of several machines does what."""

import sqlalchemy as sa
from alembic import op

from ingest.dialect import WHOLE

revision = "11"
down_revision = "10"


def upgrade() -> None:
    op.create_table(
        "packs",
        sa.Column("seq", WHOLE, primary_key=True),
        sa.Column("name", sa.String(64), nullable=False, unique=True),
    )
    op.create_table(
        "packed",
        sa.Column("key", sa.LargeBinary, primary_key=True),
        sa.Column("pack", WHOLE, sa.ForeignKey("packs.seq"), nullable=False),
        sa.Column("begins", WHOLE, nullable=False),
        sa.Column("length", WHOLE, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("packed_by_pack", "packed", ["pack"])
    op.create_table(
        "published",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("manifest", sa.LargeBinary, nullable=False),
        sa.Column("since", sa.String(32), nullable=False),
        sa.Column("pruned", sa.LargeBinary),
    )
    op.create_table(
        "leases",
        sa.Column("name", sa.String(64), primary_key=True),
        sa.Column("token", WHOLE, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
        sa.Column("host", sa.Text, nullable=False),
        sa.Column("pid", sa.Integer, nullable=False),
        sa.Column("what", sa.Text, nullable=False),
        sa.Column("since", sa.String(32), nullable=False),
        sa.Column("until", sa.Float, nullable=False),
    )
