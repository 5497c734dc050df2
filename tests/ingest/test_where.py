"""The grammar of filters: what each field and operator finds, how they join, and what a mistake is told."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import event

from ingest.catalog import Catalog
from ingest.errors import BadOption
from ingest.pair import Split
from ingest.records import NewChunk, NewImage
from ingest.sources import PictureSource
from ingest.where import images_that, private_fields


def _id(letter: str) -> str:
    return letter * 64


def _image(letter: str, **more: Any) -> NewImage:
    stated: dict[str, Any] = {
        "domain": "photo",
        "split": Split.TRAIN,
        "width": 100,
        "height": 50,
        "format": "PNG",
    }
    return NewImage(_id(letter), **(stated | more))


def _source(letter: str, place: str, **more: Any) -> PictureSource:
    return PictureSource(_id(letter), "file", place, **more)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Catalog]:
    with Catalog.open(tmp_path_factory.mktemp("home") / "catalog.sqlite") as catalog:
        catalog.record_chunk(
            NewChunk(
                "0a1b2c3d4e5f",
                "holidays",
                True,
                [
                    _image("a", taken="2023-07-04T12:33:21", camera="Canon EOS 5D", width=4000),
                    _image("b", taken="2024-02-01T08:00:00+02:00", camera="Apple iPhone 12"),
                    _image("c", taken="2024-12-31"),
                    _image("d", domain="sketch"),
                ],
                [
                    (_id("a"), "en", "a red boat"),
                    (_id("a"), "de", "ein rotes Boot"),
                    (_id("b"), "en", "a dog"),
                ],
                sources=[
                    _source("a", "/photos/Italy/Rome/IMG_1.jpg", fields={"brand": "Acme", "price": "12.5"}),
                    _source(
                        "b", "/photos/Italy/100%_b.jpg", key="B-17", fields={"brand": "Bolt", "rating": 5}
                    ),
                    _source("c", "/photos/Work/c.jpg", fields={"price": "99"}),
                    _source("d", "/photos/Italy/old.jpg", gone="2024-01-01T00:00:00+00:00"),
                    _source("d", '/elsewhere/it\'s "d".png', fields={"Größe": "L"}),
                ],
            )
        )
        yield catalog


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("taken = 2024", "bc"),
        ("taken = 2023-07", "a"),
        ("taken = 2023..2024-02", "ab"),
        ("taken = ..2023", "a"),
        ("taken > 2023", "bc"),
        ("taken >= 2024-02-01", "bc"),
        ("taken = 2024-02-01T08", "b"),
        ("taken < 2024", "a"),
        ("taken <= 2024-02", "ab"),
        ("taken != 2024", "ad"),
        ("taken = none", "d"),
        ("NOT taken = none", "abc"),
        ("added >= 2020", "abcd"),
        ("added < 2020", ""),
        ("camera ~ canon", "a"),
        ('camera = "apple iphone 12"', "b"),
        ("camera = none", "cd"),
        ("domain = sketch", "d"),
        ("domain != sketch", "abc"),
        ("width = 4000", "a"),
        ("width >= 100 AND width < 4000", "bcd"),
        ("height = 40..60", "abcd"),
        ("language = DE", "a"),
        ("language = none", "cd"),
        ('caption ~ "red bo"', "a"),
        ('caption = "a DOG"', "b"),
        ("caption = none", "cd"),
        ("chunk = holidays", "abcd"),
        ("chunk = 0a1b", "abcd"),
        ("chunk ~ work", ""),
        ("folder = Italy", "ab"),
        ("folder = Italy/Rome", "a"),
        ("folder = /photos/Italy/", "ab"),
        ("folder = tal", ""),
        ("folder ~ tal", "ab"),
        ("file = IMG_1.jpg", "a"),
        ("file = img1.jpg", ""),
        ('file = "100%_b.jpg"', "b"),
        ('file ~ "0%_b"', "b"),
        ('file ~ "\\"d\\""', "d"),
        ("key = b-17", "b"),
        ("key = none", "acd"),
        ("meta.brand = acme", "a"),
        ("META.Brand ~ OL", "b"),
        ("meta.brand = none", "cd"),
        ("meta.brand != acme", "bcd"),
        ("meta.price = 10..20", "a"),
        ("meta.price >= 12.5", "ac"),
        ("meta.price < 100", "ac"),
        ("meta.rating = 5", "b"),
        ("meta.größe = l", "d"),
        ("taken = 2024 domain = photo", "bc"),
        ("taken = 2023 OR domain = sketch AND width = 100", "ad"),
        ("(taken = 2023 OR domain = sketch) AND width = 100", "d"),
        ("not (taken = 2023 or taken = 2024)", "d"),
        ("NOT NOT taken = 2023", "a"),
    ],
)
def test_what_a_filter_finds(catalog: Catalog, where: str, found: str) -> None:
    assert {one[0] for one in catalog.ids_where(where=where)} == set(found)
    among_many = f"({where})" + " NOT key = nobody" * 5
    assert {one[0] for one in catalog.ids_where(where=among_many)} == set(found)


@pytest.mark.sqlite  # whose plan is read
@pytest.mark.parametrize("condition", ["key = a", "folder = a", "file = a", "meta.a ~ b", "added > 2020"])
def test_many_conditions_are_not_asked_picture_by_picture(catalog: Catalog, condition: str) -> None:
    asked: list[Any] = []
    event.listen(catalog._engine, "before_cursor_execute", lambda *told: asked.append(told[2:4]))
    catalog.ids_where(where=" OR ".join([condition] * 40))
    with catalog._engine.connect() as connection:
        plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {asked[-1][0]}", asked[-1][1])
        assert [row.detail for row in plan if re.search(r"image_id=|chunks .*rowid=", row.detail)] == []


def test_a_filter_that_is_asked_again_is_not_read_again() -> None:
    where = " OR ".join(f"key = {n}" for n in range(80))
    started = time.process_time()
    images_that(where)
    read = time.process_time()
    private_fields(where)
    assert time.process_time() - read < (read - started) / 10


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("taken =", "from character 8 on: it ends too early"),
        ("taken 2024", "from character 7 on: '2024'"),
        ("taken = 2024 AND", "it ends too early"),
        ("(taken = 2024", "it ends too early"),
        ("when = 2024", "no field 'when'.*taken, added"),
        ("meta = 2024", "no field 'meta'.*meta.NAME"),
        ("taken.year = 2024", "no field 'taken.year'"),
        ("taken = yesterday", "2024-07-31; found 'yesterday'"),
        ("taken = 2024-1", "2024-07-31; found '2024-1'"),
        ("taken = 2024-13", "2024-07-31; found '2024-13'"),
        ("taken = 2024-02-30", "2024-07-31; found '2024-02-30'"),
        ("taken >= 24", "2024-07-31; found '24'"),
        ("taken = \u0662\u0660\u0662\u0664", "2024-07-31; found"),
        ("taken = 2024..2024-7", "2024-07-31; found '2024-7'"),
        ("taken ~ 2024", "~ is for texts"),
        ("width = wide", "'wide' is no number"),
        ("width > 1..2", "A range stands after ="),
        ("folder > a", "folder is compared by = or ~"),
        ("x" * 1001, "1001 characters; at most 1000"),
        ("not " * 200 + "key = b", "more than 10 deep"),
        ("(width = 1 or width = 2 and " * 5 + "width = 3" + ")" * 5, "more than 10 deep"),
    ],
)
def test_a_mistake_is_told_with_its_place(where: str, said: str) -> None:
    with pytest.raises(BadOption, match=said):
        images_that(where)


def test_fields_that_tell_of_places_are_known_for_it() -> None:
    assert private_fields("taken = 2024 OR NOT (folder = a AND meta.brand = x) file ~ y") == [
        "file",
        "folder",
        "meta",
    ]
    assert private_fields("taken = 2024 camera ~ canon") == []


def test_a_filter_as_deep_as_is_read_finds_and_counts(catalog: Catalog) -> None:
    deep = "not (meta.price = 10..20 and " * 4 + "not meta.price = 10..20" + ")" * 4
    assert {one[0] for one in catalog.ids_where(where=deep)} == set("bcd")
    assert catalog.facets(where=deep, folders=True).folders


@settings(deadline=None)
@given(st.text(max_size=60) | st.text('()=<>~."\\ aANDORT20-', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(BadOption):
        images_that(text)


@settings(deadline=None)
@given(
    value=st.text(max_size=20),
    field=st.sampled_from(["folder", "file", "key", "meta.x", "camera", "caption"]),
)
def test_no_value_is_more_than_a_value(catalog: Catalog, value: str, field: str) -> None:
    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
    for operator in "=~":
        assert len(catalog.ids_where(where=f'NOT {field} {operator} "{quoted}" OR width = 100')) == 4 - (
            len(catalog.ids_where(where=f'{field} {operator} "{quoted}" AND width = 4000'))
        )


def test_facets_ask_a_filter_once(catalog: Catalog) -> None:
    asked: list[str] = []
    event.listen(catalog._engine, "before_cursor_execute", lambda *told: asked.append(told[2]))
    assert catalog.facets(where="height = 50", folders=True).folders
    assert sum(one.count("images.height >= ") for one in asked) == 1


def test_facets_count_what_is_left(catalog: Catalog) -> None:
    every = catalog.facets(folders=True)
    assert [(one.value, one.count) for one in every.domains] == [("photo", 3), ("sketch", 1)]
    assert [(one.value, one.count) for one in every.languages] == [("en", 2), ("de", 1)]
    assert [(one.value, one.count) for one in every.years] == [("2024", 2), ("2023", 1)]
    assert {(one.value, one.count) for one in every.folders} == {
        ("/photos/Italy/Rome", 1),
        ("/photos/Italy", 1),
        ("/photos/Work", 1),
        ("/elsewhere", 1),
    }
    some = catalog.facets(where="taken = 2024", folders=False)
    assert ([one.value for one in some.years], some.folders) == (["2024"], ())
