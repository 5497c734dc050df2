"""Claims about a search as an address: what goes in comes out, and what strangers write harms nothing."""

from __future__ import annotations

from datetime import date
from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.desk.errors import UsageProblem
from app.desk.hits import Mode, QueryPart, SearchRequest
from app.ui.address import address_of, asked_of, is_empty

_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)
_NAMES = st.lists(_TEXT.filter(bool), max_size=3).map(lambda names: names or None)


@settings(deadline=None)
@given(
    text=_TEXT.filter(str.strip),
    translation=_TEXT,
    domains=_NAMES,
    chunks=_NAMES,
    dedup=st.booleans(),
    since=st.dates().map(str),
    offset=st.integers(0, 5000),
)
def test_a_search_comes_back_from_its_address(**fields: Any) -> None:
    asked = SearchRequest(**fields)
    assert asked_of(address_of(asked)) == (asked, [])


def test_an_address_has_the_names_of_rest_and_nothing_that_goes_without_saying() -> None:
    asked = SearchRequest(
        text="two red boats", language="de", domains=["a", "b"], dedup=True, mode=Mode.HYBRID
    )
    address = address_of(asked)
    expected = {"text": ["two red boats"], "language": ["de"], "domains": ["a", "b"]}
    assert parse_qs(address[1:]) == expected | {"mode": ["hybrid"], "dedup": ["1"]}


def test_nothing_has_no_address_and_filters_alone_have_one() -> None:
    assert address_of(SearchRequest()) == ""
    assert address_of(SearchRequest(domains=["a"])) == "?domains=a"
    assert asked_of("?sort=taken")[0].sort == "taken"


def test_what_belongs_to_the_page_or_is_sent_along_is_in_no_address() -> None:
    asked = SearchRequest(text="a", k=3, release="r1", captions=2, parts=[QueryPart(item="abcdef")])
    assert address_of(asked) == "?text=a"
    assert asked_of("?text=a&k=3&release=r1&cursor=x&image=eA") == (SearchRequest(text="a"), [])


@pytest.mark.parametrize("address", ["", "?", "?__theme=dark&view=api", "?offset=-1", "?" + "a&" * 9999])
def test_an_address_of_nothing_asks_nothing(address: str) -> None:
    asked, _ = asked_of(address)
    assert is_empty(asked)
    assert asked.offset == 0


@pytest.mark.parametrize("offset", ["x", "9" * 30, "-3", "1.5", "²"])
def test_an_offset_that_is_no_number_is_none(offset: str) -> None:
    assert asked_of(f"?text=a&offset={offset}") == (SearchRequest(text="a"), [offset])


def test_what_is_no_value_of_a_field_is_left_out_and_named() -> None:
    asked, left_out = asked_of("?text=a&mode=upside-down&since=2026-01-31&until=tomorrow")
    assert asked == SearchRequest(text="a", since=date(2026, 1, 31))
    assert left_out == ["tomorrow", "upside-down"]


def test_what_all_fields_may_say_comes_back_and_more_is_refused() -> None:
    asked = SearchRequest(
        text="\U0001f6a4" * 500, caption="船" * 500, where="x" * 1000, domains=[f"d{n}" for n in range(100)]
    )
    address = address_of(asked)
    assert asked_of(address) == (asked, [])
    with pytest.raises(UsageProblem, match="too long for an address"):
        asked_of("?text=" + "船" * 2000)
