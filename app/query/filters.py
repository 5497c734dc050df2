"""Filters: which pictures of the gallery a query may find, by what the catalog knows of them."""

from __future__ import annotations

from typing import Any, cast

from app.desk.errors import BadQuery
from app.desk.hits import SearchRequest
from ingest.captions import normalise_language
from ingest.catalog import Catalog
from ingest.selection import Conditions
from ingest.sentence import phrase


def given(asked: SearchRequest, catalog: Catalog) -> Conditions:
    """Returns what must hold for the pictures that may be found.

    Raises:
        BadQuery: the days are in the wrong order, or no picture is of a domain.
        BadOption: the filter cannot be read.
        UnknownChunk, UnknownLanguage: there is no such chunk, or no such language at all.
    """
    if asked.since and asked.until and asked.since > asked.until:
        raise BadQuery(
            phrase(
                "Nothing is from {since} on and until {until}. Exchange the two days.",
                since=asked.since,
                until=asked.until,
            )
        )
    _require_domains(asked.domains or [], catalog)
    wanted: dict[str, Any] = {
        "languages": [normalise_language(tag) for tag in asked.languages or ()],
        "domains": asked.domains,
        "chunks": [catalog.chunk(one).id for one in asked.chunks or ()],
        "since": asked.since,
        "until": asked.until,
        "caption": asked.caption.strip(),
        "where": asked.where.strip(),
    }
    return cast("Conditions", {name: value for name, value in wanted.items() if value})


def _require_domains(domains: list[str], catalog: Catalog) -> None:
    for name in domains:
        if not catalog.has_domain(name):
            there = ", ".join(catalog.domains(in_gallery=True)) or "none"
            raise BadQuery(f"No picture is of the domain {name[:80]!r}. Domains here: {there}.")
