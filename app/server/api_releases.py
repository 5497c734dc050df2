"""REST about releases beside promoting: where they come from, what two differ in, what people said of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Form, UploadFile
from fastapi.responses import FileResponse
from pydantic import Field

from app.feedback import shadow
from app.learning.difference import difference_between
from app.learning.release_words import pinned
from app.server.api_context import Admin, State
from app.server.api_models import Note, Strict
from app.server.packages import checked_sha256, packed, require_package
from app.server.uploads import receive

router = APIRouter(prefix="/v1")


class StartShadow(Strict):
    """`POST /v1/releases/{id}/shadow`: the share of live queries to ask it; the server's setting when not given."""

    share: float | None = Field(default=None, gt=0, le=1)


_PACKAGE: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}}}
}


@router.get("/lineage")
def lineage(state: State) -> dict[str, Any]:
    """Lists every release with its parent, and when it was live, by whom and why; newest first."""
    return {"releases": [asdict(node) for node in state.lineage()]}


@router.get("/releases/{release_id}/difference/{other_id}")
def difference(release_id: str, other_id: str, state: State) -> dict[str, Any]:
    """Says what a second release has that the first has not, and the other way round."""
    return asdict(difference_between(state.workspace, release_id, other_id))


@router.get("/releases/{release_id}/package", response_class=FileResponse, responses=_PACKAGE)
def package(release_id: str, state: State, account: Admin) -> FileResponse:
    """Returns a release as one file for another home; the header `X-Perennial-Sha256` is its checksum."""
    made = packed(state.workspace, release_id)
    headers = {"X-Perennial-Sha256": made.sha256}
    return FileResponse(made.path, filename=made.path.name, headers=headers, media_type="application/zip")


@router.post("/packages", status_code=202)
def add_package(
    file: UploadFile,
    state: State,
    account: Admin,
    sha256: Annotated[str, Form(max_length=80)] = "",
) -> dict[str, Any]:
    """Starts taking in a release of another home and returns the job; it is not live before somebody promotes it."""
    name = file.filename or "package"
    require_package(name)
    checked = checked_sha256(sha256)
    received = receive(file.file, name, state.workspace.home.inbox)
    return {"job": asdict(state.work.take_release(received, name=name, sha256=checked, by=account.name))}


@router.post("/releases/{release_id}/reject")
def reject(release_id: str, body: Note, state: State, account: Admin) -> dict[str, Any]:
    """Rejects a candidate with a note; promoting it then needs `force`."""
    return asdict(state.judge_release(release_id, "rejected", why=body.why, by=account.name))


@router.post("/releases/{release_id}/keep")
def keep(release_id: str, body: Note, state: State, account: Admin) -> dict[str, Any]:
    """Keeps a candidate for later, with a note; takes a rejection back."""
    return asdict(state.judge_release(release_id, "kept", why=body.why, by=account.name))


@router.get("/releases/{release_id}/shadow")
def shadow_report(release_id: str, state: State) -> dict[str, Any]:
    """Says how far a release's answers to live queries lay from the live ones, by language: means, never queries."""
    return asdict(state.shadowing.report(release_id))


@router.post("/releases/{release_id}/shadow")
def start_shadow(
    release_id: str, state: State, account: Admin, body: StartShadow | None = None
) -> dict[str, Any]:
    """Puts a candidate into the shadow: it is asked a share of the live queries, and nobody sees its answers."""
    share = body.share if body else None
    started = shadow.start(state.workspace, release_id, share=share, by=account.name)
    return asdict(state.shadowing.report(started.release))


@router.post("/releases/{release_id}/shadow/stop")
def stop_shadow(release_id: str, state: State, account: Admin, body: Note | None = None) -> dict[str, Any]:
    """Ends the shadow of a release; what it has shown is kept."""
    shadow.stop(state.workspace, release_id, by=account.name, why=body.why if body else "")
    return asdict(state.shadowing.report(release_id))


@router.post("/pin")
def pin(body: Note, state: State, account: Admin) -> dict[str, Any]:
    """Pins what is live: what passes waits, and promoting another version asks to unpin first."""
    return asdict(state.pin(why=body.why, by=account.name))


@router.post("/unpin")
def unpin(body: Note, state: State, account: Admin) -> dict[str, Any]:
    """Takes the pin away."""
    return asdict(state.unpin(why=body.why, by=account.name))


@router.get("/release-words")
def words(state: State) -> dict[str, Any]:
    """Lists what people said of releases, newest first, and the pin that holds what is live, if any."""
    holding = pinned(state.workspace)
    said = [asdict(word) for word in state.workspace.catalog.release_words.all()]
    return {"pinned": None if holding is None else asdict(holding), "words": said}
