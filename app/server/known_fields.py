"""Refuses query and form fields that a route does not have; the models of JSON bodies do so by themselves.

A misspelt `langauge=` that is silently left out would be answered, only wrongly. What a route has is read from REST's
own description, so that it is said in one place.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fastapi import Request

from app.desk.errors import AppError

_FORM = "multipart/form-data"


class UnknownField(AppError):
    """A request has a field that its route does not know."""


async def only_known_fields(request: Request) -> None:
    """Refuses a request with an unknown field; a dependency of every router.

    Raises:
        UnknownField: there is one; the sentence says which fields there are.
    """
    described = request.app.openapi()
    path = getattr(request.scope.get("route"), "path", "")
    operation = described["paths"].get(path, {}).get(request.method.lower())
    if operation is None:
        return
    queries = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    _refuse(request.query_params, queries, "query")
    form = operation.get("requestBody", {}).get("content", {}).get(_FORM)
    if form is not None:
        _refuse(await request.form(), _fields(form["schema"], described), "form")


def _refuse(given: Iterable[str], known: list[str], where: str) -> None:
    unknown = next((name for name in given if name not in known), None)
    if unknown is None:
        return
    there = f"it has {', '.join(known)}" if known else "it has none"
    raise UnknownField(f"There is no {where} field {unknown[:80]!r} here; {there}.")


def _fields(schema: dict[str, Any], described: dict[str, Any]) -> list[str]:
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    found = described["components"]["schemas"][name] if name else schema
    return list(found.get("properties", {}))
