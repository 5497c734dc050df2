"""What a search is asked over REST, and the question that it becomes."""

from __future__ import annotations

import base64
import binascii
from datetime import date
from typing import Annotated, Any, Self

from PIL import Image
from pydantic import BeforeValidator, Field, StrictBool, model_validator

from app.desk.errors import BadQuery
from app.query.filters import Filters
from app.query.grammar import HEAVIEST, MOST_PARTS, Kind, Term
from app.query.pages import FURTHEST
from app.query.parts import decoded, no_file, query_terms
from app.query.question import Mode, Question
from app.query.relevance import Relevance
from app.server.api_models import Name, Strict

_IMAGE = "image"
_IMAGE_CHARACTERS = 28 * 1024**2  # 20 MB, which a picture may have, in base64
Picture = Annotated[str, Field(max_length=_IMAGE_CHARACTERS, description="A picture file in base64.")]
Numbers = Annotated[list[float], Field(min_length=1, max_length=8192)]
ItemId = Annotated[str, Field(pattern="^[0-9a-fA-F]{6,64}$")]


def _day(given: object) -> object:
    if not isinstance(given, str):  # a number would be taken for seconds since 1970
        raise ValueError("a day is written as 2026-01-31")
    return given


Day = Annotated[date, BeforeValidator(_day, json_schema_input_type=date)]


class PartIn(Strict):
    """One part of a query: exactly one of text, image, item and embedding; a weight below zero takes it away."""

    text: Annotated[str, Field(max_length=2000)] | None = None
    image: Picture | None = None
    item: ItemId | None = None
    embedding: Numbers | None = None
    weight: float = Field(default=1.0, ge=-HEAVIEST, le=HEAVIEST)

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = [self.text, self.image, self.item, self.embedding]
        if sum(one is not None for one in given) != 1:
            raise ValueError("a part is exactly one of text, image, item and embedding")
        if self.weight == 0:
            raise ValueError("a part of weight 0 says nothing; leave it out")
        return self


class SearchRequest(Strict):
    """`POST /v1/search`: what is asked, by `text` in the query grammar or by parts, and which pictures may answer.

    `text`, `image`, `items`, `embedding` and `parts` may come together; all of them are parts of one query.
    """

    text: str | None = Field(default=None, description="In the query grammar: 2:red car + ./a.jpg - fruit")
    image: Picture | None = None
    images: dict[Name, Picture] = Field(
        default_factory=dict, max_length=MOST_PARTS, description="The pictures that `text` names, by name."
    )
    image_url: str | None = Field(default=None, description="Refused: nothing is fetched from the network.")
    items: list[ItemId] = Field(
        default_factory=list, max_length=MOST_PARTS, description="More like these pictures of the gallery."
    )
    embedding: Numbers | None = None
    parts: list[PartIn] = Field(default_factory=list, max_length=MOST_PARTS)
    language: str = Field(default="auto", max_length=40)
    translation: str = Field(
        default="", max_length=500, description="Of a text, in English; both count, as validation has shown."
    )
    k: int | None = Field(default=None, ge=1, le=1000)
    cursor: str = Field(default="", max_length=400, description="`next` of the answer before.")
    offset: int = Field(
        default=0, ge=0, le=FURTHEST, description="Hits to pass over, where there is no cursor."
    )
    mode: Mode = Mode.VECTORS
    domains: list[Name] | None = Field(default=None, max_length=100)
    languages: list[Name] | None = Field(default=None, max_length=100)
    chunks: list[Name] | None = Field(default=None, max_length=100)
    since: Day | None = Field(default=None, description="Taken in on this day (UTC) or later.")
    until: Day | None = Field(default=None, description="Taken in on this day (UTC) or earlier.")
    caption: str = Field(default="", max_length=500, description="With a caption that has all these words.")
    release: str | None = Field(default=None, max_length=80)
    dedup: StrictBool = Field(default=False, description="Show of near-copies only the best.")
    rerank: StrictBool = Field(
        default=False, description="The first 50 in the order of the release's fusion encoder."
    )
    captions: int = Field(default=0, ge=0, le=500, description="How many captions to return, nearest first.")
    caption_languages: list[Name] | None = Field(
        default=None, max_length=100, description="Of these captions; all learned languages when not given."
    )
    min_relevance: Relevance | None = Field(default=None, description="Leave out hits worth less than this.")
    explain: StrictBool = Field(default=False, description="Say of each hit how near each part is.")


def question_of(body: SearchRequest, *, longest: int, default_k: int) -> Question:
    """Returns the question that a request asks.

    Args:
        body: of the request.
        longest: characters a query may have.
        default_k: hits a page where the request does not say.

    Raises:
        BadQuery: a part cannot be used, or there is none.
    """
    if body.image_url is not None:
        raise BadQuery("Nothing is fetched from the network. Send the picture itself as `image`, in base64.")
    terms: list[Term] = []
    pictures: dict[str, Image.Image] = {}
    if body.text is not None:
        terms += query_terms(body.text, longest=longest)
        pictures |= _named(terms, body.images)
    elif body.images:
        raise BadQuery(
            "`images` are the pictures that `text` names. To search by a picture, send it as `image`."
        )
    parts = [PartIn(image=body.image)] if body.image is not None else []
    parts += [PartIn(item=item) for item in body.items]
    parts += [PartIn(embedding=body.embedding)] if body.embedding is not None else []
    for n, part in enumerate([*parts, *body.parts]):
        terms.append(_term(part, n, pictures))
    if not terms:
        raise BadQuery("There is nothing to look for. Send text, image, items, embedding or parts.")
    if len(terms) > MOST_PARTS:
        raise BadQuery(f"The query has {len(terms)} parts; at most {MOST_PARTS} are read.")
    return Question(
        tuple(terms),
        pictures,
        language=body.language,
        translation=body.translation,
        filters=_filters(body),
        k=body.k or default_k,
        cursor=body.cursor,
        offset=body.offset,
        mode=body.mode,
        fold=body.dedup,
        rerank=body.rerank,
        explain=body.explain,
        least=body.min_relevance,
        captions=body.captions,
        caption_languages=tuple(body.caption_languages or ()),
    )


def _filters(body: SearchRequest) -> Filters:
    return Filters(
        languages=tuple(body.languages or ()),
        domains=tuple(body.domains or ()),
        chunks=tuple(body.chunks or ()),
        since=body.since,
        until=body.until,
        caption=body.caption,
    )


def _named(terms: list[Term], sent: dict[str, str]) -> dict[str, Image.Image]:
    """Returns the pictures that a text names, each sent under its name or under its name without `./`."""
    pictures = {}
    for term in terms:
        if term.kind is Kind.IMAGE:
            data = sent.get(term.value, sent.get(term.value.removeprefix("./")))
            pictures[term.value] = decoded(
                term, no_file(term.value) if data is None else picture_bytes(data, term)
            )
    return pictures


def _term(part: PartIn, number: int, pictures: dict[str, Image.Image]) -> Term:
    if part.text is not None:
        return Term(Kind.TEXT, part.text, part.weight)
    if part.item is not None:
        return Term(Kind.ITEM, part.item.lower(), part.weight)
    if part.embedding is not None:
        return Term(Kind.VECTOR, "embedding", part.weight, vector=tuple(part.embedding))
    name = f"{_IMAGE} {number + 1}"
    term = Term(Kind.IMAGE, name, part.weight)
    pictures[name] = decoded(term, picture_bytes(part.image or "", term))
    return term


def picture_bytes(data: str, term: Term) -> bytes:
    """Returns a picture file that was sent in base64.

    Raises:
        BadQuery: it is no base64.
    """
    # Browsers give files as data addresses.
    start, comma, rest = data.partition(",")
    packed: Any = rest if comma and start.startswith("data:") else data
    try:
        return base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError) as error:
        raise BadQuery(f"{term.value} is not a picture in base64.", at=term.at) from error
