"""Where each picture was seen, when and where it was taken."""

from alembic import op

revision = "9"
down_revision = "8"


def upgrade() -> None:
    op.execute("ALTER TABLE images ADD COLUMN gone BOOLEAN NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE images ADD COLUMN taken VARCHAR(25) NOT NULL DEFAULT ''")
    op.execute("ALTER TABLE images ADD COLUMN camera TEXT NOT NULL DEFAULT ''")
    op.execute("ALTER TABLE images ADD COLUMN latitude FLOAT")
    op.execute("ALTER TABLE images ADD COLUMN longitude FLOAT")
    op.execute("CREATE INDEX images_by_taken ON images (taken)")
    op.execute("""
        CREATE TABLE sources (
            image_id TEXT NOT NULL,
            kind TEXT NOT NULL,
            place TEXT NOT NULL,
            name TEXT DEFAULT '' NOT NULL,
            size INTEGER DEFAULT 0 NOT NULL,
            modified INTEGER DEFAULT 0 NOT NULL,
            "key" TEXT DEFAULT '' NOT NULL,
            gone TEXT DEFAULT '' NOT NULL,
            fields JSON DEFAULT '{}' NOT NULL,
            PRIMARY KEY (image_id, place, name)
        )
    """)
    op.execute('CREATE INDEX sources_by_key ON sources ("key")')
    op.execute("CREATE INDEX sources_by_place ON sources (place)")
