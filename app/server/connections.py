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
# A body that comes more slowly than this is no upload but a hand on the door.
_BODY_SECONDS, _BODY_BYTES = 30.0, 16 * 1024
_LOOK_SECONDS = 1.0
_BUSY = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 2\r\nconnection: close\r\n"
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
    known: ClassVar[
        OrderedDict[LimitedConnection, None]
    ]  # from the network, those first that did something longest ago
    looking: ClassVar[asyncio.TimerHandle | None] = None

    _waits_for = "headers"
    _since = 0.0
    _received = 0

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

    def on_headers_complete(self) -> None:
        """Begins to wait for the body."""
        self._wait_for("body")
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Waits for the answer."""
        self._wait_for("the answer")
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Waits for the next request, which uvicorn times."""
        self._wait_for("a request")
        super().on_response_complete()

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
            waited = loop.time() - one._since
            if one._waits_for == "headers" and waited > _HEADER_SECONDS:
                one._let_go(_SLOW if one._received else b"", "too_slow", "The request did not come in time.")
            elif one._waits_for == "body" and one.flow.read_paused:
                one._wait_for("body")  # it is the server that is slow
            elif one._waits_for == "body" and waited > _BODY_SECONDS:
                if one._received < _BODY_BYTES:
                    one._let_go(_SLOW, "too_slow", "The request did not come in time.")
                one._wait_for("body")
        cls.looking = loop.call_later(_LOOK_SECONDS, cls.look) if cls.known else None

    def _let_go(self, head: bytes, code: str, sentence: str) -> None:
        type(self).known.pop(self, None)
        if head and not (self.cycle is not None and self.cycle.response_started):
            body = b'{"error":"%b","code":"%b"}' % (sentence.encode(), code.encode())
            self.transport.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
            self.transport.close()
            return
        self.transport.abort()
