"""What a request waits for before anything is done for it: a place of its kind, counted before a thread is taken.

A thread pool has no such limit: what comes queues there, searches behind uploads and health checks behind both, until
every descriptor of the process is a connection that waits. Here each kind has places of its own, fewer than the pool
has threads all together, so that one that is overrun refuses what it cannot begin soon and leaves the others alone.
A place is held until the answer begins: what streams afterwards, such as events, works no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.desk.errors import TooBusy
from app.server.guard import (
    QUERY_PATHS,
    SAFE_METHODS,
    UNGUARDED,
    UPLOAD_PATHS,
    needed_role,
    refusal,
    route_of,
)
from app.server.places import BUSY, RETRY_AFTER, Gone, HeldPlace, Places

logger = logging.getLogger(__name__)

_SEARCHES = frozenset({"/v1/search", "/v1/search.csv", "/knn-service", "/predict"})
# More than one text, or longer than any text and filter, so that there is a picture in it.
_HEAVY = frozenset({"/v1/compare", "/v1/comparisons"}) | QUERY_PATHS - _SEARCHES
_HEAVY_BYTES = 64 * 1024
_HEAVY_DIGITS = len(str(_HEAVY_BYTES))  # a length of fewer is less
_ENDING = (
    "The server is ending, and this took too long. It may have been done all the same: look, and ask again."
)
_TOO_BUSY = "too busy for a request of the kind %s"
_UPLOADS = UPLOAD_PATHS | {"/v1/items"}
_THUMBNAILS = ("/thumb", "/thumbnail")
HEALTH = frozenset({"/metrics", "/version"})
# What may lie in memory of bodies whose requests wait, of heavy ones and of all others; an upload goes to the disk as
# it comes. A body has ten seconds and what it takes at a quarter of a megabyte a second.
_MOST_BYTES = {True: 256 * 1024**2, False: 64 * 1024**2}
_BODY_SECONDS, _BODY_BYTES_A_SECOND = 10.0, 256 * 1024


def places_by_kind(search: Places) -> dict[str, Places]:
    """Returns the places of each kind of request; `search` are those that the pages search with, too."""
    return {
        "search": search,
        "heavy": Places(at_once=1, waiting=8),
        "upload": Places(at_once=4, waiting=4),
        "change": Places(at_once=6, waiting=32),
        "page": Places(at_once=8, waiting=64),
        "picture": Places(at_once=6, waiting=256),  # which may lie in a bucket that does not answer
        "read": Places(at_once=8, waiting=256),
        "health": Places(at_once=2, waiting=16),
    }


def kind_of(method: str, path: str, length: int) -> str:
    """Returns of which kind a request is, by what it asks for and how many bytes its body has."""
    if path in HEALTH:
        return "health"
    if method == "POST" and path in _UPLOADS:
        return "upload"
    if method == "POST" and path in _SEARCHES | _HEAVY:
        return "search" if path in _SEARCHES and length <= _HEAVY_BYTES else "heavy"
    if method == "GET" and (path.startswith("/v1/images/") or path.endswith(_THUMBNAILS)):
        return "picture"
    if needed_role(method, path) != "searcher":
        return "change"
    return "page" if path.startswith("/gradio_api/") else "read"


class Admission:
    """Has each request wait for a place of its kind; refuses what would wait too long, and drops what has left."""

    def __init__(
        self, app: ASGIApp, places: Mapping[str, Places], turned_away: Callable[[str], None]
    ) -> None:
        self.app = app
        self._places = places
        self._turned_away = turned_away
        self._bytes = {True: 0, False: 0}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on once it has its place."""
        path = route_of(scope) if scope["type"] == "http" else ""
        if scope["type"] != "http" or path in UNGUARDED:
            await self.app(scope, receive, send)
            return
        length = int(Headers(scope=scope).get("content-length") or 0)
        kind = kind_of(scope["method"], path, length)
        is_body_read = kind != "upload" and scope["method"] not in SAFE_METHODS
        waits = None if kind == "upload" else partial(_gone, receive)
        kept: list[bytes] = []
        try:
            if is_body_read:
                async with asyncio.timeout(_BODY_SECONDS + length / _BODY_BYTES_A_SECOND):
                    await self._read(receive, kept, kind)
            place = await self._places[kind].take(waits)
        except Gone:
            return
        except TimeoutError:
            await refusal(408, "too_slow", "The request did not come in time.")(scope, receive, send)
            return
        except TooBusy as error:
            self._turned_away(kind)
            logger.warning(_TOO_BUSY, kind)
            await refusal(503, "too_busy", error.message, RETRY_AFTER)(scope, receive, send)
            return
        finally:
            self._bytes[kind == "heavy"] -= sum(map(len, kept))
        await self._admit(place, scope, receive if kind == "upload" else again(kept, receive), send)

    async def _read(self, receive: Receive, kept: list[bytes], kind: str) -> None:
        """Reads the body first: who sends it slowly holds no place meanwhile, and who leaves is seen to leave."""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Gone
            part = message.get("body", b"")
            kept.append(part)
            self._bytes[kind == "heavy"] += len(part)
            if self._bytes[kind == "heavy"] > _MOST_BYTES[kind == "heavy"]:
                raise self._places[kind].refusal()
            if not message.get("more_body", False):
                return

    async def _admit(self, place: HeldPlace, scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def send_and_leave(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            place.give_back()
            await send(message)

        place.hold()
        try:
            await self.app(scope, receive, send_and_leave)
        except asyncio.CancelledError:  # uvicorn's, when the server ends and what is asked takes too long
            if has_begun:
                raise
            logger.warning("the server ended before %s %s was answered", scope["method"], scope["path"])
            await refusal(503, "server_ending", _ENDING, RETRY_AFTER)(scope, receive, send)
        finally:
            place.give_back()


class LoadShedding:
    """Refuses a search that can get no place before anything else looks at it.

    Under overload most of the work is refusing: what a refusal costs is taken from the answers. A page of another
    origin goes the long way, since a browser shows it no answer without the headers that it gets there.
    """

    def __init__(self, app: ASGIApp, search: Places, turned_away: Callable[[str], None]) -> None:
        self.app = app
        self._search = search
        self._turned_away = turned_away
        self._answer = refusal(503, "too_busy", BUSY, RETRY_AFTER)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes on everything but a search that is refused."""
        if not (_is_plain_search(scope) and self._search.refuses_one_more()):
            await self.app(scope, receive, send)
            return
        self._turned_away("search")
        logger.warning(_TOO_BUSY, "search")
        await self._answer(scope, receive, send)


def _is_plain_search(scope: Scope) -> bool:
    if scope["type"] != "http" or scope["method"] != "POST" or route_of(scope) not in _SEARCHES:
        return False
    said = dict(scope["headers"])
    return b"origin" not in said and len(said.get(b"content-length", b"")) < _HEAVY_DIGITS


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def again(body: list[bytes], receive: Receive) -> Receive:
    """Returns what gives the body that was read, and what comes after it."""
    given: list[Message] = [{"type": "http.request", "body": b"".join(body), "more_body": False}]

    async def receive_again() -> Message:
        return given.pop() if given else await receive()

    return receive_again
