"""REST in one application: its routes, who may do what, and what errors become."""

from __future__ import annotations

import errno
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from http import HTTPStatus
from importlib import metadata
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse, Response
from fastapi_offline import FastAPIOffline
from starlette.exceptions import HTTPException
from starlette.routing import Match, Route

from app import DISTRIBUTION
from app.desk.troubles import INVALID, invalid_sentence, trouble_of
from app.home.folder import Home
from app.home.settings import Settings
from app.server import api_jobs, immich, knn_service
from app.server.admission import Admission
from app.server.description import DOCUMENT, PAGE, describe
from app.server.guard import Guard, Rules, refusal, route_of
from app.server.headers import PagePolicy
from app.server.metrics import CONTENT_TYPE
from app.server.monotonic import COMMIT, MonotonicReads
from app.server.observing import Observer
from app.server.own_sessions import OwnSessions
from app.server.places import RETRY_AFTER
from app.server.ranged import HeadersAlone
from app.server.readiness import Readiness
from app.server.routes import desk_router
from app.server.security import LOOPBACK, Passwords, ProxySignIn
from app.server.serving import OWN_ERRORS, Serving

logger = logging.getLogger(__name__)

_FULL = {errno.ENOSPC, errno.EDQUOT}


def create_api(serving: Serving, passwords: Passwords | None = None) -> FastAPI:
    """Builds the REST server around an opened workspace; its lifespan starts and stops `serving`.

    Args:
        serving: Made from an open workspace, which stays the caller's to close.
        passwords: Who may come in; None lets everybody in.
    """
    app = FastAPIOffline(
        docs_url=PAGE,
        redoc_url=None,
        openapi_url=DOCUMENT,
        title="Perennial",
        version=metadata.version(DISTRIBUTION),
        lifespan=_lifespan,
    )
    app.state.serving = serving
    _handle_errors(app)
    app.add_middleware(HeadersAlone)
    app.add_middleware(OwnSessions)
    app.add_middleware(Admission, places=serving.places, turned_away=serving.metrics.turned_away)
    app.add_middleware(MonotonicReads, reached=serving.reached)
    app.add_middleware(Observer, metrics=serving.metrics)
    _protect(app, serving.settings, passwords)
    described = (api_jobs.router, desk_router())
    for router in (*described, knn_service.router, immich.router):
        app.router.routes.extend(router.routes)  # `include_router` makes every route once more
    _add_health(app, serving)
    describe(app, *described)
    app.add_api_route(
        "/v1/{rest:path}",
        _nothing_here,
        methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        include_in_schema=False,
    )
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    serving: Serving = app.state.serving
    serving.start()
    try:
        yield
    finally:
        serving.stop()


def _protect(app: FastAPI, settings: Settings, passwords: Passwords | None) -> None:
    named = {urlsplit(origin).hostname or "" for origin in settings.origins}
    is_local, is_signed_in = settings.host in LOOPBACK, settings.proxy_user_header is not None
    is_open = passwords is None and (is_local or not is_signed_in)
    rules = Rules(
        passwords=passwords,
        origins=frozenset(settings.origins),
        hosts=LOOPBACK | named | {settings.host} if is_open else None,
        max_upload_bytes=settings.max_upload_bytes,
        proxy=ProxySignIn.of(settings),
        immich=tuple(settings.immich_from),
        own_socket=str(Home(settings.home).socket(settings)),
    )
    # The last one added is the outermost. Gradio adds no CORS headers of its own once it sees ours.
    app.add_middleware(Guard, rules=rules)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=settings.origins,
        allow_credentials=True,
        allow_methods=["GET", "POST"],
        allow_headers=["Authorization", "Content-Type", COMMIT],
        expose_headers=[COMMIT],
    )
    app.add_middleware(PagePolicy)


def _add_health(app: FastAPI, serving: Serving) -> None:
    readiness = Readiness(serving.workspace)

    @app.get("/health", include_in_schema=False)
    @app.get("/healthz")
    async def healthz() -> dict[str, str]:
        """Says that the process is alive."""
        return {"status": "alive"}

    @app.get("/ready", include_in_schema=False)
    @app.get("/readyz")
    async def readyz() -> dict[str, Any]:
        """Says which release answers, and what is not as it should be; 503 while none can, or the catalog is away."""
        snapshot = serving.snapshot()
        await readiness.require()
        return {
            "status": "ready",
            "release": snapshot.release.id,
            "commit": snapshot.commit,
            "problem": serving.problem,
            "degraded": [asdict(one) for one in serving.degraded],
        }

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        """Tells Prometheus what is counted."""
        return Response(serving.metrics.text(), media_type=CONTENT_TYPE)

    @app.get("/version")
    async def version() -> dict[str, str]:
        """Says which Perennial this is."""
        return {"name": "perennial", "version": metadata.version(DISTRIBUTION)}


def _nothing_here(request: Request) -> JSONResponse:
    """Refuses what no route answers; a path that is there names the methods that it takes (RFC 9110, 15.5.6)."""
    path = route_of(request.scope)[:80]
    methods = {
        method
        for route in request.app.routes
        if isinstance(route, Route)
        and route.endpoint is not _nothing_here  # its own route takes every path
        and route.matches(request.scope)[0] is Match.PARTIAL
        for method in route.methods or ()
    }
    if not methods:
        return refusal(404, "unknown_route", f"There is nothing at {path}.")
    known = sorted(methods | {"HEAD"} if "GET" in methods else methods)
    return refusal(
        405,
        "wrong_method",
        f"{path} is asked by {' or '.join(known)}, not by {request.method}.",
        {"Allow": ", ".join(known)},
    )


def _of_the_framework(error: HTTPException) -> tuple[str, str]:
    """Returns the code and the sentence of what FastAPI refuses by itself."""
    why = error.__cause__
    if error.status_code == HTTPStatus.BAD_REQUEST and isinstance(why, ValueError | RecursionError):
        return "bad_body", f"The body is no JSON in UTF-8 ({why})."
    return "http_error", str(error.detail)


def _handle_errors(app: FastAPI) -> None:
    async def own(request: Request, error: Exception) -> JSONResponse:
        trouble = trouble_of(error)
        if trouble.status >= 500:
            logger.warning("%s %s: %s", request.method, request.url.path, error)
        return refusal(
            trouble.status, trouble.code, trouble.sentence, RETRY_AFTER if trouble.status == 503 else None
        )

    for base in OWN_ERRORS:
        app.add_exception_handler(base, own)
    app.add_exception_handler(HTTPStatus.METHOD_NOT_ALLOWED, lambda request, _error: _nothing_here(request))

    @app.exception_handler(RequestValidationError)
    async def invalid(_request: Request, error: RequestValidationError) -> JSONResponse:
        return refusal(422, INVALID, invalid_sentence(error.errors()))

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> JSONResponse:
        if isinstance(error.__cause__, OSError):  # of writing an upload down
            return await system(request, error.__cause__)
        return refusal(error.status_code, *_of_the_framework(error))

    @app.exception_handler(OSError)
    async def system(request: Request, error: OSError) -> JSONResponse:
        logger.warning("%s %s", request.method, request.url.path, exc_info=error)
        if error.errno in _FULL:
            return refusal(
                507, "no_space", "The disk is full. Free some space and try again; nothing was changed."
            )
        return refusal(500, "system_error", "The server could not read or write a file; its log says which.")

    @app.exception_handler(Exception)
    async def unexpected(_request: Request, _error: Exception) -> JSONResponse:
        return refusal(500, "internal_error", "This is a mistake of the server; its log has the details.")
