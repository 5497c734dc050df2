"""Carrying the pictures and published folders of a home into a bucket that several machines reach, and back.

Servers of the home go on answering meanwhile and follow within `poll_seconds`. What was left in the home stays as it
was, until somebody deletes it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from app.desk.errors import HomeDamaged, ReleaseDamaged, UpdateRunning, UsageProblem
from app.home import engines, holding, pruned
from app.home.catalog_move import require_rest
from app.home.commits import kept_at
from app.home.durable import FileSystem, fault
from app.home.folder import Home
from app.home.garbage import RESUMABLE
from app.home.published import Shelf
from app.home.shared import SharedFolders
from ingest.blobs import Blobs
from ingest.catalog import Catalog
from ingest.errors import StoreDamaged
from ingest.objects import MARK, Objects
from ingest.packs import Packs
from ingest.storage import Store

logger = logging.getLogger(__name__)

HERE = "home"
"""Says that pictures and published folders are to lie in the home's folder."""
DECIDED = "objects:decided"
"""The fault point just before everybody is sent to the new place."""
_KINDS = ("version", "generation", "release")
_LISTED = 1000  # keys at once
_READ = 8  # records at once, each a picture
_ROUNDS = 5


@dataclass(frozen=True, slots=True)
class ObjectsMoved:
    """Where pictures and published folders were carried."""

    objects: str  # the address of the bucket, or the path of the home
    records: int  # of pictures that were carried
    folders: int  # that are there now
    seconds: float
    left_out: tuple[str, ...] = ()  # folders that are damaged here, and stay here alone


def move_objects(home: Home, to: str) -> ObjectsMoved:
    """Carries pictures and published folders into the bucket at an address, or back where `to` is "home".

    Killed at any moment, it leaves them where they were, or in their new place; asking again finishes. Where they lie
    there already, what an upload stored meanwhile in the old place goes over.

    Raises:
        UsageProblem: they are in the home already, or the bucket is another home's.
        UpdateRunning: somebody updates this home, or takes something in.
        BadOption: it is no address of a bucket.
        ObjectsError: the bucket cannot be used; the sentence says why.
    """
    home.require_stores()
    started, said = time.monotonic(), engines.read(home.root)
    if to == HERE:
        if said.objects is None:
            raise UsageProblem("Pictures and releases lie in the home already.")
        records, folders = _bring_home(home, said)
        return ObjectsMoved(str(home.root), records, folders, time.monotonic() - started)
    objects = Objects(to)
    if said.objects is not None and said.objects != objects.address:
        raise UsageProblem(
            f"Pictures and releases lie in {said.objects}. Carry them back first: `perennial home move --objects home`."
        )
    if said.catalog is not None and not said.commits:
        raise UsageProblem(
            "The catalog lies in a database, and the commits in the home. Carry the catalog back and there again, "
            "which takes them along: `perennial home move --to sqlite`."
        )
    with home.open_catalog() as catalog:
        name = _claim(home, objects, said, catalog)
        shared = SharedFolders(home, objects, catalog.published, FileSystem())
        packs = Packs(objects, catalog.packs)
        records = _copy_new(home, packs)
        folders, left_out = _push_all(home, shared)
        if said.objects is None:
            for _ in range(_ROUNDS):
                more = _copy_last(home, catalog, packs, shared, objects.address, name)
                records += more
                if not more:
                    break
            else:
                raise UpdateRunning(
                    "Pictures came faster than they were carried. Nothing changed: try again when nobody uploads."
                )
        records += _copy_new(home, packs)  # of who had the home open when it was decided
    return ObjectsMoved(objects.address, records, folders, time.monotonic() - started, left_out)


def _copy_last(
    home: Home, catalog: Catalog, packs: Packs, shared: SharedFolders, address: str, name: str
) -> int:
    """Copies what came meanwhile; where nothing did, everybody is sent to the bucket. Returns how much came."""
    with holding.hold(home, holding.UPDATER, "moving pictures and releases"):
        require_rest(home)
        _push_all(home, shared)
        more = _copy_new(home, packs)
        if more:
            return more
        said = engines.read(home.root)
        if (said.catalog or home.catalog) != catalog.place:
            raise UsageProblem(
                "The catalog was carried to another place meanwhile. Nothing changed: try again."
            )
        if isinstance(catalog.place, str):
            # Both names stay: programs that have the home open know it by its own.
            claim_of(catalog.place, f"{home.own_identity}\n{home.identity_of(name)}")
        fault(DECIDED)
        engines.write(home.root, replace(said, objects=address, home=name))
        return 0


def claim_of(place: str, owner: str) -> None:
    """Makes somebody the owner of a catalog in a database."""
    from ingest.postgres import claim  # loads what connects to PostgreSQL

    claim(place, owner)


def _bring_home(home: Home, said: engines.Engines) -> tuple[int, int]:
    objects = Objects(str(said.objects))
    require_rest(home)  # before anything is copied
    # Opened by nobody in particular: asked again after it was cut off, it is this machine's alone already.
    with Catalog.open(home.catalog_place) as catalog, Store.open(home.blobs) as store:
        packs, records, folders = Packs(objects, catalog.packs), 0, 0
        shared = SharedFolders(home, objects, catalog.published, FileSystem())
        records += _copy(packs, store)
        with holding.hold(home, holding.UPDATER, "moving pictures and releases"):
            require_rest(home)
            if isinstance(catalog.place, str):
                claim_of(catalog.place, home.own_identity)  # what another machine writes now is refused
            records += _copy(packs, store)
            if _delete_others(packs, store):
                store.compact()  # what was removed for good meanwhile would lie on in the file
            _bring_uploads(home, catalog, objects)
            for shelf in _shelves(home, shared):
                for published_id in shelf.ids():
                    shelf.bring(published_id)
                    pruned.keep(home.pruned, published_id, shared.rows.pruned(published_id))
                    folders += 1
            fault(DECIDED)
            engines.write(home.root, replace(engines.read(home.root), objects=None, home=""))
    # What says where things lie stays, for servers that have not followed yet.
    objects.set_mark(json.dumps({"home": said.home, "left": True}).encode())
    return records, folders


def _bring_uploads(home: Home, catalog: Catalog, objects: Objects) -> None:
    """Fetches what waits to be taken in, and came to other machines."""
    for job in catalog.jobs():
        kept, source = job.arguments.get("kept"), home.staging / job.id / str(job.arguments.get("source"))
        if job.state in RESUMABLE and kept and not source.exists() and objects.size(kept) is not None:
            source.parent.mkdir(exist_ok=True)
            fresh = source.with_name(f".{source.name}.{uuid.uuid4().hex}")
            objects.fetch(kept, fresh)
            fresh.rename(source)


def _claim(home: Home, objects: Objects, said: engines.Engines, catalog: Catalog) -> str:
    """Makes a bucket a home's; returns what machines call the home, which is the same when it is asked again.

    Raises:
        UsageProblem: it is another home's, or does not look like this one's any more.
    """
    found, name = home_in(objects), said.home
    if said.objects is not None and found != name:
        raise UsageProblem(
            f"{objects.address} does not say any more that it is this home's ({MARK}). Is its disk there, and is it "
            "the same bucket? Nothing was changed."
        )
    if not name:
        commits = kept_at(home.commits_place, home, FileSystem())
        first = b"".join(commits.read_many(commits.numbers()[:1]).values())
        name = hashlib.sha256(home.own_identity.encode() + first).hexdigest()[:32]
    if found not in ("", name):
        raise UsageProblem(
            f"{objects.address} holds another home's pictures. Choose another folder of the bucket."
        )
    if not found:
        catalog.packs.clear()  # of a bucket that was left
        objects.set_mark(json.dumps({"home": name}).encode())
    return name


def home_in(objects: Objects) -> str:
    """Returns what machines call the home whose pictures lie in a bucket; empty where none do, or they were left.

    Raises:
        ObjectsUnreachable: the bucket does not answer.
        HomeDamaged: what says it cannot be read.
    """
    mark = objects.mark()
    try:
        facts = {"left": True} if mark is None else json.loads(mark)
        return "" if facts.get("left") else str(facts["home"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HomeDamaged(f"{MARK} in {objects.address} does not say whose it is ({error!r}).") from error


def _copy_new(home: Home, packs: Packs) -> int:
    with Store.open(home.blobs) as store:
        return _copy(store, packs)


def _copy(source: Store | Packs, target: Blobs) -> int:
    """Copies the records that another place lacks; returns how many."""
    return target.put_many(_missing(source, target))


def _missing(source: Store | Packs, target: Blobs) -> Iterator[tuple[bytes, bytes]]:
    for some in _grouped(source.keys(), _LISTED):
        there = target.contains_many(some)
        missing = [key for key, is_there in zip(some, there, strict=True) if not is_there]
        for few in _grouped(iter(missing), _READ):
            try:
                values = source.get_many(few)
            except StoreDamaged:
                values = [_read(source, key) for key in few]
            yield from ((key, value) for key, value in zip(few, values, strict=True) if value is not None)


def _read(source: Store | Packs, key: bytes) -> bytes | None:
    try:
        return source.get(key)
    except StoreDamaged as error:  # `doctor` says which; the others go over
        logger.warning("left where it lies: %s", error)
        return None


def _delete_others(packs: Packs, store: Store) -> int:
    """Deletes what was left in the home, and deleted since from the bucket; returns how many records that was."""
    count = 0
    for some in _grouped(store.keys(), _LISTED):
        there = packs.contains_many(some)
        count += store.delete_many(key for key, is_there in zip(some, there, strict=True) if not is_there)
    return count


def _grouped(keys: Iterator[bytes], most: int) -> Iterator[list[bytes]]:
    while some := list(islice(keys, most)):
        yield some


def _push_all(home: Home, shared: SharedFolders) -> tuple[int, tuple[str, ...]]:
    """Pushes what is not published yet; returns how many folders are, and which are damaged here."""
    there = set(shared.rows.manifests())
    damaged = []
    for shelf in _shelves(home):
        for published_id in shelf.ids_here():
            if published_id in there:
                continue
            try:
                shared.push(shelf.folder / published_id)
            except ReleaseDamaged as error:
                logger.warning("%s", error)
                damaged.append(published_id)
                continue
            there.add(published_id)
            mark = home.pruned / f"{published_id}.json"
            if mark.exists():
                shared.rows.mark_pruned(published_id, mark.read_bytes())
    return len(there), tuple(damaged)


def _shelves(home: Home, shared: SharedFolders | None = None) -> list[Shelf]:
    places: tuple[Path, ...] = (home.versions, home.generations, home.releases)
    return [
        Shelf(place, kind, FileSystem(), lambda: shared) for kind, place in zip(_KINDS, places, strict=True)
    ]
