"""Claims about a search as an address: what goes in comes out, and what strangers write harms nothing."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.ui.address import address_of, asked_of
from app.ui.asking import Asked

_TEXT = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60)
_NAMES = st.lists(_TEXT.filter(bool), max_size=3).map(tuple)


@settings(deadline=None)
@given(
    text=_TEXT.filter(str.strip),
    translation=_TEXT,
    domains=_NAMES,
    chunks=_NAMES,
    fold=st.booleans(),
    offset=st.integers(0, 5000),
)
def test_a_search_comes_back_from_its_address(**fields: Any) -> None:
    asked = Asked(**fields)
    assert asked_of(address_of(asked)) == asked


def test_an_address_has_the_names_of_rest_and_nothing_that_goes_without_saying() -> None:
    address = address_of(Asked("two red boats", language="de", domains=("a", "b"), fold=True, mode="hybrid"))
    expected = {"text": ["two red boats"], "language": ["de"], "domains": ["a", "b"]}
    assert parse_qs(address[1:]) == expected | {"mode": ["hybrid"], "dedup": ["1"]}


def test_a_dropped_picture_and_nothing_have_no_address() -> None:
    assert address_of(Asked("boat", files=("/tmp/a.png",))) == ""
    assert address_of(Asked(domains=("a",))) == ""


@pytest.mark.parametrize("address", ["", "?", "?__theme=dark&view=api", "?offset=-1", "?" + "a&" * 9999])
def test_an_address_of_nothing_asks_nothing(address: str) -> None:
    assert asked_of(address).is_empty
    assert asked_of(address).offset == 0


@pytest.mark.parametrize("offset", ["x", "9" * 30, "-3", "1.5", "²"])
def test_an_offset_that_is_no_number_is_none(offset: str) -> None:
    assert asked_of(f"?text=a&offset={offset}") == Asked("a")
