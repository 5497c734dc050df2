"""Connections of a server: how many there may be, and how long one may hold its place without a request.

uvicorn accepts as many as come, and waits for ever for the first byte of a request and for the rest of a body: some
hundred sockets that say nothing take every descriptor, and nobody is answered any more. Here there are fewer
connections than descriptors; a new one takes the place of the one that has been idle longest. Who begins a request has
some seconds for its headers, and its body must keep coming.
"""

from __future__ import annotations

import asyncio
import logging
import resource
from collections import OrderedDict
from pathlib import Path
from typing import ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

logger = logging.getLogger(__name__)

_MOST = 2000
# Of descriptors: the catalog's, the pictures', those of pipes to jobs and of what goes out.
_FOR_OTHER_WORK = 96
_HEADER_SECONDS = 10.0
_HEADER_BYTES = 64 * 1024
# A body that comes more slowly than this, or than would bring all of it in two hours, is no upload but a hand on the
# door; so is somebody who reads nothing of an answer for so long.
_BODY_SECONDS, _BODY_BYTES, _LONGEST_SECONDS = 30.0, 16 * 1024, 7200.0
# For the rest of a body whose request has been refused already, and for one that does not say how long it is.
_REST_SECONDS = 60.0
_LOOK_SECONDS = 1.0
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 2\r\nconnection: close\r\n"
_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: application/json\r\nconnection: close\r\n"
)
_SLOW = b"HTTP/1.1 408 Request Timeout\r\ncontent-type: application/json\r\nconnection: close\r\n"


def most_connections() -> int:
    """Returns how many connections this process may have, going by its limit of descriptors, which is raised first."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST + 1024
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft == resource.RLIM_INFINITY:
        return _MOST
    return max(8, min(_MOST, soft - _open_descriptors() - _FOR_OTHER_WORK))


def _open_descriptors() -> int:
    try:
        return sum(1 for _ in Path("/proc/self/fd").iterdir())
    except OSError:  # no Linux
        return 64


def limited(most: int) -> type[asyncio.Protocol]:
    """Returns a protocol for uvicorn under which there are at most so many connections from the network."""
    return type("LimitedConnection", (LimitedConnection,), {"most": most, "known": OrderedDict()})


class LimitedConnection(HttpToolsProtocol):
    """A connection of HTTP that is let go when it keeps others out."""

    most: ClassVar[int]
    # From the network, those first that did something longest ago
    known: ClassVar[OrderedDict[LimitedConnection, None]]
    looking: ClassVar[asyncio.TimerHandle | None] = None

    _waits_for = "headers"
    _since = 0.0
    _received = 0
    _announced = 0
    _is_in_body = False
    _body_until = 0.0
    _stuck_since: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Lets it in, and another go if there are too many."""
        super().connection_made(transport)
        self._since = self.loop.time()
        if self.client is None:  # by the socket in the home, which its owner alone can open
            return
        kind = type(self)
        kind.known[self] = None
        if kind.looking is None:
            kind.looking = self.loop.call_later(_LOOK_SECONDS, kind.look)
        if len(kind.known) > kind.most:
            kind.make_room(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets it."""
        type(self).known.pop(self, None)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Notes that something came."""
        if self in type(self).known:
            type(self).known.move_to_end(self)
        if self._waits_for == "a request":
            self._wait_for("headers")
        self._received += len(data)
        super().data_received(data)
        if self._waits_for == "headers" and self._received > _HEADER_BYTES:
            self._let_go(_LARGE, "too_large", "The headers of the request are too large.")

    def on_headers_complete(self) -> None:
        """Begins to wait for the body."""
        self._wait_for("body")
        said = dict(self.headers).get(b"content-length", b"")
        self._announced = int(said) if said.isdigit() else 0
        self._is_in_body = True
        self._body_until = self._since + (_LONGEST_SECONDS if self._announced else _REST_SECONDS)
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Waits for the answer, unless it has been given before the body was there."""
        self._is_in_body = False
        self._wait_for("the answer" if self._is_answering() else "a request")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Waits for the next request; uvicorn times it, but not where a body came after its answer."""
        super().on_response_complete()
        rest = "body" if self._is_in_body else "a request"
        self._wait_for("the answer" if self._is_answering() else rest)
        self._body_until = min(self._body_until, self._since + _REST_SECONDS)

    def pause_writing(self) -> None:
        """Notes that its client does not read."""
        self._stuck_since = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Notes that its client reads."""
        self._stuck_since = None
        super().resume_writing()

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _wait_for(self, what: str) -> None:
        self._waits_for, self._since, self._received = what, self.loop.time(), 0

    def handle_websocket_upgrade(self) -> None:
        """Leaves it to the protocol of sockets, which the guard closes."""
        type(self).known.pop(self, None)
        super().handle_websocket_upgrade()

    @property
    def _is_idle(self) -> bool:
        return self._waits_for in {"headers", "a request"}

    @classmethod
    def make_room(cls, newest: LimitedConnection) -> None:
        """Lets the connection go that has been idle longest, or the new one where all others are at work."""
        oldest = next((one for one in cls.known if one._is_idle and one is not newest), newest)
        logger.warning("there are %d connections, as many as this process can have; one is let go", cls.most)
        oldest._let_go(_BUSY if oldest is newest else b"", "too_busy", "The server has too many connections.")

    @classmethod
    def look(cls) -> None:
        """Lets go of the connections that have not said in time what they want."""
        loop = asyncio.get_running_loop()
        for one in list(cls.known):
            now = loop.time()
            waited = now - one._since
            if one._stuck_since is not None and now - one._stuck_since > _BODY_SECONDS:
                one._let_go(b"", "too_slow", "")
            elif one._is_idle and waited > _HEADER_SECONDS:
                one._let_go(_SLOW if one._received else b"", "too_slow", "The request did not come in time.")
            elif one._waits_for == "body" and (waited > _BODY_SECONDS or now > one._body_until):
                enough = max(_BODY_BYTES, one._announced * waited / _LONGEST_SECONDS)
                is_slow = one._received < enough and not one.flow.read_paused  # else it is the server that is
                if is_slow or now > one._body_until:
                    one._let_go(_SLOW, "too_slow", "The request did not come in time.")
                one._wait_for("body")
        cls.looking = loop.call_later(_LOOK_SECONDS, cls.look) if cls.known else None

    def _let_go(self, head: bytes, code: str, sentence: str) -> None:
        type(self).known.pop(self, None)
        is_begun = self.cycle is not None and self.cycle.response_started and self._waits_for != "headers"
        if head and not is_begun:
            body = b'{"error":"%b","code":"%b"}' % (sentence.encode(), code.encode())
            self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            self.transport.close()
            return
        self.transport.abort()
