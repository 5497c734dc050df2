"""Claims about the facets below the filters: each link narrows the search, and the chosen one widens it again."""

from __future__ import annotations

import re

import pytest

from app.desk.hits import SearchRequest
from app.ui.address import asked_of
from app.ui.search_facets import facet_links, joined, without
from app.ui.words import ENGLISH
from ingest.facets import Facets, FacetValue
from ingest.where import images_that

FOUND = Facets(
    domains=(FacetValue("photo", 3),),
    languages=(FacetValue("en", 2), FacetValue("de", 1)),
    years=(FacetValue("2024", 2), FacetValue("2023", 1)),
    folders=(FacetValue("/photos/Italy/Rome", 2), FacetValue('/photos/a "b" (c)', 1)),
)


def _links(text: str) -> dict[str, str]:
    return {
        name.replace("\\", ""): target
        for name, target in re.findall(r"\[((?:[^\]\\]|\\.)*)\]\(([^)]*)\)", text)
    }


def test_each_value_is_a_link_that_asks_for_it_too() -> None:
    asked = SearchRequest(text="a boat", where="width > 10 OR height > 10")
    links = _links(facet_links(FOUND, asked, ENGLISH))
    assert list(links) == ["2024", "2023", "Italy/Rome", 'photos/a "b" (c)', "English", "German"]
    narrowed = asked_of(links["Italy/Rome"])[0]
    assert narrowed.where == "(width > 10 OR height > 10) AND folder = /photos/Italy/Rome"
    assert narrowed.text == "a boat"
    for target in links.values():
        images_that(asked_of(target)[0].where)


def test_what_all_pictures_have_is_no_choice() -> None:
    assert "photo" not in _links(facet_links(FOUND, SearchRequest(), ENGLISH))


def test_a_chosen_value_is_marked_and_its_link_takes_it_away() -> None:
    chosen = SearchRequest(where="(width > 10 OR height > 10) AND taken = 2024")
    told = facet_links(Facets((), (), (FacetValue("2024", 2),)), chosen, ENGLISH)
    assert told.startswith("Year: **[2024]")
    assert asked_of(_links(told)["2024"])[0].where == "width > 10 OR height > 10"


def test_conditions_are_added_and_taken_away_in_any_order() -> None:
    both = joined(joined("", "taken = 2024"), "folder = Rome")
    assert without(both, "taken = 2024") == "folder = Rome"
    assert without(both, "folder = Rome") == "taken = 2024"
    assert without("taken = 2024", "taken = 2024") == ""


@pytest.mark.parametrize(
    "where",
    [
        "taken = 2024-07",
        "NOT taken = 2024",
        "width = 1 OR taken = 2024",
        "NOT (width = 1 AND taken = 2024 AND height = 2)",
        'caption ~ "x AND taken = 2024 AND y"',
        "width = 1 OR(height = 2)",
    ],
)
def test_a_condition_that_is_only_in_another_one_is_not_chosen(where: str) -> None:
    told = facet_links(
        Facets((), (), (FacetValue("2024", 1), FacetValue("2023", 1))), SearchRequest(where=where), ENGLISH
    )
    assert "**" not in told
    narrowed = asked_of(_links(told)["2024"])[0].where
    assert narrowed.removeprefix("(").startswith(where)
    assert narrowed.endswith(" AND taken = 2024")
    assert without(narrowed, "taken = 2024") in {where, f"({where})"}
    images_that(narrowed)
