"""Pictures outside the gallery are found without going through it."""

from alembic import op

revision = "10"
down_revision = "9"


def upgrade() -> None:
    op.execute("CREATE INDEX images_outside ON images (id) WHERE in_gallery = 0")
