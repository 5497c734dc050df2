"""Times each request to REST by its route, never by its address: ids in addresses would make endless series."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.metrics import ServerMetrics

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Observer:
    """Passes requests on and notes what became of those to REST."""

    def __init__(self, app: ASGIApp, metrics: ServerMetrics) -> None:
        self.app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Times until the answer begins, so that a stream of events counts as quick as it is."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = str(getattr(scope.get("route"), "path", ""))
                if route.startswith("/v1/") or route in {"/knn-service", "/metadata", "/indices-list"}:
                    method = scope["method"] if scope["method"] in _METHODS else "other"
                    self._metrics.request(
                        method, route, int(message["status"]), time.perf_counter() - started
                    )
            await send(message)

        await self.app(scope, receive, send_and_note)
