"""How a catalog of an earlier release becomes one of this release: one transaction, nothing is read anew.

Each step only adds tables, and columns that have a default, so a process of the earlier release that still runs goes on
working on the same file.
"""

from sqlalchemy import Connection

from ingest.tables import metadata

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
    8: (
        "ALTER TABLE images ADD COLUMN gone BOOLEAN NOT NULL DEFAULT 0",
        "ALTER TABLE images ADD COLUMN taken VARCHAR(25) NOT NULL DEFAULT ''",
        "ALTER TABLE images ADD COLUMN camera TEXT NOT NULL DEFAULT ''",
        "ALTER TABLE images ADD COLUMN latitude FLOAT",
        "ALTER TABLE images ADD COLUMN longitude FLOAT",
        "CREATE INDEX images_by_taken ON images (taken)",
    ),
    9: ("CREATE INDEX images_outside ON images (id) WHERE in_gallery = 0",),
}
"""By schema number, the statements that make the next one of it."""
NEW_TABLES = {
    2: ("feedback",),
    3: ("asked",),
    4: ("release_words",),
    5: ("shadows", "shadow_counts"),
    6: ("aside",),
    7: ("withheld",),
    8: ("sources",),
}
"""The tables that came with the next one; none of them has changed since."""


def migrate(connection: Connection, found: int, wanted: int) -> None:
    """Brings a catalog from schema `found` to `wanted`; call it inside a write transaction."""
    for number in range(found, wanted):
        for statement in STEPS.get(number, ()):
            connection.exec_driver_sql(statement)
        for name in NEW_TABLES.get(number, ()):
            metadata.tables[name].create(connection, checkfirst=False)
        connection.exec_driver_sql(f"PRAGMA user_version={number + 1}")
