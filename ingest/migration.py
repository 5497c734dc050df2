"""How a catalog of an earlier release becomes one of this release: one transaction, nothing is read anew.

Each step only adds tables, and columns that have a default, so a process of the earlier release that still runs goes on
working on the same file.
"""

from __future__ import annotations

from sqlalchemy import Connection

STEPS: dict[int, tuple[str, ...]] = {
    1: (
        "ALTER TABLE chunks ADD COLUMN standing VARCHAR(10) NOT NULL DEFAULT 'new'",
        "ALTER TABLE chunks ADD COLUMN measures BOOLEAN NOT NULL DEFAULT 0",
        "ALTER TABLE chunks ADD COLUMN standing_by TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE chunks ADD COLUMN standing_why TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE chunks ADD COLUMN standing_since VARCHAR(32) NOT NULL DEFAULT ''",
        "ALTER TABLE images ADD COLUMN withdrawn BOOLEAN NOT NULL DEFAULT 0",
        'ALTER TABLE images ADD COLUMN "group" TEXT',
        "ALTER TABLE images ADD COLUMN cluster TEXT",
        "ALTER TABLE images ADD COLUMN sketch BLOB",
        "ALTER TABLE captions ADD COLUMN withdrawn BOOLEAN NOT NULL DEFAULT 0",
        "CREATE INDEX images_by_cluster ON images (cluster)",
        'CREATE INDEX images_by_group ON images ("group")',
        "CREATE INDEX chunk_captions_by_caption ON chunk_captions (caption)",
        "CREATE INDEX chunk_images_by_image ON chunk_images (image)",
    ),
    2: (
        'CREATE TABLE feedback (seq INTEGER NOT NULL PRIMARY KEY, created VARCHAR(32) NOT NULL, "by" TEXT NOT NULL, '
        "query TEXT NOT NULL, language VARCHAR(80) NOT NULL, release TEXT NOT NULL, other TEXT NOT NULL, "
        "image_id VARCHAR(64) NOT NULL, verdict VARCHAR(10) NOT NULL, "
        'UNIQUE ("by", query, release, other, image_id))',
    ),
    3: (
        "CREATE TABLE asked (day VARCHAR(10) NOT NULL, language VARCHAR(35) NOT NULL, queries INTEGER NOT NULL, "
        "unanswered INTEGER NOT NULL, PRIMARY KEY (day, language))",
    ),
    4: (
        "CREATE TABLE release_words (seq INTEGER NOT NULL PRIMARY KEY, created VARCHAR(32) NOT NULL, "
        'release TEXT NOT NULL, said VARCHAR(10) NOT NULL, "by" TEXT NOT NULL, why TEXT NOT NULL)',
    ),
    5: (
        "CREATE TABLE shadows (seq INTEGER NOT NULL PRIMARY KEY, release TEXT NOT NULL, share FLOAT NOT NULL, "
        "started VARCHAR(32) NOT NULL, \"by\" TEXT NOT NULL, stopped VARCHAR(32) NOT NULL DEFAULT '', "
        "stopped_by TEXT NOT NULL DEFAULT '', why TEXT NOT NULL DEFAULT '', dropped INTEGER NOT NULL DEFAULT 0)",
        "CREATE TABLE shadow_counts (release TEXT NOT NULL, against TEXT NOT NULL, language VARCHAR(35) NOT NULL, "
        "queries INTEGER NOT NULL, refused INTEGER NOT NULL, overlap FLOAT NOT NULL, "
        "same_first INTEGER NOT NULL, moved FLOAT NOT NULL, stronger INTEGER NOT NULL, weaker INTEGER NOT NULL, "
        "seconds FLOAT NOT NULL, seconds_live FLOAT NOT NULL, PRIMARY KEY (release, against, language))",
    ),
    6: (
        "CREATE TABLE aside (seq INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, "
        "chunk INTEGER NOT NULL REFERENCES chunks (seq), "
        "place TEXT NOT NULL, outcome VARCHAR(10) NOT NULL, code VARCHAR(40) NOT NULL, sentence TEXT NOT NULL, "
        "image_id VARCHAR(64) NOT NULL, language VARCHAR(80) NOT NULL, text TEXT NOT NULL, domain TEXT NOT NULL, "
        "split TEXT NOT NULL, \"group\" TEXT NOT NULL, decided VARCHAR(10) NOT NULL DEFAULT '', "
        "decided_by TEXT NOT NULL DEFAULT '', decided_why TEXT NOT NULL DEFAULT '', "
        "decided_at VARCHAR(32) NOT NULL DEFAULT '')",
        "CREATE INDEX aside_by_chunk ON aside (chunk)",
        "CREATE INDEX aside_by_image ON aside (image_id)",
    ),
    7: (
        "CREATE TABLE withheld (image_id VARCHAR(64) NOT NULL PRIMARY KEY, since VARCHAR(32) NOT NULL, "
        '"by" TEXT NOT NULL, why TEXT NOT NULL, links JSON NOT NULL)',
    ),
}
"""By schema number, the statements that make the next one of it."""


def migrate(connection: Connection, found: int, wanted: int) -> None:
    """Brings a catalog from schema `found` to `wanted`; call it inside a write transaction."""
    for number in range(found, wanted):
        for statement in STEPS[number]:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql(f"PRAGMA user_version={number + 1}")
