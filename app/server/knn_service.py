"""clip-retrieval's three routes, so that its `ClipClient` and its front end work on this server unchanged.

Requests and answers are those of clip-retrieval 2.45 (`clip_retrieval/clip_back.py`, class `KnnService`). An id there
is a place in a list; here it is the first 52 bits of the picture's own id, which stays when pictures come and go, and
which JavaScript's numbers hold. Safety, violence and aesthetics are asked for by every `ClipClient`, and there are no
such models here: what is asked of them changes nothing.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Depends, Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from app.desk.errors import BadQuery
from app.desk.hits import Found, Numbers, Picture, SearchRequest
from app.desk.pictures import Item
from app.desk.troubles import invalid_sentence
from app.server.api_context import AnyDesk
from ingest.pair import BASE_LANGUAGE

router = APIRouter(include_in_schema=False)

INDEX = "perennial"
_DIGITS = 13  # 52 bits
_MOST = 1000
Asked = TypeVar("Asked", bound=BaseModel)


class _Tolerant(BaseModel):
    """clip-retrieval's front end sends more than its client; what is not known here changes nothing."""

    model_config = ConfigDict(extra="ignore")


class KnnRequest(_Tolerant):
    """`POST /knn-service`."""

    text: str | None = None
    image: Picture | None = None
    image_url: str | None = None
    embedding_input: Numbers | None = None
    deduplicate: bool = False
    indice_name: str | None = Field(default=None, max_length=80)
    modality: Literal["image", "text"] = "image"
    num_images: int = Field(default=40, ge=0, le=_MOST)
    num_result_ids: int | None = Field(default=None, ge=1)


class MetadataRequest(_Tolerant):
    """`POST /metadata`."""

    ids: list[Annotated[int, Field(ge=0, lt=2**52)]] = Field(max_length=_MOST)
    indice_name: str | None = Field(default=None, max_length=80)


async def _json(request: Request) -> Any:
    # Its client sends JSON without saying so.
    try:
        return await request.json()
    except (ValueError, RecursionError) as error:
        raise BadQuery("The request is no JSON.") from error


Sent = Annotated[Any, Depends(_json)]


@router.get("/indices-list")
def indices(desk: AnyDesk) -> list[str]:
    """Lists what `indice_name` may be: the live release under a fixed name, and every release."""
    return [INDEX, *(one.id for one in desk.releases() if one.pruned is None)]


@router.post("/knn-service")
def knn(sent: Sent, request: Request, desk: AnyDesk) -> list[dict[str, Any]]:
    """Finds pictures by a text, a picture or an embedding; the first `num_images` of the hits are described."""
    asked = _read(KnnRequest, sent)
    if asked.modality == "text":
        raise BadQuery("Captions are not searched by these routes; ask for the modality `image`.")
    found = asked.num_result_ids or asked.num_images
    said = {
        "parts": [_part(asked)],
        "k": max(1, min(found, _MOST)),
        "dedup": asked.deduplicate,
        "release": _release(asked.indice_name),
    }
    hits = desk.search(_read(SearchRequest, said)).hits
    told = [_described(hit, request) for hit in hits[: asked.num_images]] + [{}] * len(hits)
    return [
        one | {"id": number_of(hit.id), "similarity": hit.score} for one, hit in zip(told, hits, strict=False)
    ]


@router.post("/metadata")
def metadata(sent: Sent, request: Request, desk: AnyDesk) -> list[dict[str, Any]]:
    """Describes pictures by their numbers; those that there are not are left out."""
    asked = _read(MetadataRequest, sent)
    snapshot = desk.snapshot(_release(asked.indice_name))
    known = [(number, snapshot.beginning(f"{number:0{_DIGITS}x}", 1)) for number in asked.ids]
    return [
        {"id": number, "metadata": _described(desk.item(image), request)}
        for number, images in known
        for image in images
    ]


def number_of(image_id: str) -> int:
    """Returns the number by which these routes call a picture."""
    return int(image_id[:_DIGITS], 16)


def _read(kind: type[Asked], sent: Any) -> Asked:
    try:
        return kind.model_validate(sent)
    except ValidationError as error:
        raise BadQuery(invalid_sentence(error.errors())) from error


def _part(asked: KnnRequest) -> dict[str, Any]:
    """Returns the one part of a query; a text is taken as it is, since clip-retrieval knows no grammar."""
    if asked.image_url:
        raise BadQuery("Nothing is fetched from the network. Send the picture itself as `image`, in base64.")
    given = {"text": asked.text, "image": asked.image, "embedding": asked.embedding_input}
    for kind, value in given.items():
        if value:
            return {kind: value}
    raise BadQuery("There is nothing to look for. Send text, image or embedding_input.")


def _release(name: str | None) -> str | None:
    return None if name in (None, "", INDEX) else name


def _described(picture: Found | Item, request: Request) -> dict[str, Any]:
    """Returns a picture's caption, an English one if it has one, its address and what else is known of it."""
    english = [one for one in picture.captions if one.language == BASE_LANGUAGE]
    caption = next(iter(english or picture.captions), None)
    return {
        "url": f"{request.base_url}{picture.url.lstrip('/')}",
        "caption": caption.text if caption else "",
        "language": caption.language if caption else "",
        "domain": picture.domain or "",
        "sha256": picture.id,
    }
