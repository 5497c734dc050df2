"""A search as the part of an address behind its question mark, so that it can be kept, sent and gone back to.

The names are those of REST. What cannot stand in an address, a dropped picture, has none.
"""

from __future__ import annotations

from typing import Any, get_args, get_origin
from urllib.parse import parse_qs, urlencode

from app.desk.errors import UsageProblem
from app.desk.hits import SearchRequest
from app.desk.troubles import request_of
from ingest.sentence import phrase

_LONGEST = 16_000  # of a CJK character nine, of an emoji twelve
_MOST_FIELDS = 400  # three lists of a hundred names, and all else
_PICTURES = {"image", "images", "image_url", "embedding", "parts"}
_OF_THE_PAGE = {"k", "cursor", "release", "captions", "caption_languages", "explain"}
_NAMES = SearchRequest.model_fields.keys() - _PICTURES - _OF_THE_PAGE


def is_empty(asked: SearchRequest) -> bool:
    """Returns whether there is nothing to look for."""
    return not ((asked.text or "").strip() or asked.items)


def address_of(asked: SearchRequest) -> str:
    """Returns "?text=two+red+boats&language=en"; "" for what is too long for one, or says nothing."""
    address = _written(asked)
    return address if 1 < len(address) <= _LONGEST else ""


def _written(asked: SearchRequest) -> str:
    said = asked.model_dump(mode="json", include=set(_NAMES), exclude_defaults=True)
    given = {name: "1" if value is True else value for name, value in said.items()}
    return "?" + urlencode(given, doseq=True)


def asked_of(address: str) -> tuple[SearchRequest, list[str]]:
    """Returns the search that an address names, and what was no value of a field and is left out.

    Fields that there are not are left out without a word, since others add to addresses.

    Raises:
        UsageProblem: the search is too long for an address.
    """
    try:
        given = parse_qs(address.strip().partition("?")[2], max_num_fields=_MOST_FIELDS)
    except ValueError:  # more fields than any address of ours has
        given = {}
    asked, left_out = SearchRequest(), []
    for name in given.keys() & _NAMES:
        try:
            one = request_of(SearchRequest, **{name: _read(given[name], name)})
            asked = asked.model_copy(update={name: getattr(one, name)})
        except UsageProblem:
            left_out.append(given[name][0])
    if len(_written(asked)) > _LONGEST:
        raise UsageProblem(
            phrase("This search is too long for an address. Shorten the query or its filters.")
        )
    return asked, sorted(left_out)


def _read(given: list[str], name: str) -> Any:
    field = SearchRequest.model_fields[name]
    kinds = {get_origin(one) for one in (field.annotation, *get_args(field.annotation))}
    if list in kinds:
        return given
    return given[0] not in {"", "0", "false"} if field.default is False else given[0]
