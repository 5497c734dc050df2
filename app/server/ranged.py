"""What is asked for in parts, by its headers alone, or by who has it already (RFC 9110, sections 9.3.2, 13 and 14)."""

from __future__ import annotations

import hashlib
import re
from urllib.parse import quote

from fastapi import Response
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_STREAMS = ("/events", "/data")  # of jobs, and of Gradio's queue
_ONE_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.IGNORECASE)  # no file is longer


class HeadersAlone:
    """Answers HEAD like GET, whose body the server does not send; FastAPI has no such routes by itself.

    Streams are left out, which would run to their end.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on."""
        if scope["type"] != "http" or scope["method"] != "HEAD" or scope["path"].endswith(_STREAMS):
            await self.app(scope, receive, send)
            return
        # The server knows by its own scope that a body is not sent. A range is asked for by GET alone.
        headers = [(name, value) for name, value in scope["headers"] if name != b"range"]
        asked = {**scope, "method": "GET", "headers": headers}

        async def send_on(message: Message) -> None:
            scope["route"] = asked.get("route")  # which is counted
            await send(message)

        await self.app(asked, receive, send_on)


class Lasting(Response):
    """Bytes that do not change; who says that they have them is not sent them again."""

    def __init__(self, data: bytes, *, media: str, headers: dict[str, str]) -> None:
        tag = {"ETag": f'"{hashlib.sha256(data).hexdigest()[:32]}"'}
        super().__init__(data, media_type=media, headers=headers | tag)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        known = {
            one.strip().removeprefix("W/") for one in Headers(scope=scope).get("if-none-match", "").split(",")
        }
        if not known & {self.headers["etag"], "*"}:
            await super().__call__(scope, receive, send)
            return
        headers = {name: self.headers[name] for name in ("etag", "cache-control")}
        await Response(status_code=304, headers=headers)(scope, receive, send)


class Ranged(Response):
    """Bytes under a name, whole or the one range that is asked for; several ranges are answered by the whole."""

    def __init__(self, data: bytes, *, name: str, media: str, headers: dict[str, str]) -> None:
        disposition = f"inline; filename*=UTF-8''{quote(name, safe='')}"
        more = {"Content-Disposition": disposition, "Accept-Ranges": "bytes"}
        super().__init__(data, media_type=media, headers=headers | more)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers a request."""
        asked = Headers(scope=scope).get("range", "")
        await self._part(asked)(scope, receive, send)

    def _part(self, asked: str) -> Response:
        data, found = bytes(self.body), _ONE_RANGE.fullmatch(asked.strip())
        whole = Response(data, headers=dict(self.headers))
        if found is None or found[0] == "bytes=-":
            return whole
        first, last = found.groups()
        start = int(first) if first else max(0, len(data) - int(last))
        end = min(int(last), len(data) - 1) if first and last else len(data) - 1
        if first and last and int(last) < start:
            return whole  # no range at all
        kept = {name: value for name, value in self.headers.items() if name != "content-length"}
        if start >= len(data) or start > end:
            return Response(status_code=416, headers=kept | {"Content-Range": f"bytes */{len(data)}"})
        said = {"Content-Range": f"bytes {start}-{end}/{len(data)}"}
        return Response(data[start : end + 1], status_code=206, headers=kept | said)
