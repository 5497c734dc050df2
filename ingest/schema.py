"""The catalog's tables of images, captions, chunks, jobs and pins; what else it has lies in a module of its own."""

import sqlalchemy as sa

from ingest.dialect import WHOLE
from ingest.long_texts import Long, by_hash
from ingest.tables import Said, metadata

SCHEMA = 11


chunks = sa.Table(
    "chunks",
    metadata,
    sa.Column("seq", WHOLE, primary_key=True),
    sa.Column("id", sa.String(12), nullable=False, unique=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("created", sa.String(32), nullable=False),
    sa.Column("in_gallery", sa.Boolean, nullable=False),
    sa.Column("new_pairs", sa.Integer, nullable=False),
    sa.Column("new_images", sa.Integer, nullable=False),
    sa.Column("report", sa.JSON, nullable=False),
    sa.Column("standing", sa.String(10), nullable=False, server_default="new"),
    sa.Column("measures", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("standing_by", sa.Text, nullable=False, server_default=""),
    sa.Column("standing_why", Said, nullable=False, server_default=""),
    sa.Column("standing_since", sa.String(32), nullable=False, server_default=""),
)

images = sa.Table(
    "images",
    metadata,
    sa.Column("seq", WHOLE, primary_key=True),
    sa.Column("id", sa.String(64), nullable=False, unique=True),
    sa.Column("domain", sa.String(64), nullable=False),
    sa.Column("split", sa.String(10), nullable=False),
    sa.Column("width", sa.Integer, nullable=False),
    sa.Column("height", sa.Integer, nullable=False),
    sa.Column("format", sa.String(8), nullable=False),
    sa.Column("in_gallery", sa.Boolean, nullable=False),
    sa.Column("chunk", WHOLE, sa.ForeignKey("chunks.seq"), nullable=False),
    # Whether no chunk but withdrawn ones has it.
    sa.Column("withdrawn", sa.Boolean, nullable=False, server_default=sa.false()),
    # Whether none of the places where it was seen is left; it is no answer then.
    sa.Column("gone", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("taken", sa.String(25), nullable=False, server_default=""),  # when, by the camera: ISO 8601
    sa.Column("camera", sa.Text, nullable=False, server_default=""),
    sa.Column("latitude", sa.Float),  # in degrees
    sa.Column("longitude", sa.Float),
    sa.Column("group", sa.Text),  # as stated
    sa.Column(
        "cluster", sa.Text
    ),  # one name for the pictures of one thing, stated or found; NULL: it is alone
    sa.Column("sketch", sa.LargeBinary),  # what near-copies are found by; NULL: not made yet
    sa.Index("images_by_domain", "domain", "split"),
    sa.Index("images_by_cluster", "cluster"),
    sa.Index("images_by_group", "group"),
    sa.Index("images_by_taken", "taken"),
    sa.Index(
        "images_outside",
        "id",
        sqlite_where=sa.text("in_gallery = 0"),
    ),
)

captions = sa.Table(
    "captions",
    metadata,
    sa.Column("seq", WHOLE, primary_key=True),
    sa.Column("image", WHOLE, sa.ForeignKey("images.seq"), nullable=False),
    sa.Column("language", sa.String(35), nullable=False),
    sa.Column("text", sa.Text, nullable=False),
    # Whether no chunk but withdrawn ones has it.
    sa.Column("withdrawn", sa.Boolean, nullable=False, server_default=sa.false()),
    # PostgreSQL's index holds no long text.
    sa.UniqueConstraint("image", "language", "text").ddl_if("sqlite"),
    sa.Index(
        "captions_once", "image", "language", sa.text("md5(text)"), sa.text("length(text)"), unique=True
    ).ddl_if("postgresql"),
    sa.Index("captions_by_language", "language"),
)

# A chunk keeps all its pairs, also those an earlier chunk brought first: it can be trained again as it was.
chunk_captions = sa.Table(
    "chunk_captions",
    metadata,
    sa.Column("chunk", WHOLE, sa.ForeignKey("chunks.seq"), primary_key=True),
    sa.Column("caption", WHOLE, sa.ForeignKey("captions.seq"), primary_key=True),
    sa.Index("chunk_captions_by_caption", "caption"),
    sqlite_with_rowid=False,
)

chunk_images = sa.Table(
    "chunk_images",
    metadata,
    sa.Column("chunk", WHOLE, sa.ForeignKey("chunks.seq"), primary_key=True),
    sa.Column("image", WHOLE, sa.ForeignKey("images.seq"), primary_key=True),
    sa.Index("chunk_images_by_image", "image"),
    sqlite_with_rowid=False,
)

jobs = sa.Table(
    "jobs",
    metadata,
    sa.Column("seq", WHOLE, primary_key=True),
    sa.Column("kind", sa.String(32), nullable=False),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("arguments", sa.JSON, nullable=False),
    sa.Column("progress", sa.JSON, nullable=False),
    sa.Column("result", sa.JSON, nullable=False),
    sa.Column("error", Said),
    sa.Column("pid", sa.Integer),
    sa.Column("created", sa.String(32), nullable=False),
    sa.Column("started", sa.String(32)),
    sa.Column("finished", sa.String(32)),
    sa.Index("jobs_by_state", "state"),
)

pins = by_hash(
    sa.Table(
        "pins",
        metadata,
        sa.Column("query", Long, primary_key=True),
        sa.Column("language", sa.String(35), primary_key=True),
        sa.Column("image_id", sa.String(64), nullable=False),
    )
)
