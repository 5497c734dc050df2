"""Chunks have a standing, stated groups and what near-copies are found by are kept."""

from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    op.execute("ALTER TABLE chunks ADD COLUMN standing VARCHAR(10) NOT NULL DEFAULT 'new'")
    op.execute("ALTER TABLE chunks ADD COLUMN measures BOOLEAN NOT NULL DEFAULT 0")
    op.execute("ALTER TABLE chunks ADD COLUMN standing_by TEXT NOT NULL DEFAULT ''")
    op.execute("ALTER TABLE chunks ADD COLUMN standing_why TEXT NOT NULL DEFAULT ''")
    op.execute("ALTER TABLE chunks ADD COLUMN standing_since VARCHAR(32) NOT NULL DEFAULT ''")
    op.execute("ALTER TABLE images ADD COLUMN withdrawn BOOLEAN NOT NULL DEFAULT 0")
    op.execute('ALTER TABLE images ADD COLUMN "group" TEXT')
    op.execute("ALTER TABLE images ADD COLUMN cluster TEXT")
    op.execute("ALTER TABLE images ADD COLUMN sketch BLOB")
    op.execute("ALTER TABLE captions ADD COLUMN withdrawn BOOLEAN NOT NULL DEFAULT 0")
    op.execute("CREATE INDEX images_by_cluster ON images (cluster)")
    op.execute('CREATE INDEX images_by_group ON images ("group")')
    op.execute("CREATE INDEX chunk_captions_by_caption ON chunk_captions (caption)")
    op.execute("CREATE INDEX chunk_images_by_image ON chunk_images (image)")
