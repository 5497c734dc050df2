"""The verb that says where the parts of a home lie: home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from app.commands.options import argument, option
from app.commands.terminal import HomeOption, JsonOption, settings_for, show
from app.desk.errors import UsageProblem

if TYPE_CHECKING:
    from app.home.catalog_move import Moved
    from app.home.objects_move import ObjectsMoved
    from app.home.settings import Settings
    from app.learning.index_move import IndexCarried


def home_(
    asked: Annotated[
        Literal["move", "join"],
        argument(
            "What to do: `move` parts of a home, or `join` one that lies where this machine reaches it.",
            "move|join",
        ),
    ],
    to: Annotated[
        str | None,
        option(
            "--to",
            says="Where the catalog lies: postgresql://user@host/database, whose password is in PGPASSWORD or "
            "~/.pgpass; `sqlite`: in the home.",
        ),
    ] = None,
    objects: Annotated[
        str | None,
        option(
            "--objects",
            says="Where pictures and releases lie: s3://bucket/folder, gs://…, az://… or file:///folder; `home`: in "
            "the home.",
        ),
    ] = None,
    index: Annotated[
        str | None,
        option(
            "--index",
            says="What searches pictures: `pgvector`, beside a catalog in PostgreSQL; a Milvus, "
            "http://host:19530/name; `home`: each machine by itself.",
        ),
    ] = None,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Move parts of a home to engines, or join one.

    The catalog lies in PostgreSQL then, which may search the index too, pictures and releases in a bucket; or they come
    back. Servers of the home go on answering and follow by themselves; writing waits until it is done.
    """
    settings = settings_for(home)
    if asked == "join":
        _join(settings.home, to, objects, index, is_json=is_json)
        return
    if to is None and objects is None and index is None:
        raise UsageProblem(
            "Say what is to be moved: `--to` the catalog, `--objects` pictures and releases, `--index` what searches."
        )
    from app.home.catalog_move import move_catalog
    from app.home.folder import Home

    opened = Home.open(settings.home)
    moved = None if to is None else move_catalog(opened, to)
    carried = None
    if objects is not None:
        from app.home.objects_move import move_objects

        carried = move_objects(opened, objects)
    searched = None if index is None else _move_index(settings, index)
    said = (*_said_of_catalog(moved), *_said_of_objects(carried), *_said_of_index(searched))
    show(is_json, searched or carried or moved, *said)


def _move_index(settings: Settings, index: str) -> IndexCarried:
    from app.home.workspace import Workspace
    from app.learning.index_move import move_index

    with Workspace.open(settings) as workspace:
        return move_index(workspace, index)


def _said_of_index(done: IndexCarried | None) -> Iterator[str]:
    if done is None:
        return
    if done.index == "home":
        yield "Each machine searches the index by itself now. What another engine had of it stays there, unused."
        return
    who = "The database" if done.index == "pgvector" else f"Milvus ({done.index})"
    yield (
        f"{who} searches the index of {done.release} now, and of what follows: {done.vectors:,} vectors were "
        f"copied, in {done.seconds:.0f} s. Below 10,000 pictures each machine goes on searching by itself."
    )


def _said_of_catalog(done: Moved | None) -> Iterator[str]:
    if done is None:
        return
    if done.left == done.catalog:
        said = f"The catalog in {done.catalog} is that of this home now."
        if done.was_of:
            said += f" It was that of the home at {done.was_of}, which cannot write to it any more."
        yield said
        return
    yield f"The catalog lies in {done.catalog} now: {done.rows:,} rows, each compared, in {done.seconds:.0f} s."
    yield f"What was in {done.left} stays there unused, with what is removed for good later; delete it when you like."


def _said_of_objects(done: ObjectsMoved | None) -> Iterator[str]:
    if done is None:
        return
    yield (
        f"Pictures and releases lie in {done.objects} now: {done.records:,} records and {done.folders:,} folders, in "
        f"{done.seconds:.0f} s."
    )
    if done.left_out:
        yield f"Damaged here, and left here alone: {', '.join(done.left_out)}; `perennial doctor` says more."
    yield "What was there before stays, unused, with what is removed for good later; delete it when you like."


def _join(root: Path, catalog: str | None, objects: str | None, index: str | None, *, is_json: bool) -> None:
    if catalog is None or objects is None:
        raise UsageProblem(
            "Say where the home lies: `perennial home join --to postgresql://user@host/database --objects "
            "s3://bucket/folder`."
        )
    from app.home.folder import home_option
    from app.home.joining import join

    done = join(root, catalog, objects, index)
    show(
        is_json,
        done,
        f"{done.home} has a part in the home whose catalog is {done.catalog}; "
        + (f"{done.release} is live." if done.release else "nothing is live yet."),
        f"Next: `perennial serve{home_option(root)}`.",
    )
