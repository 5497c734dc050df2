"""REST for what intake held or rejected: looking at the pairs with their pictures, and deciding held ones."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from app.learning import inventory
from app.server import deciding
from app.server.api_context import Admin, State
from app.server.api_models import Strict
from app.server.api_reports import ChunkOut, chunk_out
from ingest.errors import UnknownImage
from ingest.records import AsidePair

router = APIRouter(prefix="/v1")

_LARGEST = 2**63 - 1  # of SQLite
_WEBP: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/webp": {"schema": {"type": "string", "format": "binary"}}}}
}
_Limit = Annotated[int, Query(ge=1, le=1000)]
_Offset = Annotated[int, Query(ge=0, lt=2**31)]
_Number = Annotated[int, Field(ge=1, le=_LARGEST)]


class AsidePairOut(BaseModel):
    """A pair that was held or rejected: why, what became of it, and the address of its picture."""

    id: int
    chunk: str
    place: str
    outcome: str
    code: str
    sentence: str
    image_id: str
    language: str
    text: str
    domain: str
    split: str
    group: str
    decided: str
    decided_by: str
    decided_why: str
    decided_at: str
    thumb_url: str


class HeldRowOut(BaseModel):
    """A row that intake held and nobody has decided; `pair` is null where no picture of it was kept."""

    chunk: str
    name: str
    where: str
    code: str
    sentence: str
    pair: AsidePairOut | None


class HeldOut(BaseModel):
    """What waits for a person's word: whole chunks by id, and rows."""

    chunks: list[str]
    total: int
    rows: list[HeldRowOut]


class QuestionedPairOut(BaseModel):
    """A pair of the chunk that one of its checks names."""

    number: int
    image_id: str
    language: str
    text: str
    check: str
    why: str
    thumb_url: str


class AsideOut(BaseModel):
    """What may be decided of a chunk: pairs of its upload that were held or rejected, and those its checks name."""

    chunk: str
    counts: dict[str, int]
    pairs: list[AsidePairOut]
    questioned: list[QuestionedPairOut]


class Decide(Strict):
    """`POST /v1/chunks/{id}/decide`; `take_out` names `questioned` pairs, `language` is of captions that state none."""

    accept: list[_Number] = Field(default_factory=list, max_length=1000)
    leave_out: list[_Number] = Field(default_factory=list, max_length=1000)
    take_out: list[_Number] = Field(default_factory=list, max_length=1000)
    language: str | None = Field(default=None, max_length=40)
    why: str = Field(default="", max_length=500)


class DecidedOut(BaseModel):
    """What was decided; `job` makes new pictures searchable and checks the chunk again."""

    chunk: ChunkOut
    pairs: list[AsidePairOut]
    new_pictures: int
    sentence: str
    job: dict[str, Any] | None


@router.get("/held")
def held(state: State, account: Admin, limit: _Limit = 100, offset: _Offset = 0) -> HeldOut:
    """Returns what waits for a person's word: whole chunks by id, and rows that intake held."""
    total, rows = inventory.held_rows(state.workspace, limit=limit, offset=offset)
    listed = [
        HeldRowOut(**asdict(row) | {"pair": _pair_out(row.pair) if row.pair is not None else None})
        for row in rows
    ]
    return HeldOut(chunks=[one.id for one in inventory.waiting(state.workspace)], total=total, rows=listed)


@router.get("/chunks/{chunk_id}/aside")
def aside(chunk_id: str, state: State, account: Admin) -> AsideOut:
    """Returns what may be decided of a chunk, what was decided, and what intake rejected of its upload."""
    found = inventory.put_aside(state.workspace, chunk_id)
    questioned = [
        QuestionedPairOut(**asdict(pair), thumb_url=f"/v1/images/{pair.image_id}/thumbnail")
        for pair in found.questioned
    ]
    pairs = [_pair_out(pair) for pair in found.pairs]
    return AsideOut(chunk=found.chunk, counts=found.counts, pairs=pairs, questioned=questioned)


@router.post("/chunks/{chunk_id}/decide")
def decide(chunk_id: str, body: Decide, state: State, account: Admin) -> DecidedOut:
    """Accepts held pairs, leaves out others, takes out pairs of the chunk; until something was taught from it."""
    decided, job = deciding.decide(state, chunk_id, by=account.name, **body.model_dump())
    return DecidedOut(
        chunk=chunk_out(decided.chunk),
        pairs=[_pair_out(pair) for pair in decided.pairs],
        new_pictures=decided.new_pictures,
        sentence=decided.sentence,
        job=asdict(job) if job else None,
    )


@router.get("/aside/{pair_id}/thumbnail", response_class=Response, responses=_WEBP)
def thumbnail(pair_id: Annotated[int, Path(ge=1, le=_LARGEST)], state: State, account: Admin) -> Response:
    """Returns the small picture of a held or rejected pair; for admins, as nobody has let it in."""
    found = state.workspace.catalog.aside.named([pair_id])
    if not found:
        raise UnknownImage(f"No pair {pair_id} is kept.")
    data = state.workspace.blobs.aside_thumbnail(found[0].image_id)
    return Response(data, media_type="image/webp", headers={"Cache-Control": "private, max-age=3600"})


def _pair_out(pair: AsidePair) -> AsidePairOut:
    return AsidePairOut(**asdict(pair), thumb_url=f"/v1/aside/{pair.id}/thumbnail")
