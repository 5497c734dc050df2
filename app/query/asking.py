"""What the desk is asked, as the question that the search engine answers."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from app.desk.errors import BadQuery
from app.desk.hits import MOST_PARTS, QueryPart, SearchRequest
from app.query.grammar import Kind, Term
from app.query.parts import decoded, query_terms
from app.query.question import QueryPicture, Question

_IMAGE = "image"
_PARTS = {"text", "image", "images", "items", "embedding", "parts"}
_WITHOUT_PARTS = SearchRequest().model_dump(include=_PARTS)


def question_of(body: SearchRequest, *, longest: int, default_k: int) -> Question:
    """Returns the question that a request asks; without parts the pictures are browsed.

    A query may have `longest` characters.

    Raises:
        BadQuery: a part cannot be used, or the text is empty.
    """
    if body.image_url is not None:
        raise BadQuery("Nothing is fetched from the network. Send the picture itself as `image`, in base64.")
    terms: list[Term] = []
    pictures: dict[str, QueryPicture] = {}
    if body.text is not None:
        terms += query_terms(body.text, longest=longest)
        pictures |= _named(terms, body.images)
    elif body.images:
        raise BadQuery(
            "`images` are the pictures that `text` names. To search by a picture, send it as `image`."
        )
    parts = [QueryPart(image=body.image)] if body.image is not None else []
    parts += [QueryPart(item=item) for item in body.items]
    parts += [QueryPart(embedding=body.embedding)] if body.embedding is not None else []
    for n, part in enumerate([*parts, *body.parts]):
        terms.append(_term(part, n, pictures))
    if len(terms) > MOST_PARTS:
        raise BadQuery(f"The query has {len(terms)} parts; at most {MOST_PARTS} are read.")
    return Question(tuple(terms), pictures, body.model_copy(update=_WITHOUT_PARTS), body.k or default_k)


def _named(terms: list[Term], sent: dict[str, str]) -> dict[str, QueryPicture]:
    """Returns the pictures that a text names, each sent under its name or under its name without `./`."""
    pictures = {}
    for term in terms:
        if term.kind is Kind.IMAGE:
            data = sent.get(term.value, sent.get(term.value.removeprefix("./")))
            if data is None:
                raise BadQuery(
                    f"The query names the picture {term.value[:80]}, and none was sent under this name. Send it along, "
                    "or put the words in quotation marks."
                )
            pictures[term.value] = decoded(term, picture_bytes(data, term))
    return pictures


def _term(part: QueryPart, number: int, pictures: dict[str, QueryPicture]) -> Term:
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
