"""Claims about the query grammar: what is a part, a weight, a sign; and where a bad query is bad."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.desk.errors import BadQuery
from app.desk.hits import HEAVIEST
from app.query.grammar import Kind, Term, as_text, literal, parse, quoted, written

TEXT, IMAGE, ITEM = Kind.TEXT, Kind.IMAGE, Kind.ITEM


def _read(query: str) -> list[tuple[Kind, str, float]]:
    return [(term.kind, term.value, term.weight) for term in parse(query)]


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("two red boats", [(TEXT, "two red boats", 1)]),
        (
            "2:red car + ./a.jpg - fruit",
            [(TEXT, "red car", 2), (IMAGE, "./a.jpg", 1), (TEXT, "fruit", -1)],
        ),
        ("- fruit", [(TEXT, "fruit", -1)]),
        ("+ cat", [(TEXT, "cat", 1)]),
        ("cat - 0.5: dog", [(TEXT, "cat", 1), (TEXT, "dog", -0.5)]),
        ("0,5:cat", [(TEXT, "cat", 0.5)]),
        ("./new york city.jpg + night", [(IMAGE, "./new york city.jpg", 1), (TEXT, "night", 1)]),
        ("beach.png", [(IMAGE, "beach.png", 1)]),
        ("IMG_1.HEIC - dsc.nef", [(IMAGE, "IMG_1.HEIC", 1), (IMAGE, "dsc.nef", -1)]),
        ("~/b.webp", [(IMAGE, "~/b.webp", 1)]),
        ("#ABCDEF12 - cat", [(ITEM, "abcdef12", 1), (TEXT, "cat", -1)]),
        # Signs, colons and marks inside words are words.
        ("a well-known T-shirt", [(TEXT, "a well-known T-shirt", 1)]),
        ("-5 degrees", [(TEXT, "-5 degrees", 1)]),
        ("C++ book", [(TEXT, "C++ book", 1)]),
        ("12:30 at the station", [(TEXT, "12:30 at the station", 1)]),
        ('a 5" screen', [(TEXT, 'a 5" screen', 1)]),
        ("#1 winner", [(TEXT, "#1 winner", 1)]),
        ("a photo of x.jpg", [(TEXT, "a photo of x.jpg", 1)]),
        # Quotation marks make text of anything.
        ('"salt + pepper"', [(TEXT, "salt + pepper", 1)]),
        ('2:"./a.jpg" + mill', [(TEXT, "./a.jpg", 2), (TEXT, "mill", 1)]),
        ('the "stop - go" sign', [(TEXT, 'the "stop - go" sign', 1)]),
        ("", [(TEXT, "", 1)]),
    ],
)
def test_a_query_is_read_as_its_parts(query: str, parts: list[tuple[Kind, str, float]]) -> None:
    assert _read(query) == parts


@pytest.mark.parametrize(
    ("query", "at", "says"),
    [
        ("red car +", 8, "Nothing follows the \\+ at character 9"),
        ("red + - blue", 4, "Nothing follows the \\+ at character 5"),
        ("cat + 2:", 8, "Nothing follows the weight 2:"),
        ("cat + 0:dog", 6, "weight 0 at character 7"),
        ("cat + 101:dog", 6, "weight 101"),
        ('cat + "dog', 6, "quotation mark at character 7 is not closed"),
        ("cat + https://a.org/b.jpg", 6, "nothing is fetched"),
        (" + ".join("abcdefghijklmnopq"), 64, "17 parts"),
    ],
)
def test_a_bad_query_says_where(query: str, at: int, says: str) -> None:
    with pytest.raises(BadQuery, match=says) as caught:
        parse(query)
    assert caught.value.at == at


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_by_a_sentence(query: str) -> None:
    at: int | None = 0
    try:
        terms = parse(query)
    except BadQuery as error:
        at, terms = error.at, ()

    assert at is not None
    assert 0 <= at <= len(query)
    assert all(0 < abs(term.weight) <= HEAVIEST for term in terms)


@given(st.text(min_size=1, max_size=40).filter(lambda text: '"' not in text and text.strip() == text))
def test_what_is_quoted_is_one_text(text: str) -> None:
    assert _read(quoted(text)) == [(TEXT, text, 1)]


@given(st.text(max_size=30))
def test_a_text_that_is_meant_literally_is_read_as_one_text(text: str) -> None:
    read = as_text(literal(text))
    assert read is not None
    assert read.split() in (text.split(), text.replace('"', " ").split())


def test_only_a_query_that_is_one_text_to_be_found_is_a_text() -> None:
    assert [
        as_text(one) for one in ("a red boat", '"2:1 - 3"', "2:1 - 3", "- red", "2:red", "red +", "#12ab34")
    ] == [
        "a red boat",
        "2:1 - 3",
        *[None] * 5,
    ]
    assert (literal("a red boat"), literal("boat - house")) == ("a red boat", '"boat - house"')


def test_parts_are_written_as_they_are_read() -> None:
    terms = (Term(TEXT, "red car", 2), Term(ITEM, "ab" * 32), Term(TEXT, "nuts - fruit", -0.5))

    assert written(terms) == f'2:red car + #{"ab" * 6} - 0.5:"nuts - fruit"'
    assert _read(written(terms))[2] == (TEXT, "nuts - fruit", -0.5)


@pytest.mark.parametrize(
    "term", [Term(Kind.IMAGE, "image 1"), Term(Kind.VECTOR, "embedding"), Term(Kind.IMAGE, "./a.jpg")]
)
def test_what_is_no_text_is_not_written_as_one(term: Term) -> None:
    assert as_text(written([term])) is None
    assert written([term]) == f"./{term.value.removeprefix('./')}"
