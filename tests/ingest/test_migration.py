from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from ingest import migration, schema, sqlite
from ingest.catalog import Catalog
from ingest.errors import CatalogError, CatalogTooNew
from ingest.pair import Pair, Split

pytestmark = pytest.mark.sqlite

# The tables as release 0.1 made them, with one chunk of one picture.
SCHEMA_1 = """
CREATE TABLE chunks (seq INTEGER NOT NULL PRIMARY KEY, id VARCHAR(12) NOT NULL UNIQUE, name TEXT NOT NULL,
    created VARCHAR(32) NOT NULL, in_gallery BOOLEAN NOT NULL, new_pairs INTEGER NOT NULL,
    new_images INTEGER NOT NULL, report JSON NOT NULL);
CREATE TABLE images (seq INTEGER NOT NULL PRIMARY KEY, id VARCHAR(64) NOT NULL UNIQUE,
    domain VARCHAR(64) NOT NULL, split VARCHAR(10) NOT NULL, width INTEGER NOT NULL, height INTEGER NOT NULL,
    format VARCHAR(8) NOT NULL, in_gallery BOOLEAN NOT NULL, chunk INTEGER NOT NULL REFERENCES chunks (seq));
CREATE INDEX images_by_domain ON images (domain, split);
CREATE TABLE captions (seq INTEGER NOT NULL PRIMARY KEY, image INTEGER NOT NULL REFERENCES images (seq),
    language VARCHAR(35) NOT NULL, text TEXT NOT NULL, UNIQUE (image, language, text));
CREATE INDEX captions_by_language ON captions (language);
CREATE TABLE chunk_captions (chunk INTEGER NOT NULL REFERENCES chunks (seq),
    caption INTEGER NOT NULL REFERENCES captions (seq), PRIMARY KEY (chunk, caption)) WITHOUT ROWID;
CREATE TABLE chunk_images (chunk INTEGER NOT NULL REFERENCES chunks (seq),
    image INTEGER NOT NULL REFERENCES images (seq), PRIMARY KEY (chunk, image)) WITHOUT ROWID;
CREATE TABLE jobs (seq INTEGER NOT NULL PRIMARY KEY, kind VARCHAR(32) NOT NULL, state VARCHAR(16) NOT NULL,
    arguments JSON NOT NULL, progress JSON NOT NULL, result JSON NOT NULL, error TEXT, pid INTEGER,
    created VARCHAR(32) NOT NULL, started VARCHAR(32), finished VARCHAR(32));
CREATE INDEX jobs_by_state ON jobs (state);
CREATE TABLE pins (query TEXT NOT NULL, language VARCHAR(35) NOT NULL, image_id VARCHAR(64) NOT NULL,
    PRIMARY KEY (query, language));
CREATE VIRTUAL TABLE captions_text USING fts5(text, content='captions', content_rowid='seq',
    tokenize='unicode61 remove_diacritics 2');
CREATE TRIGGER captions_inserted AFTER INSERT ON captions BEGIN
    INSERT INTO captions_text(rowid, text) VALUES (new.seq, new.text); END;
INSERT INTO chunks VALUES (1, 'aaa111aaa111', 'old', '2026-01-01', 1, 1, 1, '{"notes": ["kept"]}');
INSERT INTO images VALUES (1, 'picture', 'photo', 'test', 64, 48, 'PNG', 1, 1);
INSERT INTO captions VALUES (1, 1, 'en', 'a red boat');
INSERT INTO chunk_captions VALUES (1, 1);
INSERT INTO chunk_images VALUES (1, 1);
PRAGMA user_version=1;
"""


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "catalog.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(SCHEMA_1)
    connection.close()
    return path


@pytest.mark.parametrize("read_only", [False, True])
def test_a_catalog_of_the_first_schema_is_brought_up_to_date_with_all_it_holds(
    old: Path, read_only: bool
) -> None:
    with Catalog.open(old, read_only=read_only) as catalog:
        assert catalog.pairs() == [Pair("picture", "a red boat", "en", "photo", Split.TEST)]
        assert [found.text for found in catalog.find_captions("boat")] == ["a red boat"]
        (chunk,) = catalog.chunks()
        assert (chunk.standing, chunk.measures, chunk.standing_by) == ("new", False, "")
        assert chunk.report == {"notes": ["kept"]}
        assert catalog.groups(["picture"]) == {"picture": "picture"}
    with Catalog.open(old) as catalog:
        assert catalog.set_standing("aaa", "withdrawn", by="ann", why="wrong file").standing == "withdrawn"
        assert catalog.gallery_ids() == []


def test_an_old_catalog_has_the_tables_and_indexes_of_a_new_one(old: Path, tmp_path: Path) -> None:
    def shape(path: Path) -> dict[str, set[tuple[str, str, int]]]:
        Catalog.open(path).close()
        connection = sqlite3.connect(path)
        tables = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if name != "alembic_version"
        ]
        found = {
            table: {
                (name, kind, need)
                for _, name, kind, need, *_ in connection.execute(f"PRAGMA table_info({table})")
            }
            for table in tables
        }
        indexes = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL"
        )
        found["indexes"] = {(name, "", 0) for (name,) in indexes}
        connection.close()
        return found

    assert shape(old) == shape(tmp_path / "new.sqlite")


def test_a_process_of_the_earlier_release_can_still_write(old: Path) -> None:
    Catalog.open(old).close()
    connection = sqlite3.connect(old)
    connection.execute(
        "INSERT INTO chunks (id, name, created, in_gallery, new_pairs, new_images, report) "
        "VALUES ('bbb222bbb222', 'b', '2026-01-02', 1, 0, 0, '{}')"
    )
    connection.commit()
    connection.close()
    with Catalog.open(old, read_only=True) as catalog:
        assert catalog.chunk("bbb").standing == "new"


def test_an_old_catalog_that_cannot_be_written_says_what_to_do(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_MILLISECONDS", 20)
    other = sqlite3.connect(old, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(CatalogError, match=r"schema 1.*locked.*perennial status"):
        Catalog.open(old, read_only=True)
    other.execute("ROLLBACK")
    other.close()
    Catalog.open(old, read_only=True).close()


def test_a_failed_migration_leaves_the_old_catalog(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        connection.execute("CREATE TABLE sources (x TEXT)")  # the last table but one that the steps make
        before = list(connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name"))
    with pytest.raises(CatalogError, match="sources already exists"):
        Catalog.open(old)
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert list(connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name")) == before
        connection.execute("DROP TABLE sources")
    Catalog.open(old).close()


def test_the_catalog_is_copied_as_it_was_before_it_changes(old: Path) -> None:
    Catalog.open(old).close()
    copy = old.with_name("catalog-schema-1.sqlite")
    assert sorted(path.name for path in old.parent.glob("*.sqlite*")) == [copy.name, old.name]
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        assert connection.execute("SELECT text FROM captions").fetchall() == [("a red boat",)]
    copy.replace(old)
    with Catalog.open(old) as catalog:
        assert len(catalog.pairs()) == 1


@pytest.mark.parametrize("number", range(1, schema.SCHEMA))
def test_each_schema_is_recognised_by_its_number(old: Path, number: int) -> None:
    """Homes carry a number that no alembic wrote."""
    with sa.create_engine(f"sqlite:///{old}").begin() as connection:
        migration.migrate(connection, 1, number)
        connection.exec_driver_sql("DROP TABLE IF EXISTS alembic_version")
    with Catalog.open(old) as catalog:
        assert len(catalog.pairs()) == 1
    with closing(sqlite3.connect(old)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (schema.SCHEMA,)
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [
            (str(schema.SCHEMA),)
        ]


def test_a_newer_catalog_is_refused_and_not_touched(old: Path) -> None:
    with closing(sqlite3.connect(old)) as connection:
        connection.execute(f"PRAGMA user_version={schema.SCHEMA + 1}")
    before = old.read_bytes()
    with pytest.raises(CatalogTooNew, match=f"has schema {schema.SCHEMA + 1}.*Install a newer release"):
        Catalog.open(old)
    assert old.read_bytes()[100:] == before[100:]


def test_opening_a_catalog_that_needs_no_step_loads_no_alembic(tmp_path: Path) -> None:
    opened = (
        "import sys; from pathlib import Path; from ingest.catalog import Catalog; "
        f"Catalog.open(Path({str(tmp_path / 'new.sqlite')!r})).close(); print('alembic' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", opened], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.postgres
@pytest.mark.parametrize("read_only", [False, True])
def test_a_catalog_in_a_database_is_brought_up_to_date(tmp_path: Path, read_only: bool) -> None:
    import psycopg

    from tests.postgres_server import made_in

    address = made_in(tmp_path)
    with Catalog.open(address) as catalog:
        catalog.add_job("gallery")
    with psycopg.connect(address, autocommit=True) as connection:  # as it was before there were buckets
        connection.execute("DROP TABLE packed, packs, published, leases")
        connection.execute("UPDATE catalog_schema SET number = 10")
        with Catalog.open(address, read_only=read_only) as catalog:
            assert [job.kind for job in catalog.jobs()] == ["gallery"]
            assert catalog.packs.names() == []
        assert connection.execute("SELECT number FROM catalog_schema").fetchall() == [(schema.SCHEMA,)]
    with Catalog.open(address) as catalog:
        catalog.published.enter("v1-00000000", b"{}")
        assert catalog.published.ids("v") == ["v1-00000000"]


@pytest.mark.postgres
def test_who_may_not_change_tables_is_told_that_the_catalog_is_older(tmp_path: Path) -> None:
    import psycopg

    from tests.postgres_server import made_in

    address = made_in(tmp_path)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE packed, packs, published, leases")
        connection.execute("UPDATE catalog_schema SET number = 10")
        (name,) = connection.execute("SELECT current_schema()").fetchone() or ("",)
        connection.execute("DROP OWNED BY reader; DROP ROLE reader") if connection.execute(
            "SELECT 1 FROM pg_roles WHERE rolname = 'reader'"
        ).fetchone() else None
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {name} TO reader")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO reader")
    with pytest.raises(CatalogError, match="of an earlier release .schema 10. and has to be written once"):
        Catalog.open(address.replace("postgres@", "reader@"), read_only=True)
