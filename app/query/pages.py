"""Pages: cursors that name a place in the answer of one release, so that paging shows nothing twice.

A page after the first is answered by the release that answered the first, whatever has gone live since; ranking is the
same at every depth. It begins behind the last hit of the page before, and so shows nothing twice and leaves nothing out
where pictures were taken out or put back meanwhile. The cursor holds all that it needs, so the server keeps nothing.
It is not signed: who forges one with the id of a picture that was taken out learns where that would stand.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Annotated

from pydantic import Field, TypeAdapter

from app.desk.errors import BadQuery, UnknownRelease
from app.desk.hits import FURTHEST
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.sentence import phrase

# What anybody may have packed: no endless number, none that SQLite cannot hold, no half of a character.
_PACKED = TypeAdapter(
    tuple[str, str, Annotated[int, Field(ge=0, lt=2**31)], Annotated[str, Field(pattern=r"^[0-9a-f]{0,64}$")]]
)


@dataclass(frozen=True)
class Place:
    """Where a page begins: in which release's answer to which question, after how many hits, and behind which."""

    release: str
    digest: str
    offset: int
    after: str = ""  # the last hit of the page before; empty where the page was asked for by its offset alone


def cursor_of(place: Place) -> str:
    """Returns the cursor of a place."""
    packed = json.dumps(astuple(place)).encode()
    return base64.urlsafe_b64encode(packed).decode().rstrip("=")


def place_of(cursor: str) -> Place:
    """Returns the place that a cursor names.

    Raises:
        BadQuery: it is none of ours.
    """
    try:
        packed = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        return Place(*_PACKED.validate_json(packed, strict=True))
    except ValueError as error:  # of base64 or of pydantic
        raise BadQuery("This is no page cursor. Take it from the answer before, or leave it out.") from error


def _reachable(offset: int) -> int:
    if not 0 <= offset <= FURTHEST:
        raise BadQuery(phrase("Pages reach {most} pictures. Use a filter to see others.", most=FURTHEST))
    return offset


def snapshot_of(cursor: str, load: Callable[[str], Snapshot]) -> Snapshot:
    """Returns the snapshot that answers the page of a cursor.

    Raises:
        BadQuery: the release is gone, or the cursor is none of ours.
    """
    place = place_of(cursor)
    try:
        return load(place.release)
    except UnknownRelease as error:
        raise BadQuery(
            f"This page belongs to release {place.release[:40]}, which is gone. Search again from the first page."
        ) from error


def next_page(here: Place, passed: Sequence[str]) -> str:
    """Returns the cursor of the page after one that begins here and shows some pictures."""
    return cursor_of(replace(here, offset=here.offset + len(passed), after=passed[-1]))


def start_of(question: Question, release: str) -> Place:
    """Returns where the page of a question begins: at its cursor's place, else after its offset.

    Raises:
        BadQuery: the cursor belongs to another question or another release's answer, or the page lies too deep.
    """
    asked = question.asked
    if not asked.cursor:
        return Place(release, question.digest(), _reachable(asked.offset))
    if asked.offset:
        raise BadQuery("A page begins at a cursor or after an offset. Leave one of them out.")
    place = place_of(asked.cursor)
    if place.release != release:
        raise BadQuery(
            f"This page belongs to an answer of release {place.release[:40]}; {release} was asked. "
            "Leave the release or the cursor out."
        )
    if place.digest != question.digest():
        raise BadQuery(
            "This page cursor belongs to another query. Ask the same query again, or leave it out."
        )
    # What is browsed ends with the last picture alone.
    if question.terms:
        _reachable(place.offset)
    return place
