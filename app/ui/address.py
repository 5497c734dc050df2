"""A search as the part of an address behind its question mark, so that it can be kept, sent and gone back to.

The names are those of REST. What cannot stand in an address, a dropped picture, has none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any
from urllib.parse import parse_qs, urlencode

from app.ui.asking import Asked

_LONGEST = 4000
_NAMES = {
    "text": "text",
    "language": "language",
    "translation": "translation",
    "domains": "domains",
    "languages": "languages",
    "chunks": "chunks",
    "caption": "caption",
    "since": "since",
    "until": "until",
    "mode": "mode",
    "fold": "dedup",
    "rerank": "rerank",
    "offset": "offset",
}
"""Each field of `Asked` and how an address calls it."""


def address_of(asked: Asked) -> str:
    """Returns "?text=two+red+boats&language=en"; "" for what cannot be written down, or is nothing."""
    if asked.files or asked.is_empty:
        return ""
    blank = Asked()
    given = {
        name: _written(getattr(asked, field))
        for field, name in _NAMES.items()
        if getattr(asked, field) != getattr(blank, field)
    }
    address = "?" + urlencode(given, doseq=True)
    return address if len(address) <= _LONGEST else ""


def asked_of(address: str) -> Asked:
    """Returns the search that an address names; what it does not know is left out, since others add to addresses."""
    try:
        given = parse_qs(address.strip()[:_LONGEST].partition("?")[2], max_num_fields=100)
    except ValueError:  # more fields than any address of ours has
        return Asked()
    kinds = {field.name: type(field.default) for field in fields(Asked)}
    values: dict[str, Any] = {
        field: _read(given[name], kinds[field]) for field, name in _NAMES.items() if name in given
    }
    return Asked(**values)


def _written(value: object) -> object:
    if isinstance(value, bool):
        return "1"
    return list(value) if isinstance(value, (tuple, list)) else value


def _read(given: Sequence[str], kind: type) -> object:
    if kind is tuple:
        return tuple(given)
    if kind is bool:
        return given[0] not in {"", "0", "false"}
    if kind is int:
        return int(given[0]) if given[0].isdecimal() and len(given[0]) < 10 else 0
    return given[0]
