"""The routes of Immich's machine-learning service that its smart search asks, so that a release can be that search.

Requests and answers are those of its `machine-learning/immich_ml/main.py`, as its server's
`machine-learning.repository.ts` asks them: a form with `entries`, which say what is wanted, and a `text` or an `image`.
What else it may want, faces and text in pictures, is refused with a sentence in `detail`, where that service puts it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, File, Form
from fastapi.responses import JSONResponse, PlainTextResponse

from app.desk.errors import BadQuery
from app.desk.hits import AUTO
from app.desk.troubles import OWN_ERRORS, trouble_of
from app.query.snapshot import read_query
from app.server.api_context import AnyDesk
from app.server.served import Served
from ingest.errors import BadImage
from ingest.images import open_picture

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
            with open_picture(image) as opened:
                width, height = opened.size
            packed = base64.b64encode(image).decode("ascii")
            return JSONResponse(
                {_OURS: _vector(desk, images=[packed]), "imageHeight": height, "imageWidth": width}
            )
        if text is not None and "textual" in wanted:
            spoken = str((wanted["textual"].get("options") or {}).get("language") or "")
            return JSONResponse({_OURS: _vector(desk, texts=[text], language=_language(desk, text, spoken))})
        raise BadQuery("Send `image` for clip's visual entry, or `text` for its textual one.")
    except BadImage as error:
        return _refused(400, f"This is no picture that can be opened ({error}).", "bad_image")
    except OWN_ERRORS as error:
        trouble = trouble_of(error)
        return _refused(trouble.status, trouble.sentence, trouble.code)


def _wanted(entries: str) -> Mapping[str, Any]:
    """Returns the entries of smart search by type, `textual` or `visual`.

    Raises:
        BadQuery: they cannot be read, or want something else.
    """
    try:
        said = json.loads(entries)
        wanted = {task: {kind: dict(entry) for kind, entry in types.items()} for task, types in said.items()}
    except (ValueError, AttributeError, TypeError) as error:
        raise BadQuery(
            '`entries` is no JSON such as {"clip": {"textual": {"modelName": "ViT-B-32__openai"}}}.'
        ) from error
    if others := [task for task in wanted if task != _OURS]:
        raise BadQuery(
            f"Perennial answers smart search ({_OURS}) alone, and {', '.join(others)[:80]} was asked for. Switch it "
            "off in Immich's settings for machine learning; docs/immich.md says more."
        )
    return wanted.get(_OURS, {})


def _vector(desk: Served, **asked: Any) -> str:
    """Returns the vector of one text or picture, by the release that the setting `immich_release` names.

    Zeros make it as long as that of a model that Immich knows, and leave every cosine as it is.
    """
    (found,) = desk.embed(**asked, release=desk.installed.immich_release or None).results
    if found.embedding is None:
        raise BadQuery(found.error or "This could not be embedded; try another.")
    length = next((length for length in _LENGTHS if length >= len(found.embedding)), 0)
    return json.dumps([*found.embedding, *[0.0] * (length - len(found.embedding))])


def _language(desk: Served, text: str, spoken: str) -> str:
    """Returns the language to read a text in: that of the interface it was typed in, where the text may be in it."""
    chosen, _, _ = read_query(desk.snapshot(desk.installed.immich_release or None), text, AUTO)
    main = spoken.replace("_", "-").partition("-")[0].lower()
    return next((one.language for one in chosen if one.language.partition("-")[0] == main), AUTO)


def _refused(status: int, sentence: str, code: str) -> JSONResponse:
    return JSONResponse({"detail": sentence, "error": sentence, "code": code}, status_code=status)
