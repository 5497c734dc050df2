"""What REST says of itself: OpenAPI's document, a page to read and try it on, and a list of its operations."""

from __future__ import annotations

import sys
from collections.abc import Callable
from inspect import isclass
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.responses import JSONResponse, RedirectResponse
from fastapi.routing import APIRoute

from app.server.api_context import role_of
from app.server.guard import needed_role
from app.server.security import ROLES
from model_updates.checked import explained

DOCUMENT, PAGE = "/openapi.json", "/docs"
_OF_RECORDS = ("app.desk.", "ingest.", "model_updates.")


def describe(app: FastAPI, *routers: APIRouter) -> None:
    """Adds what describes an application that has the routes of some routers.

    The application is one of fastapi-offline, which has the page at `PAGE` and its scripts without a network.
    """
    app.openapi = _described(app.openapi)  # type: ignore[method-assign]  # as FastAPI's documentation has it
    listed = [one for router in routers for route in router.routes for one in _listed(route)]
    listed.sort(key=lambda one: (one["path"], one["method"]))

    @app.get("/v1", include_in_schema=False)
    @app.get("/v1/", include_in_schema=False)
    def index() -> JSONResponse:
        """Lists the operations."""
        return JSONResponse({"operations": listed, "schema": DOCUMENT, "page": PAGE})

    @app.get("/v1/openapi.json", include_in_schema=False)
    def document() -> JSONResponse:
        """Describes REST."""
        return JSONResponse(app.openapi())

    @app.get("/redoc", include_in_schema=False)
    def other_page() -> RedirectResponse:
        """Leads to the page that there is."""
        return RedirectResponse(PAGE.removeprefix("/"))


def _listed(route: Any) -> list[dict[str, Any]]:
    if not isinstance(route, APIRoute) or not route.include_in_schema:
        return []
    summary = route.description.partition("\n")[0]
    return [
        {
            "method": method,
            "path": route.path,
            "summary": summary,
            "roles": ROLES[
                max(map(ROLES.index, (role_of(route.dependant), needed_role(method, route.path)))) :
            ],
        }
        for method in sorted(route.methods or ())
    ]


def _described(schema: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    """Returns what gives OpenAPI's document with what is said of a record's field beside it."""

    def described() -> dict[str, Any]:
        document = schema()
        # Copies: another thread may be loading a module.
        modules = [module for name, module in sys.modules.copy().items() if name.startswith(_OF_RECORDS)]
        kinds = {
            kind.__name__: kind for module in modules for kind in [*vars(module).values()] if isclass(kind)
        }
        for one in document["components"]["schemas"].values():
            kind = kinds.get(one.get("title", ""))
            for name, says in explained(kind).items() if kind else ():
                if name in one.get("properties", {}):
                    one["properties"][name].setdefault("description", says)
        return document

    return described
