"""Monotonic reads: whoever has seen a commit is never answered by an older one, whichever process or server answers.

An answer carries in `X-Perennial-Commit` up to which commit the server knew what is live. A request that carries the
number back is answered from there on, or refused after a moment in which the server looks for what went live.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.admission import HEALTH
from app.server.guard import UNGUARDED, refusal, route_of
from app.server.places import RETRY_AFTER

COMMIT = "X-Perennial-Commit"
_PATIENCE_SECONDS = 2.0  # within which a server sees what went live elsewhere
_LOOK_SECONDS = 0.02
_MOST_DIGITS = 18
_AT_ONCE = UNGUARDED | HEALTH


class MonotonicReads:
    """Has a request wait for the commit that it names; `reached` says up to which one the server knows what is live."""

    def __init__(self, app: ASGIApp, reached: Callable[[], int]) -> None:
        self.app = app
        self._reached = reached

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Passes a request on once the server knows the commit, and says in the answer which one it knows."""
        if scope["type"] != "http" or route_of(scope) in _AT_ONCE:
            await self.app(scope, receive, send)
            return

        async def send_with_commit(message: Message) -> None:
            # Not before: what went live while it was answered may have answered it.
            if message["type"] == "http.response.start" and (reached := self._reached()):
                MutableHeaders(scope=message).setdefault(COMMIT, str(reached))
            await send(message)

        said = Headers(scope=scope).get(COMMIT, "0").strip()
        if not (said.isascii() and said.isdigit() and len(said) <= _MOST_DIGITS):
            sentence = (
                f"{COMMIT} is {said[:40]!r}. Send the number back that an answer carried, or leave it out."
            )
            await refusal(400, "bad_commit", sentence)(scope, receive, send_with_commit)
        elif await self._comes_to_know(int(said)):
            await self.app(scope, receive, send_with_commit)
        else:
            sentence = (
                f"You have seen commit {said}, and this server does not know it yet. Ask again in a few seconds; "
                f"without {COMMIT} an older release may answer."
            )
            await refusal(503, "commit_not_reached", sentence, RETRY_AFTER)(scope, receive, send_with_commit)

    async def _comes_to_know(self, commit: int) -> bool:
        until = time.monotonic() + _PATIENCE_SECONDS
        while self._reached() < commit:
            if time.monotonic() > until:
                return False
            await asyncio.sleep(_LOOK_SECONDS)
        return True
