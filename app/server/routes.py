"""REST, made of the desk's protocol: a route for each operation, with the schema of what it is asked and answers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, create_model

from app.desk.desk import Desk
from app.desk.fields import Strict
from app.desk.operation import Operation, Parameter, SentFile, adapter, document_of, operations
from app.desk.pictures import Original
from app.server.api_context import DESKS, REFUSED, NoQuery
from app.server.ranged import Lasting, Ranged
from app.server.served import Served
from ingest.pair import ImageId
from ingest.spans import span

# A picture's address names its content, so what is kept can never become stale. Private: behind a password.
_FOREVER = {"Cache-Control": "private, max-age=31536000, immutable"}
_AN_HOUR = {"Cache-Control": "private, max-age=3600"}


@cache
def desk_router() -> APIRouter:
    """Returns the routes of all operations; fixed parts of a path come before parameters in its place."""
    router = APIRouter(responses=REFUSED)
    for one in sorted(operations(Desk).values(), key=lambda one: one.path.replace("{", "~")):
        _add(router, one)
    return router


def _add(router: APIRouter, one: Operation) -> None:
    how: dict[str, Any] = {"response_model": _answer_model(one)}
    if one.media or one.sends_file:
        content = {one.media or "*/*": {"schema": {"type": "string", "format": "binary"}}}
        how = {"response_class": Response, "responses": {200: {"content": content}}}
    router.add_api_route(
        one.path,
        _endpoint(one),
        methods=[one.verb],
        name=one.name,
        summary=one.says.partition("\n")[0],
        description=one.says,
        status_code=one.status,
        **how,
    )


def _endpoint(one: Operation) -> Callable[..., Response]:
    """Returns the function of a route, with the signature that FastAPI reads."""
    asked = _asked_model(one)

    def endpoint(desk: Served, asked: Any = None, nothing: Any = None, **in_path: Any) -> Response:
        if one.body is not None:
            in_path[one.body.name] = asked
        elif asked is not None:
            in_path |= {name: getattr(asked, name) for name in one.others}
        answer = getattr(desk, one.name)(**in_path)
        if isinstance(answer, Original):
            return Ranged(answer.data, name=answer.name, media=answer.media, headers=_AN_HOUR)
        if isinstance(answer, SentFile):
            told = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(answer.name, safe='')}"}
            return Response(answer.data, media_type=answer.media, headers=told)
        if one.media:
            return _file(one, answer, in_path)
        with span("answer"):
            return _json(one, answer, desk)

    parameters = [_given("desk", DESKS[one.role])]
    parameters += [_given(name, _typed(known, Path)) for name, known in one.in_path.items()]
    if asked is not None:
        parameters.append(asked)
    if asked is None or one.verb == "POST":
        parameters.append(_given("nothing", NoQuery))
    endpoint.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return endpoint


def _asked_model(one: Operation) -> inspect.Parameter | None:
    """Returns the query or the body as a parameter: of one model, which refuses fields that it does not have."""
    if one.body is not None:
        return _given("asked", one.body.kind)
    if not one.others:
        return None
    fields = {name: (known.kind, _default(known)) for name, known in one.others.items()}
    model = create_model(_name_of(one), __base__=Strict, **fields)  # type: ignore[call-overload]
    if one.verb == "GET":
        return _given("asked", Annotated[model, Query()])
    is_optional = all(known.default is not inspect.Parameter.empty for known in one.others.values())
    return _given("asked", model, model() if is_optional else inspect.Parameter.empty)


def _answer_model(one: Operation) -> Any:
    if not one.wraps:
        return one.returns
    fields: dict[str, Any] = {one.wraps: (one.returns, ...)}
    model: type[BaseModel] = create_model(
        f"{_name_of(one)}Answer", __config__=ConfigDict(arbitrary_types_allowed=True), **fields
    )
    return model


def _name_of(one: Operation) -> str:
    return "".join(part.capitalize() for part in one.name.split("_"))


def _default(known: Parameter) -> Any:
    if known.default is inspect.Parameter.empty:
        return ...
    if isinstance(known.default, tuple):
        return list(known.default)
    return dict(known.default) if isinstance(known.default, Mapping) else known.default


def _typed(known: Parameter, place: Callable[[], Any]) -> Any:
    return Annotated[known.kind, place()]


def _given(name: str, kind: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)


def _json(one: Operation, answer: Any, desk: Served) -> Response:
    if not one.wraps and _sees_all(desk):
        # Without documents in between it takes a third of the time.
        data = adapter(one.returns).dump_json(answer)
        return Response(data, status_code=one.status, media_type=JSONResponse.media_type)
    document = shown(document_of(answer, one.returns), desk)
    return JSONResponse({one.wraps: document} if one.wraps else document, status_code=one.status)


def _file(one: Operation, data: bytes, in_path: Mapping[str, Any]) -> Response:
    if not one.file:
        headers = _AN_HOUR if one.role == "admin" else _FOREVER
        return Lasting(data, media=one.media, headers=headers)
    name = re.sub(r"[^\w.-]", "-", one.file.format_map(in_path))
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    media = f"{one.media}; charset=utf-8" if one.media == "text/csv" else one.media
    return Response(data, media_type=media, headers=headers)


def shown(document: Any, desk: Served) -> Any:
    """Returns an answer without whatever names a picture that was taken out, unless who asks may see all."""
    return document if _sees_all(desk) else _without(document, desk.withheld)


def _sees_all(desk: Served) -> bool:
    return desk.may_see_all() or not desk.withheld


def _without(value: Any, withheld: frozenset[ImageId]) -> Any:
    if isinstance(value, dict):
        kept = {name: _without(one, withheld) for name, one in value.items()}
        if kept.get("first_image") in withheld:  # the picture that came first in its place
            kept |= {name: None for name in ("first_image", "first_thumb_url") if name in kept}
        return kept
    if isinstance(value, (list, tuple)):
        return [_without(one, withheld) for one in value if not _names(one, withheld)]
    return value


def _names(value: Any, withheld: frozenset[ImageId]) -> bool:
    return isinstance(value, dict) and value.get("image_id") in withheld
