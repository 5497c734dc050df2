"""REST for single pictures: what is known of one, adding some, taking some out and putting them back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field, StrictBool, model_validator

from app.desk.errors import BadQuery
from app.learning.pictures import picture, returnable, takeable
from app.query.grammar import Kind, Term
from app.server import deciding
from app.server.api_context import Admin, Anyone, Contributor, State
from app.server.api_errors import trouble_of
from app.server.api_models import CaptionOut, Name, Strict
from app.server.api_query import ItemId, Picture, picture_bytes
from app.server.api_search import thumbnail
from app.server.left_out import require_shown
from app.server.sent_items import MOST_ITEMS, SentItem, checked, packed
from app.server.serving import OWN_ERRORS, Serving
from ingest.errors import BadOption
from ingest.intake import IntakeOptions
from ingest.pair import ImageId
from ingest.records import JobRecord
from ingest.withheld import Withheld

router = APIRouter(prefix="/v1")

_MOST_AT_ONCE = 500
_WEBP: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/webp": {"schema": {"type": "string", "format": "binary"}}}}
}
Item = Annotated[str, Path(max_length=80)]


class WithheldOut(BaseModel):
    """A picture that somebody took out; times are ISO 8601 in UTC."""

    id: str
    since: str
    by: str
    why: str


class ItemOut(BaseModel):
    """A picture with all its captions; `chunk` is the upload that brought it first.

    One that was taken out has `withheld` and no captions, and is there for admins alone.
    """

    id: str
    domain: str
    chunk: str
    width: int
    height: int
    format: str
    in_gallery: bool
    captions: list[CaptionOut]
    withheld: WithheldOut | None
    thumb_url: str
    url: str


class ItemIn(Strict):
    """One picture to add: a file in base64, and captions by language; `caption` is one in `language`."""

    image: Picture
    caption: Annotated[str, Field(max_length=2000)] = ""
    language: Annotated[str, Field(max_length=40)] = ""
    captions: dict[Name, list[Annotated[str, Field(max_length=2000)]]] = Field(
        default_factory=dict, max_length=200
    )

    @model_validator(mode="after")
    def _stated(self) -> ItemIn:
        if self.caption and self.language and self.language in self.captions:
            raise ValueError("a language is either in `captions` or that of `caption`")
        return self


class AddItems(Strict):
    """`POST /v1/items`: up to 64 pictures, which become one chunk."""

    items: list[ItemIn] = Field(min_length=1, max_length=MOST_ITEMS)
    name: Annotated[str, Field(max_length=120)] = "items"
    domain: Annotated[str, Field(max_length=80)] = ""
    gallery: StrictBool = True


class TakeOut(Strict):
    """`POST /v1/items/delete`; the reason is kept."""

    ids: list[ItemId] = Field(min_length=1, max_length=_MOST_AT_ONCE)
    why: str = Field(min_length=1, max_length=500)


class PutBack(Strict):
    """`POST /v1/items/restore`."""

    ids: list[ItemId] = Field(min_length=1, max_length=_MOST_AT_ONCE)


class ItemResult(BaseModel):
    """What became of one picture, in the order they were sent; `changed` unless all was so before."""

    status: int
    id: str = ""
    changed: bool = False
    error: str | None = None
    code: str | None = None


class ItemResults(BaseModel):
    """A status for each picture, and the job that follows; null where nothing follows."""

    results: list[ItemResult]
    job: dict[str, Any] | None


@router.get("/withheld")
def withheld(state: State, account: Admin) -> dict[str, list[WithheldOut]]:
    """Lists the pictures that somebody took out, the latest first."""
    found = state.workspace.catalog.withheld.all()
    return {"withheld": [_out(one) for one in found]}


@router.get("/items/{item_id}")
def item(item_id: Item, state: State, account: Anyone) -> ItemOut:
    """Returns what is known of a picture, by its id or a beginning of it."""
    known = picture(state.workspace, item_id)
    record = known.record
    require_shown(record.id, state, account)
    return ItemOut(
        id=record.id,
        domain=record.domain,
        chunk=record.chunk_id,
        width=record.width,
        height=record.height,
        format=record.format,
        in_gallery=record.in_gallery,
        captions=[CaptionOut(language=one.language, text=one.text) for one in known.captions],
        withheld=_out(known.withheld) if known.withheld else None,
        thumb_url=f"/v1/images/{record.id}/thumbnail",
        url=f"/v1/images/{record.id}",
    )


@router.get("/items/{item_id}/thumb", response_class=Response, responses=_WEBP)
def thumb(item_id: Item, state: State, account: Anyone) -> Response:
    """Returns a picture's thumbnail."""
    return thumbnail(picture(state.workspace, item_id).record.id, state, account)


@router.post("/items", status_code=202)
def add(body: AddItems, state: State, account: Contributor) -> ItemResults:
    """Starts taking pictures in as one chunk; what cannot be used is left out and says why, by itself.

    The job's result holds the chunk and its report, as that of `POST /v1/chunks`.
    """
    sent: list[SentItem] = []
    results = []
    for number, one in enumerate(body.items, start=1):
        results.append(_tried(partial(_sent, state, one, number, sent), status=202))
    job = None
    if sent:
        options = IntakeOptions(
            domain=body.domain or None, name=body.name.strip() or "items", in_gallery=body.gallery
        )
        file = packed(sent, state.workspace.home.inbox)
        job = state.work.take_in(
            file, options, name=body.name, by=account.name, is_held=not account.may("admin")
        )
    return _results(results, job)


@router.post("/items/delete")
def take_out(body: TakeOut, state: State, account: Admin) -> ItemResults:
    """Takes pictures out: from now on nothing shows them, trains on them or measures by them.

    What encoders have learned from them stays learned. `POST /v1/items/restore` puts them back.
    """
    find = takeable(state.workspace)
    return _changed(body.ids, find, partial(deciding.take_out, state, why=body.why, by=account.name))


@router.post("/items/restore")
def put_back(body: PutBack, state: State, account: Admin) -> ItemResults:
    """Puts pictures back that somebody took out, with all they had; search has them all when the job has ended."""
    find = returnable(state.workspace)
    return _changed(body.ids, find, partial(deciding.put_back, state, by=account.name))


def _changed(
    names: list[str],
    find: Callable[[str], ImageId],
    change: Callable[[list[ImageId]], tuple[list[ImageId], JobRecord | None]],
) -> ItemResults:
    """Changes pictures all at once; one that cannot be changed does not keep the others from it."""
    results = [_tried(partial(_found, find, name), status=200) for name in names]
    done, job = change(list(dict.fromkeys(one.id for one in results if one.id)))
    for one in results:
        one.changed = one.id in done
    return _results(results, job)


def _found(find: Callable[[str], ImageId], name: str) -> tuple[ImageId, bool]:
    return find(name), False


def _tried(act: Callable[[], tuple[str, bool]], *, status: int) -> ItemResult:
    try:
        image_id, has_changed = act()
        return ItemResult(status=status, id=image_id, changed=has_changed)
    except OWN_ERRORS as error:
        trouble = trouble_of(error)
        return ItemResult(status=trouble.status, error=trouble.sentence, code=trouble.code)


def _sent(state: Serving, one: ItemIn, number: int, sent: list[SentItem]) -> tuple[str, bool]:
    """Checks one picture and keeps it; returns its id, and that it is to be taken in."""
    captions = [(language, text) for language, texts in one.captions.items() for text in texts]
    if one.caption:
        captions.append((one.language, one.caption))
    elif one.language:
        raise BadQuery("`language` is that of `caption`, and there is none.")
    data = picture_bytes(one.image, Term(Kind.IMAGE, f"image {number}"))
    with state.packing.taken():  # a large picture takes hundreds of megabytes while it is decoded
        found = checked(data, captions)
    if found.image_id in state.withheld:
        raise BadOption(
            "This picture was taken out by a person. Put it back first, if it is to be shown again."
        )
    sent.append(found)
    return found.image_id, True


def _out(found: Withheld) -> WithheldOut:
    return WithheldOut(id=found.image_id, since=found.since, by=found.by, why=found.why)


def _results(results: list[ItemResult], job: JobRecord | None) -> ItemResults:
    return ItemResults(results=results, job=asdict(job) if job else None)
