"""A filter finds the same in a catalog in PostgreSQL as in the same one in a file, whatever owners say of pictures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import delete

from ingest.carrying import carry, copy_rows, held
from ingest.catalog import Catalog
from ingest.engines import open_engine, writing
from ingest.errors import BadOption
from ingest.pair import Split
from ingest.records import NewChunk, NewImage
from ingest.sources import PictureSource, record_sources, sources

pytestmark = [pytest.mark.postgres, pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR")]
Both = tuple[Catalog, Catalog]
IDS = [f"{n:064x}" for n in range(4)]
# PostgreSQL keeps no NUL, neither keeps half a character, and no table brings a number that is none.
LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(LETTERS, max_size=8)
WORDS = st.sampled_from(
    [
        "Иван",
        "иван",
        "Öl",
        "öl",
        "ÖL",
        "Acme",
        "acme",
        "1",
        "0",
        "true",
        "2",
        " 2 ",
        "-2.50",
        "٣",
        "nan",
        "inf",
    ]
    + [
        "9" * 309,
        "9" * 500,
        "0." + "0" * 330 + "1",
        "5e1",
        "1e999",
        "é" * 500,
        "0.3",
        "%",
        "_",
        "\\",
        '"',
        "a b",
    ]
)
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.integers(),
    st.sampled_from(
        [2**53 + 1, 2**63, 10**20, 10**308, 10**309, -(10**499), 0.1 + 0.2, 1e16, 5e-324, 1e-7, -0.0]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
)
SCALARS = st.one_of(TEXTS, WORDS, NUMBERS, st.booleans(), st.none())
NESTED = st.recursive(
    SCALARS, lambda one: st.lists(one, max_size=3) | st.dictionaries(TEXTS, one, max_size=3), max_leaves=4
)
OTHERS = ["width", "key", "file", "folder", "chunk", "camera"]
NAMES = ["Автор", "автор", "ÄNDERUNG", "Änderung", "b", "B", "n", "x-y", "straße", "STRASSE"]
FIELDS = st.dictionaries(st.sampled_from(NAMES), NESTED, max_size=4)


def said(value: Any) -> str:
    """A value as people write it in a filter."""
    text = value if isinstance(value, str) else repr(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"')[:400] + '"'


@st.composite
def filters(draw: st.DrawFn, fields: Sequence[dict[str, Any]]) -> str:
    """A condition, mostly on what a picture has."""
    there = [*{name: value for some in fields for name, value in some.items()}.items()]
    name, value = draw(st.sampled_from(there) if there else st.tuples(st.sampled_from(NAMES), WORDS))
    one = draw(st.sampled_from([value, value, 2, 1, 0]) | TEXTS | WORDS | NUMBERS)
    field = draw(st.sampled_from([f"meta.{name}"] * 4 + [f"META.{name.swapcase()}", *OTHERS]))
    ends = st.sampled_from(["", said(draw(WORDS))])
    condition = draw(
        st.sampled_from(
            [f"{field} {operator} {said(one)}" for operator in ("=", "!=", "<", "<=", ">", ">=", "~")]
        )
        | st.builds("{} = {}..{}".format, st.just(field), st.just(said(one)), ends)
        | st.sampled_from([f"{field} = ..{said(one)}", f"{field} = none"])
    )
    return f"NOT {condition}" if draw(st.booleans()) else condition


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """A catalog in a file, and the same in PostgreSQL."""
    from tests.postgres_server import schema_for

    folder = tmp_path_factory.mktemp("both")
    with catalog_in(folder / "here.sqlite") as here:
        pictures = [
            NewImage(one, "photo", Split.TRAIN, 10 + n, 48, "PNG", camera="Öl") for n, one in enumerate(IDS)
        ]
        here.record_chunk(NewChunk("bbb2ccc3ddd4", "Bilder", True, pictures, []))
        with held(here.place) as rows:
            copy_rows(rows, folder / "copy.sqlite")
        carry(folder / "copy.sqlite", schema_for(folder), lambda: None)
        with catalog_in(schema_for(folder)) as there:
            yield here, there


def catalog_in(place: Path | str) -> Catalog:
    return Catalog(open_engine(place, read_only=False), place)


def tell(both: Both, fields: Sequence[dict[str, Any]]) -> None:
    """Has pictures have these fields, in both."""
    some = [
        PictureSource(one, "row", f"/Öl/{n}.csv", "7", key=f"Ключ {n}", fields=own)
        for n, (one, own) in enumerate(zip(IDS, fields, strict=False))
    ]
    for catalog in both:
        with writing(catalog._engine) as connection:
            connection.execute(delete(sources))
            record_sources(connection, some)


def found(catalog: Catalog, where: str) -> set[str] | str:
    try:
        return {one[-1] for one in catalog.ids_where(where=where)}
    except BadOption as error:
        return str(error)


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("meta.Автор = Иван", "0"),
        ("meta.автор = Иван", ""),
        ("meta.ÄNDERUNG = Öl", "0"),
        ("meta.änderung = Öl", ""),
        ("meta.b = 1", "0"),
        ("meta.B = 0", "1"),
        ("meta.b = true", ""),
        ("meta.n > 2", "012"),
        ("meta.n < 2", "3"),
        ("meta.half = 0.30000000000000004", "0"),
        ("meta.half = 1e20", "1"),
        ('meta.deep ~ "[1,2]"', "0"),
        ("chunk = BBB2", "0123"),
        ("width > 11.5", "23"),
        ("width <= 1e300", "0123"),
    ],
)
def test_what_is_found_in_both(both: Both, where: str, numbers: str) -> None:
    tell(
        both,
        [
            {
                "Автор": "Иван",
                "ÄNDERUNG": "Öl",
                "b": True,
                "n": "9" * 500,
                "half": 0.1 + 0.2,
                "deep": {"x": [1, 2]},
            },
            {"b": False, "n": 10**309, "half": 10**20},
            {"n": 3},
            {"n": -(10**499), "b": None},
        ],
    )
    assert [found(one, where) for one in both] == [set(numbers)] * 2


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_filter_finds_the_same_in_both(both: Both, data: st.DataObject) -> None:
    fields = data.draw(st.lists(FIELDS, min_size=4, max_size=4))
    tell(both, fields)
    for where in data.draw(st.lists(filters(fields), min_size=1, max_size=8)):
        here, there = (found(one, where) for one in both)
        assert here == there, where
