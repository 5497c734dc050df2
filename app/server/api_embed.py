"""REST for vectors: texts and pictures as a release's encoder has them, to compare or to search with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from fastapi import APIRouter
from PIL import Image
from pydantic import BaseModel, Field

from app.desk.errors import BadQuery
from app.query.grammar import Kind, Term
from app.query.parts import decoded, encode
from app.query.snapshot import Snapshot
from app.server.api_context import State
from app.server.api_errors import trouble_of
from app.server.api_models import Strict
from app.server.api_query import Picture, picture_bytes
from app.server.serving import OWN_ERRORS, Serving

router = APIRouter(prefix="/v1")

MOST_AT_ONCE = 64


class EmbedRequest(Strict):
    """`POST /v1/embed`: texts, taken as they are, and pictures in base64; up to 64 together."""

    texts: list[Annotated[str, Field(max_length=2000)]] = Field(default_factory=list, max_length=MOST_AT_ONCE)
    images: list[Picture] = Field(default_factory=list, max_length=MOST_AT_ONCE)
    language: str = Field(default="auto", max_length=40)
    release: str | None = Field(default=None, max_length=80)


class Embedded(BaseModel):
    """One vector of length 1, or why there is none; `language` is what a text was read in."""

    status: int
    embedding: list[float] | None = None
    language: str | None = None
    error: str | None = None
    code: str | None = None


class EmbedResponse(BaseModel):
    """Vectors of the texts and then of the pictures, in the order they were sent.

    Vectors of one `version` can be compared; `release` is what answered, and `dim` how many numbers each has.
    """

    release: str
    version: str
    dim: int
    results: list[Embedded]


@router.post("/embed")
def embed(body: EmbedRequest, state: State) -> EmbedResponse:
    """Embeds texts and pictures; one that cannot be embedded does not keep the others from it.

    A text in a language nobody stated is read in the likeliest one. What comes back may be sent as the `embedding` of
    a search.
    """
    if not 0 < len(body.texts) + len(body.images) <= MOST_AT_ONCE:
        raise BadQuery(f"Send between 1 and {MOST_AT_ONCE} texts and images.")
    snapshot = state.snapshot(body.release)
    texts = [_text(text, state.settings.max_query_characters) for text in body.texts]
    pictures = [_picture(data, number) for number, data in enumerate(body.images, start=1)]
    return EmbedResponse(
        release=snapshot.release.id,
        version=snapshot.release.version,
        dim=snapshot.generation.dim,
        results=[_embedded(state, snapshot, asked, body.language) for asked in (*texts, *pictures)],
    )


Asked = Callable[[], tuple[Term, dict[str, Image.Image]]]


def _text(text: str, longest: int) -> Asked:
    def asked() -> tuple[Term, dict[str, Image.Image]]:
        if len(text) > longest:
            raise BadQuery(f"The text has {len(text)} characters; at most {longest} are read. Shorten it.")
        return Term(Kind.TEXT, text), {}

    return asked


def _picture(data: str, number: int) -> Asked:
    def asked() -> tuple[Term, dict[str, Image.Image]]:
        term = Term(Kind.IMAGE, f"image {number}")
        return term, {term.value: decoded(term, picture_bytes(data, term))}

    return asked


def _embedded(state: Serving, snapshot: Snapshot, asked: Asked, language: str) -> Embedded:
    try:
        with state.searching.taken():
            term, pictures = asked()
            encoded = encode(snapshot, [term], pictures, language)
    except OWN_ERRORS as error:
        trouble = trouble_of(error)
        return Embedded(status=trouble.status, error=trouble.sentence, code=trouble.code)
    row = encoded.vectors[0]
    if not np.isfinite(row).all():
        return Embedded(status=400, error="This could not be embedded; try another.", code="bad_query")
    return Embedded(status=200, embedding=row.tolist(), language=encoded.readings[0].language or None)
