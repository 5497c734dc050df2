"""A server that serves connections which another process has accepted, and how processes hand them to one another.

A connection travels through a *channel*: a pair of sockets, of which each of two processes holds one end. Nobody else
can reach it, since it lies nowhere in the file system, and when one process dies the other one hears it.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from app.home.settings import Settings
from app.server.connections import limited, most_connections
from app.server.headers import SecurityHeaders

READY, CONNECTION = b"r", b"c"
"""What is said on a channel: that its process answers requests, and that a connection comes with this byte."""

_GRACE_SECONDS = 5  # for what is being answered when the server is to end
# What a thread computes in Python before another one has a turn: a query does not wait 5 ms, which is usual, each time
# while a release is read.
_TURN_SECONDS = 0.0005

Hear = Callable[[bytes, socket.socket | None], None]


def server_options(app: ASGIApp, settings: Settings) -> uvicorn.Config:
    """Returns how an application is run."""
    is_named = "proxy_addresses" in settings.model_fields_set
    return uvicorn.Config(
        SecurityHeaders(app),
        host=settings.host,
        port=settings.port,
        workers=1,
        # Of the descriptors of the first process, which may hold a forwarded request for each of the others.
        http=limited(most_connections() // settings.processes),
        log_config=None,  # logs.py has set up logging
        access_log=False,
        server_header=False,
        # Whom a request is forwarded for counts where a person has named the proxy. One that signs people in must be
        # seen at its own address.
        proxy_headers=is_named and settings.proxy_user_header is None,
        forwarded_allow_ips=settings.proxy_addresses,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )


class HandedServer(uvicorn.Server):
    """Serves connections that are handed to it, beside those of its own sockets."""

    def __init__(self, options: uvicorn.Config) -> None:
        super().__init__(options)
        sys.setswitchinterval(_TURN_SECONDS)
        self._coming: set[asyncio.Task[object]] = set()

    def take(self, connection: socket.socket, options: uvicorn.Config | None = None) -> None:
        """Serves a connection; by another application, where `options` (loaded) say so. Called in the loop."""
        by = options or self.config

        def protocol() -> asyncio.Protocol:
            made: asyncio.Protocol = by.http_protocol_class(  # type: ignore[call-arg]
                config=by, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

        connection.setblocking(False)
        loop = asyncio.get_running_loop()
        coming = loop.create_task(loop.connect_accepted_socket(protocol, connection))
        self._coming.add(coming)
        coming.add_done_callback(self._coming.discard)


def hand(channel: socket.socket, connection: socket.socket) -> None:
    """Hands a connection to the process at the other end, and lets it go here.

    Raises:
        OSError: that process is gone, or so busy that it takes none (BlockingIOError); the connection stays here.
    """
    socket.send_fds(channel, [CONNECTION], [connection.fileno()])
    connection.close()


def listen(channel: socket.socket, hear: Hear) -> None:
    """Has the running loop tell what comes on a channel: a byte, and a connection with it; no byte at the end."""
    loop = asyncio.get_running_loop()
    channel.setblocking(False)

    def read() -> None:
        try:
            said, handed, *_ = socket.recv_fds(channel, 1, 1)
        except BlockingIOError:
            return
        except OSError:
            said, handed = b"", []
        if not said:
            loop.remove_reader(channel)
        hear(said, socket.socket(fileno=handed[0]) if handed else None)

    loop.add_reader(channel, read)
