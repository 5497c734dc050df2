"""Whose session of Gradio's is whose.

A session is a name that a browser chooses, and whatever waits in it goes to whoever says that name. So each
account has sessions of its own: its name stands before theirs.
"""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import parse_qsl, urlencode

from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from app.server.admission import again
from app.server.guard import account_of, route_of

_SESSION = "session_hash"
_STREAM = re.compile(r"(.*/gradio_api/heartbeat/)([^/]+)")


class OwnSessions:
    """Keeps whoever says the name of somebody else's session out of it."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes the request on with the account's name before that of the session."""
        account = account_of(scope) if scope["type"] == "http" else None
        if account is None or "/gradio_api/" not in route_of(scope):
            await self.app(scope, receive, send)
            return
        owner = f"{account.name}:"
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if any(key == _SESSION for key, _ in query):
            query = [(key, owner + value if key == _SESSION else value) for key, value in query]
            scope = {**scope, "query_string": urlencode(query).encode("ascii")}
        if found := _STREAM.fullmatch(scope["path"]):
            scope = {**scope, "path": f"{found[1]}{owner}{found[2]}"}
        if scope["method"] == "POST" and not scope["path"].endswith("/upload"):
            request = Request(scope, receive)
            body = _owned(await request.body(), owner)
            others = [(name, value) for name, value in scope["headers"] if name != b"content-length"]
            scope = {**scope, "headers": [*others, (b"content-length", b"%d" % len(body))]}
            receive = again([body], receive)
        await self.app(scope, receive, send)


def _owned(body: bytes, owner: str) -> bytes:
    """Returns what a function of a screen is sent, in a session of the owner; what is no JSON is Gradio's to refuse."""
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        return body
    if not isinstance(said, dict) or not isinstance(said.get(_SESSION), str):
        return body
    return json.dumps(said | {_SESSION: owner + said[_SESSION]}).encode()
