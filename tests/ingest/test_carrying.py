"""Claims about carrying a catalog: every row comes along, and nobody writes to what was left behind."""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from ingest.carrying import carry, copy_rows, held
from ingest.catalog import Catalog
from ingest.engines import Place, open_engine, writing
from ingest.errors import CatalogError, CatalogHeld, CatalogMissing, CatalogMoved
from ingest.pair import Split
from ingest.postgres_connection import plain
from ingest.records import NewAside, NewChunk, NewImage
from ingest.sources import PictureSource
from ingest.tables import metadata
from tests.ingest.test_catalog import chunk_of, image_id

pytestmark = pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR")
# Longer than what an index of PostgreSQL's holds, and nothing that can be packed.
LONG = "".join(map(chr, random.Random(1).choices(range(0x4E00, 0x9FFF), k=1990)))
LONGEST = LONG * 5
REPORT = {"said": "\0 é 😀 \\u0000", "half": "\ud800", "number": float("nan"), "most": [float("inf"), 1]}
FILE, DATABASE = "file", pytest.param("database", marks=pytest.mark.postgres)


@pytest.fixture(params=[FILE, DATABASE])
def before(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    """A catalog with something in every table that people fill, in a file and in a database."""
    file = tmp_path / "catalog.sqlite"
    with opened(file) as catalog:
        fill(catalog)
    place: Place = file
    if request.param == "database":
        place = database("before", tmp_path)
        carry(file, place, lambda: None)
    with opened(place) as catalog:
        yield catalog


@pytest.fixture(params=[FILE, DATABASE])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Where there is no catalog."""
    return database("elsewhere", tmp_path) if request.param == "database" else tmp_path / "elsewhere.sqlite"


def database(name: str, tmp_path: Path) -> str:
    from tests.postgres_server import schema_for

    return schema_for(tmp_path / name)


def opened(place: Place) -> Catalog:
    return Catalog(open_engine(place, read_only=False), place)


def fill(catalog: Catalog) -> None:
    catalog.record_chunk(
        chunk_of("aaa111aaa111", range(40), ("en", "de")), lambda new: {"new": new.new_pairs}
    )
    texts = [
        "naïve CAFÉ, l'été",
        "कुत्ता दौड़ता है",
        "一只红色的船",
        "a t-shirt, a t-shirt",
        "word" * 700,
        "\0 nothing",
    ]
    ids = [image_id(100 + n) for n in range(len(texts))]
    pictures = [NewImage(one, "photo", Split.TRAIN, 64, 48, "PNG", latitude=0.1 + 0.2) for one in ids]
    captions = [(one, "en", text) for one, text in zip(ids, texts, strict=True)]
    catalog.record_chunk(NewChunk("bbb222bbb222", "b", True, pictures, captions), lambda _: REPORT)
    catalog.record_chunk(chunk_of("ccc333ccc333", range(50, 60)))
    catalog.set_standing("ccc333ccc333", "withdrawn", by="x", why="y")
    catalog.withheld.take_out([image_id(3)], by="x", why="y")
    catalog.set_pin("boat", "en", image_id(1))
    catalog.asked.add(date(2026, 3, 1), {"en": (3, 1)})
    catalog.release_words.say("r1", "kept", by="x", why="y")
    catalog.add_job("ingest", {"source": "a.zip"})


def rows(place: Place) -> dict[str, list[Any]]:
    with held(place) as connection:
        return {
            one.name: [tuple(row) for row in connection.execute(sa.select(one).order_by(*one.primary_key))]
            for one in metadata.sorted_tables
        }


def searched(catalog: Catalog) -> list[object]:
    asked = [
        "en text 7",
        "text",
        "été",
        "कुत्ता",
        "红色",
        "t-shirt",
        "t shirt a",
        "te",
        "wordword",
        "!!!",
        "nothing here",
    ]
    return [[catalog.find_captions(one), catalog.captioned_like(one)] for one in asked]


def test_every_row_comes_along_and_is_found_as_before(before: Catalog, elsewhere: Place) -> None:
    kept, found, place = rows(before.place), searched(before), before.place
    assert carry(place, elsewhere, lambda: None) == sum(map(len, kept.values())) > 200
    assert {name: len(some) for name, some in rows(elsewhere).items()} == {
        name: len(some) for name, some in kept.items()
    }
    assert as_kept(rows(elsewhere)) == as_kept(kept)
    with opened(elsewhere) as after:
        assert searched(after) == found
        job = after.add_job("ingest")
        assert job.id == "j2", "what comes next is numbered after what came along"
        after.record_chunk(chunk_of("ddd444ddd444", range(70, 72)), lambda _: {})
        assert len(after.chunks()) == 4
        after.forget([image_id(100)])
        assert not after.find_captions("café")
    carry(elsewhere, place, lambda: None)
    with opened(place) as again:
        assert len(again.chunks()) == 4
        assert not again.find_captions("café")


def as_kept(tables: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """What PostgreSQL keeps of rows: no NUL, no half of a character, and no number that is none."""
    return {name: [tuple(map(plain, row)) for row in some] for name, some in tables.items()}


def test_who_had_it_open_reads_on_and_writes_where_it_lies_now(before: Catalog, elsewhere: Place) -> None:
    pins = before.pins()
    carry(before.place, elsewhere, lambda: None)
    assert before.pins() == pins
    with pytest.raises(CatalogMoved, match="another place"):
        before.set_pin("car", "en", image_id(2))
    with pytest.raises(CatalogMissing):
        opened(before.place)
    if isinstance(before.place, Path):
        with (
            closing(sqlite3.connect(before.place)) as earlier,
            pytest.raises(sqlite3.Error, match="another place"),
        ):
            earlier.execute("DELETE FROM pins")  # as a program that knows of no other place
    before.follow(elsewhere)
    before.set_pin("car", "en", image_id(2))
    before.asked.add(date(2026, 3, 1), {"en": (1, 0)})
    with opened(elsewhere) as after:
        assert [one.query for one in after.pins()] == ["boat", "car"]
        assert after.asked.since(date(2026, 3, 1))[0].queries == 4


def test_cut_off_before_it_is_decided_all_is_as_it_was(before: Catalog, elsewhere: Place) -> None:
    def cut_off() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        carry(before.place, elsewhere, cut_off)
    before.set_pin("car", "en", image_id(2))
    carry(before.place, elsewhere, lambda: None)
    with opened(elsewhere) as after:
        assert [one.query for one in after.pins()] == ["boat", "car"]


def test_cut_off_while_it_is_decided_nobody_writes_anywhere_until_it_is_finished(
    before: Catalog, elsewhere: Place, tmp_path: Path
) -> None:
    """A process is killed in the moment between the two places, while another waits to write."""
    kept, place = rows(before.place), before.place
    with ThreadPoolExecutor() as others:
        killed = multiprocessing.get_context("spawn").Process(
            target=carried_and_killed, args=(place, elsewhere)
        )
        killed.start()
        waiting = [others.submit(before.set_pin, f"{n}", "en", image_id(2)) for n in range(2)]
        killed.join()
    assert killed.exitcode == 7
    done = {f"{n}" for n, one in enumerate(waiting) if not one.exception()}
    assert all(isinstance(one.exception(), CatalogMoved | None) for one in waiting)
    carry(place, elsewhere, lambda: None, owner="this home")
    with opened(elsewhere) as after:
        assert {one.query for one in after.pins()} == {"boat", *done}, "what was said to be done is there"
    was, now = as_kept(kept), as_kept(rows(elsewhere))
    assert {name for name in was if was[name] != now[name]} <= {"pins"}


def carried_and_killed(place: Place, elsewhere: Place) -> None:
    carry(place, elsewhere, lambda: os._exit(7), owner="this home")


def test_what_another_home_has_not_finished_is_not_removed(
    before: Catalog, elsewhere: Place, tmp_path: Path
) -> None:
    if isinstance(elsewhere, Path):
        return  # a file lies in the folder of its home
    killed = multiprocessing.get_context("spawn").Process(
        target=carried_and_killed, args=(before.place, elsewhere)
    )
    killed.start()
    killed.join()
    opened(tmp_path / "new.sqlite").close()
    with pytest.raises(CatalogError, match="holds a catalog already"):
        carry(tmp_path / "new.sqlite", elsewhere, lambda: None, owner="another home")


def test_a_catalog_is_not_written_over(before: Catalog, elsewhere: Place, tmp_path: Path) -> None:
    carry(before.place, elsewhere, lambda: None)
    opened(tmp_path / "new.sqlite").close()
    with pytest.raises(CatalogError, match="holds a catalog already"):
        carry(tmp_path / "new.sqlite", elsewhere, lambda: None)
    opened(tmp_path / "new.sqlite").close()
    with opened(elsewhere) as after:
        assert len(after.chunks()) == 3


def test_a_table_of_another_program_is_not_left_behind_in_silence(tmp_path: Path, elsewhere: Place) -> None:
    file = tmp_path / "catalog.sqlite"
    opened(file).close()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE later (x)")
    with pytest.raises(CatalogError, match="'later'"):
        carry(file, elsewhere, lambda: None)
    opened(file).close()


@pytest.mark.postgres
def test_tables_of_others_may_lie_beside_it_and_on_its_path(tmp_path: Path) -> None:
    """PostgreSQL's own search path is that of the user and then of all; PostGIS has a table in the latter."""
    import psycopg

    own, file = database("own", tmp_path), tmp_path / "catalog.sqlite"
    everybody = database("everybody", tmp_path).rpartition("%3D")[2]
    place = f"{own}%2C{everybody}"
    with opened(file) as catalog:
        fill(catalog)
    kept = rows(file)
    carry(file, place, lambda: None)
    with psycopg.connect(own, autocommit=True) as connection:
        connection.execute("CREATE TABLE customers (name text)")
        connection.execute(f"CREATE TABLE {everybody}.spatial_ref_sys (srid int)")
    with held(place) as moment:
        copy_rows(moment, tmp_path / "copy.sqlite")
    assert as_kept(rows(tmp_path / "copy.sqlite")) == as_kept(kept)
    carry(place, file, lambda: None)
    assert as_kept(rows(file)) == as_kept(kept)


@pytest.mark.postgres
def test_an_address_with_a_schema_that_is_not_there_is_refused_for_that(tmp_path: Path) -> None:
    place, file = f"{database('own', tmp_path)}missing", tmp_path / "catalog.sqlite"
    schema = place.rpartition("%3D")[2]
    refused = (
        rf"schema {schema} that the address names is not in the database.*Correct `options=-csearch_path`"
    )
    opened(file).close()
    with pytest.raises(CatalogMissing, match=refused):
        carry(file, place, lambda: None)
    with pytest.raises(CatalogMissing, match=refused):
        open_engine(place, read_only=True)
    opened(file).close()


def test_a_moment_is_written_to_a_file_while_others_write(before: Catalog, tmp_path: Path) -> None:
    kept = rows(before.place)
    with held(before.place) as moment:
        before.set_pin("car", "en", image_id(2))
        copy_rows(moment, tmp_path / "copy.sqlite")
    assert as_kept(rows(tmp_path / "copy.sqlite")) == as_kept(kept)


def test_texts_of_any_length_are_kept_and_found(before: Catalog, elsewhere: Place) -> None:
    """Addresses that are signed have thousands of characters, and an index of PostgreSQL's takes 2,704 bytes."""
    folder, address = Path(f"/photos/{LONGEST}"), f"https://host/{LONGEST}"
    seen = [
        PictureSource(image_id(11), "url", address, key=LONGEST, fields={LONGEST: LONGEST}),
        PictureSource(image_id(11), "url", address[:-1]),
        PictureSource(image_id(12), "file", f"{folder}/a.png", size=1),
        PictureSource(image_id(13), "member", f"{folder}/b.zip", LONGEST),
        PictureSource(image_id(13), "member", f"{folder}/b.zip", LONGEST[:-1]),
        PictureSource(image_id(14), "file", f"{folder}0/c.png"),
    ]
    aside = [NewAside(LONGEST, "held", "code", LONGEST, image_id(15), "en", LONGEST)]
    pictures = [
        NewImage(image_id(n), "photo", Split.TRAIN, 64, 48, "PNG", camera=LONGEST) for n in range(11, 16)
    ]
    for _ in range(2):
        before.record_chunk(NewChunk("ddd444ddd444", LONGEST, True, pictures, [], aside, seen))
    moved = PictureSource(image_id(15), "file", f"{folder}/a.png", size=2)
    before.record_chunk(NewChunk("eee555eee555", "e", True, pictures, [], (), [moved]))
    for n in (11, 12):
        before.set_pin(LONGEST, "en", image_id(n))
        before.feedback.keep(
            by=LONGEST, query=LONGEST, language="en", release="r1", verdict="up", image_id="i"
        )
        before.release_words.say("r1", "kept", by=LONGEST, why=LONGEST)
    places = before.sources
    assert places.of([image_id(11)]) == {image_id(11): (seen[1], seen[0])}
    assert places.fetched([address, f"{address}?"]) == {address: seen[0]}
    assert {(one.place, one.name, one.size) for one in places.below(folder)} == {
        (moved.place, "", 2),
        *((one.place, one.name, 0) for one in seen[3:5]),
    }
    assert places.set_gone(seen[3:4]) == []
    assert places.set_gone(seen[4:5]) == places.gone_from(folder) == [image_id(13)]
    assert [one.image_id for one in before.pins() if one.query == LONGEST] == [image_id(12)]
    assert [one.query for one in before.feedback.all()] == [LONGEST]
    assert before.chunk(LONGEST).id == "ddd444ddd444"
    kept = rows(before.place)
    carry(before.place, elsewhere, lambda: None)
    assert as_kept(rows(elsewhere)) == as_kept(kept)
    with opened(elsewhere) as after:
        assert after.sources.fetched([address]) == {address: seen[0]}
        assert after.remove_pin(LONGEST, "en")


@pytest.mark.postgres
def test_a_database_whose_keys_were_long_texts_themselves_goes_on(tmp_path: Path) -> None:
    address = database("before", tmp_path)
    with opened(tmp_path / "catalog.sqlite") as catalog:
        fill(catalog)
    carry(tmp_path / "catalog.sqlite", address, lambda: None)
    engine = open_engine(address, read_only=False)
    with engine.begin() as connection:
        for statement in AS_IT_WAS:
            connection.exec_driver_sql(statement)
    engine.dispose()
    with Catalog.open(address, read_only=True) as reading:
        assert len(reading.chunks()) == 3
    for n in (1, 2):
        with opened(address) as catalog:
            catalog.set_pin(LONGEST, "en", image_id(n))
            seen = PictureSource(image_id(n), "url", LONGEST)
            catalog.record_chunk(NewChunk("ddd444ddd444", "d", True, [], [], sources=[seen]))
            assert [one.query for one in catalog.pins()] == ["boat", LONGEST]


AS_IT_WAS = (
    "DROP INDEX sources_once, pins_once, feedback_once, sources_by_beginning",
    "ALTER TABLE sources ADD PRIMARY KEY (image_id, place, name)",
    "CREATE INDEX sources_by_place ON sources (place)",
    "CREATE INDEX sources_by_key ON sources (key)",
    "ALTER TABLE pins ADD PRIMARY KEY (query, language)",
    "ALTER TABLE feedback ADD UNIQUE (by, query, release, other, image_id)",
)


def test_who_waits_too_long_for_another_is_told_that_the_catalog_is_held(before: Catalog) -> None:
    with opened(before.place) as other, writing(other._engine):
        soon(before)
        with pytest.raises(CatalogHeld, match="^The catalog is held by something that writes for long"):
            before.set_pin("car", "en", image_id(2))
        assert [one.query for one in before.pins()] == ["boat"], "whoever reads goes on"
    before.set_pin("car", "en", image_id(2))


def soon(catalog: Catalog) -> None:
    """Has a catalog wait a moment only for who else writes."""
    is_file = isinstance(catalog.place, Path)
    told = "PRAGMA busy_timeout = 50" if is_file else "SET lock_timeout = '50ms'"

    def tell(connection: Any, _: object) -> None:
        connection.execute(told)
        connection.commit()

    sa.event.listen(catalog._engine, "connect", tell)
    catalog._engine.dispose()
