"""Times each request to REST by its route, never by its address: ids in addresses would make endless series."""

from __future__ import annotations

import time
from contextlib import nullcontext

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.server.metrics import ServerMetrics
from ingest.spans import Spans, Trace, listening

try:  # it comes with other packages; a server that nobody watches through it pays next to nothing
    from opentelemetry import trace as opentelemetry
except ImportError:
    _TRACE: Trace = nullcontext
else:
    _TRACE = opentelemetry.get_tracer("perennial").start_as_current_span

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
        started, spans = time.perf_counter(), Spans(_TRACE)

        async def send_and_note(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = str(getattr(scope.get("route"), "path", ""))
                if route.startswith("/v1/") or route in {"/knn-service", "/metadata", "/indices-list"}:
                    method = scope["method"] if scope["method"] in _METHODS else "other"
                    spent = time.perf_counter() - started
                    self._metrics.request(method, route, int(message["status"]), spent, spans.spent)
            await send(message)

        with listening(spans):
            await self.app(scope, receive, send_and_note)
