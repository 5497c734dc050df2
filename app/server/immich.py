"""The routes of Immich's machine-learning service that its smart search asks, so that a release can be that search.

Requests and answers are those of its `machine-learning/immich_ml/main.py`, as its server's
`machine-learning.repository.ts` asks them: a form with `entries`, which say what is wanted, and a `text` or an `image`.
What else it may want, faces and text in pictures, is refused with a sentence in `detail`, where that service puts it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, File, Form
from fastapi.responses import JSONResponse, PlainTextResponse

from app.desk.errors import BadQuery
from app.desk.hits import AUTO, Embedded
from app.desk.troubles import OWN_ERRORS, trouble_of
from app.query.reading import read_query
from app.server.api_context import AnyDesk
from app.server.served import Served

router = APIRouter(include_in_schema=False)

_OURS = "clip"
_LENGTHS = (512, 640, 768, 1024, 1152)  # of the models that Immich knows


@router.get("/ping")
def ping() -> PlainTextResponse:
    """Says that there is somebody; Immich asks it every half minute."""
    return PlainTextResponse("pong")


@router.post("/predict")
def predict(
    desk: AnyDesk,
    entries: Annotated[str, Form()] = "",
    image: Annotated[bytes | None, File()] = None,
    text: Annotated[str | None, Form()] = None,
) -> JSONResponse:
    """Returns the vector of a text or of a picture, as the text of a JSON list; of a picture also its size."""
    try:
        wanted = _wanted(entries)
        if image is not None and "visual" in wanted:
            found = _embedded(desk, images=[base64.b64encode(image).decode("ascii")])
            size = {"imageHeight": found.height, "imageWidth": found.width}
        elif text is not None and "textual" in wanted:
            spoken = str(wanted["textual"]["options"].get("language") or "")
            found, size = _embedded(desk, texts=[text], language=_language(desk, text, spoken)), {}
        else:
            raise BadQuery("Send `image` for clip's visual entry, or `text` for its textual one.")
    except OWN_ERRORS as error:
        trouble = trouble_of(error)
        found, size = Embedded(**trouble.answered()), {}
    if found.embedding is None:
        said = {"detail": found.error, "error": found.error, "code": found.code}
        return JSONResponse(said, status_code=found.status)
    return JSONResponse({_OURS: _vector(found.embedding), **size})


def _wanted(entries: str) -> Mapping[str, Any]:
    """Returns the entries of smart search by type, `textual` or `visual`.

    Raises:
        BadQuery: they cannot be read, or want something else.
    """
    try:
        said = json.loads(entries)
        wanted = {task: {kind: _entry(one) for kind, one in types.items()} for task, types in said.items()}
    except (ValueError, AttributeError, TypeError, RecursionError) as error:
        raise BadQuery(
            '`entries` is no JSON such as {"clip": {"textual": {"modelName": "ViT-B-32__openai"}}}.'
        ) from error
    if others := [task for task in wanted if task != _OURS]:
        raise BadQuery(
            f"Perennial answers smart search ({_OURS}) alone, and {', '.join(others)[:80]} was asked for. Switch it "
            "off in Immich's settings for machine learning; docs/immich.md says more."
        )
    return wanted.get(_OURS, {})


def _entry(said: Mapping[str, Any]) -> dict[str, Any]:
    """Returns one entry, with its options, which may be none."""
    return {**said, "options": dict(said.get("options") or {})}


def _embedded(desk: Served, **asked: Any) -> Embedded:
    """Returns what the release that the setting `immich_release` names makes of one text or picture."""
    (found,) = desk.embed(**asked, release=desk.installed.immich_release or None).results
    return found


def _vector(row: Sequence[float]) -> str:
    """Returns a vector as Immich reads it.

    Zeros make it as long as that of a model that Immich knows, and leave every cosine as it is.
    """
    length = next((length for length in _LENGTHS if length >= len(row)), 0)
    return json.dumps([*row, *[0.0] * (length - len(row))])


def _language(desk: Served, text: str, spoken: str) -> str:
    """Returns the language to read a text in: that of the interface it was typed in, where the text may be in it."""
    chosen, _, _ = read_query(desk.snapshot(desk.installed.immich_release or None), text, AUTO)
    main = spoken.replace("_", "-").partition("-")[0].lower()
    return next((one.language for one in chosen if one.language.partition("-")[0] == main), AUTO)
