"""Requests that one process of a server has another one answer, as they are and as they come.

A further process forwards to the first by connections that it hands over through its channel. What a request loses on
that way, who asked and how, travels in a header. It is believed on those connections alone, and whatever a client
says in it is dropped.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import anyio
import httpcore
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.guard import credentials_of, refusal
from app.server.handing import hand
from app.server.places import RETRY_AFTER
from app.server.security import Account, Passwords

logger = logging.getLogger(__name__)

Pairs = Iterable[tuple[bytes, bytes]]
_ASKED = b"x-perennial-asked"  # scheme, client and server of the request
_PROVEN = b"x-perennial-proven"  # whose the credentials of a request were found to be
# Of one connection, and no business of the next; the last two are written by each server itself.
_OWN_HEADERS = frozenset({
    *(b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade"),
    *(b"expect", b"date", b"server", _ASKED, _PROVEN),
})  # fmt: skip
_AGAIN_SECONDS = 0.01  # until a channel that was full is tried again


class Forwarding:
    """An application that answers some requests by itself, and has the first process answer all others.

    So that wrong passwords are counted in one place, it forwards also whatever comes with credentials that it does not
    know to be right. The first process says whether they are.
    """

    def __init__(
        self,
        app: ASGIApp,
        channel: socket.socket,
        passwords: Passwords | None,
        is_own: Callable[[Scope], bool],
    ) -> None:
        self._app, self._passwords, self._is_own = app, passwords, is_own
        self._first = httpcore.AsyncConnectionPool(
            network_backend=_Handed(channel), max_connections=None, max_keepalive_connections=0
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers or forwards a request."""
        if scope["type"] != "http" or (self._is_own(scope) and self._is_known(scope)):
            await self._app(scope, receive, send)
            return
        begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._forward(scope, receive, send_and_note)
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError) as error:
            logger.warning("%s %s could not be forwarded: %s", scope["method"], scope["path"][:80], error)
            if begun:
                raise
            sentence = "The server is starting or stopping. Ask again in a few seconds."
            await refusal(503, "starting", sentence, RETRY_AFTER)(scope, receive, send)

    def _is_known(self, scope: Scope) -> bool:
        said = credentials_of(Headers(scope=scope))
        return self._passwords is None or not said or self._passwords.remembered(said) is not None

    async def _forward(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Has the first process answer; where whoever asked goes away, it hears of it."""
        body = _Body(receive, {name for name, _ in scope["headers"]})
        async with anyio.create_task_group() as tasks:

            async def until_left() -> None:
                await body.read.wait()
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(until_left)
            problem = await self._answer(scope, body, send)
            tasks.cancel_scope.cancel()
        if problem is not None:  # raised here, since a group would wrap it
            raise problem

    async def _answer(self, scope: Scope, body: _Body, send: Send) -> Exception | None:
        query = b"?" * bool(scope["query_string"]) + scope["query_string"]
        url = httpcore.URL(scheme=b"http", host=b"first", port=80, target=scope["raw_path"] + query)
        asked = json.dumps([scope["scheme"], scope["client"], scope["server"]]).encode()
        headers = [*_passed_on(scope["headers"]), (_ASKED, asked)]
        content = body.parts() if body.is_some else None
        try:
            async with self._first.stream(scope["method"], url, headers=headers, content=content) as answer:
                self._learn(scope, answer.headers)
                passed = _passed_on((name.lower(), value) for name, value in answer.headers)
                await send({"type": "http.response.start", "status": answer.status, "headers": passed})
                async for part in answer.aiter_stream():
                    await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        except (OSError, httpcore.NetworkError, httpcore.ProtocolError) as error:
            return error
        return None

    def _learn(self, scope: Scope, headers: Pairs) -> None:
        """Remembers credentials that the first process has found to be right."""
        found = next((value for name, value in headers if name.lower() == _PROVEN), None)
        if self._passwords is not None and found is not None:
            account = Account(**json.loads(found))
            self._passwords.remember(credentials_of(Headers(scope=scope)), account)


class Forwarded:
    """The first process's application, for what further processes forward and for nothing else."""

    def __init__(self, app: ASGIApp, passwords: Passwords | None) -> None:
        self._app, self._passwords = app, passwords

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers as if it had been asked itself, and says whether the credentials were right."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        said = next(value for name, value in scope["headers"] if name == _ASKED)
        scheme, client, server = json.loads(said)
        rest = [(name, value) for name, value in scope["headers"] if name != _ASKED]
        as_asked: dict[str, Any] = {
            "scheme": scheme,
            "client": client and tuple(client),
            "server": tuple(server),
        }
        scope = {**scope, **as_asked, "headers": rest}

        async def send_and_tell(message: Message) -> None:
            if message["type"] == "http.response.start" and self._passwords is not None:
                account = self._passwords.remembered(credentials_of(Headers(scope=scope)))
                if account is not None:
                    told = json.dumps({"name": account.name, "role": account.role}).encode()
                    message = {**message, "headers": [*message.get("headers", ()), (_PROVEN, told)]}
            await send(message)

        await self._app(scope, receive, send_and_tell)


class _Body:
    """What comes with a request."""

    def __init__(self, receive: Receive, named: set[bytes]) -> None:
        self._receive = receive
        self.is_some = bool(named & {b"content-length", b"transfer-encoding"})
        self.read = anyio.Event()
        if not self.is_some:
            self.read.set()

    async def parts(self) -> AsyncIterator[bytes]:
        """Yields it as it comes.

        Raises:
            ConnectionResetError: whoever sends it went away.
        """
        goes_on = True
        while goes_on:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ConnectionResetError("who asked went away")
            goes_on = message.get("more_body", False)
            if not goes_on:
                self.read.set()
            if message.get("body"):
                yield message["body"]


class _Handed(httpcore.AsyncNetworkBackend):
    """Connects by handing one end of a new pair of sockets over."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    async def connect_tcp(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Returns the other end."""
        ours, theirs = socket.socketpair()
        while True:
            try:
                hand(self._channel, theirs)
            except BlockingIOError:
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            except OSError:
                ours.close()
                theirs.close()
                raise
            return _Stream(*await asyncio.open_unix_connection(sock=ours))


class _Stream(httpcore.AsyncNetworkStream):
    """A connection as httpcore wants it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Returns what has come; nothing at the end."""
        try:
            return await self._reader.read(max_bytes)
        except OSError as error:
            raise httpcore.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Sends, and waits while the other end is behind."""
        try:
            self._writer.write(buffer)
            await self._writer.drain()
        except (
            OSError
        ) as error:  # as httpcore knows it: what was answered to half a request is read all the same
            raise httpcore.WriteError(str(error)) from error

    async def aclose(self) -> None:
        """Closes it."""
        self._writer.close()


def _passed_on(headers: Pairs) -> list[tuple[bytes, bytes]]:
    return [(name, value) for name, value in headers if name not in _OWN_HEADERS]
