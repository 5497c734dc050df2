"""The verb that shows where a home stands: status."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.commands.terminal import HomeOption, JsonOption, settings_for, show
from app.desk.errors import ReleaseDamaged

if TYPE_CHECKING:
    from pathlib import Path

    from app.home.lock import LockHolder
    from app.home.settings import Settings
    from app.home.store import ReleaseStore
    from ingest.records import ChunkRecord, JobRecord

JOBS_SHOWN = 10


@dataclass(frozen=True)
class _Standing:
    """Where a home stands.

    Attributes:
        root: of the home.
        live: what answers, if anything does.
        counts: of what there is, by name.
        holder: who updates at this moment, if anybody.
        interrupted: jobs whose process was found dead just now.
        jobs: the latest.
        chunks: all.
        used_bytes: of the home.
        free_bytes: of its disk.
        damaged: what cannot be trusted, a sentence each; None where nobody asked.
    """

    root: Path
    live: dict[str, Any] | None
    counts: dict[str, int]
    holder: LockHolder | None
    interrupted: list[JobRecord]
    jobs: list[JobRecord]
    chunks: list[ChunkRecord]
    used_bytes: int
    free_bytes: int
    damaged: list[str] | None


def status(
    verify: Annotated[bool, typer.Option("--verify", help="Read every byte of every release too.")] = False,
    home: HomeOption = None,
    is_json: JsonOption = False,
) -> None:
    """Show what is live, what it knows, the jobs, and the disk."""
    from app.words.messages import plain

    found = _standing(settings_for(home), verify=verify)
    show(is_json, _document(found), *map(plain, _lines(found)), *_tables(found))


def _standing(settings: Settings, *, verify: bool) -> _Standing:
    from app.home import durable
    from app.home.folder import Home
    from app.home.store import ReleaseStore
    from app.jobs import worker
    from ingest.catalog import Catalog

    place = Home.open(settings.home).require_stores()
    interrupted = worker.recover(settings)
    store = ReleaseStore(place)
    with Catalog.open(place.catalog) as catalog:
        jobs = catalog.jobs(limit=JOBS_SHOWN)
        chunks = catalog.chunks()
        counts = {
            "gallery": len(catalog.gallery_ids()),
            "pairs": sum(catalog.languages().values()),
            "chunks": len(chunks),
            "releases": len(store.releases()),
        }
    return _Standing(
        root=place.root,
        live=_live(store),
        counts=counts,
        holder=store.lock_holder(),
        interrupted=interrupted,
        jobs=jobs,
        chunks=chunks,
        used_bytes=sum(path.stat().st_blocks * 512 for path in place.root.rglob("*") if path.is_file()),
        free_bytes=durable.free_bytes(place.root),
        damaged=_damaged(store) if verify else None,
    )


def _document(found: _Standing) -> dict[str, Any]:
    document = {
        "home": found.root,
        "live": found.live,
        "counts": found.counts,
        "updating": asdict(found.holder) if found.holder else None,
        "interrupted_now": [job.id for job in found.interrupted],
        "jobs": [asdict(job) for job in found.jobs],
        "chunks": [
            {"id": one.id, "name": one.name, "pairs": one.pairs, "images": one.images}
            | {"standing": one.standing, "measures": one.measures, "why": one.standing_why}
            for one in found.chunks
        ],
        "disk": {"used_bytes": found.used_bytes, "free_bytes": found.free_bytes},
    }
    return document if found.damaged is None else document | {"damaged": found.damaged}


def _lines(found: _Standing) -> list[str]:
    from app.words.messages import size

    lines = [f"Home {found.root}", *_live_lines(found.live)]
    if found.damaged is not None:
        lines += found.damaged or ["Every byte of every release is as it was written."]
    lines.append(", ".join(f"{count} {name}" for name, count in found.counts.items()) + ".")
    if found.holder:
        since = f"since {found.holder.since} ({found.holder.what})"
        lines.append(f"Process {found.holder.pid} holds the updater lock {since}.")
    lines.append(f"Disk: {size(found.used_bytes)} used, {size(found.free_bytes)} free.")
    return lines


def _tables(found: _Standing) -> list[Any]:
    from app.desk.releases import SliceSummary
    from app.words.messages import slices_table

    recall = []
    if found.live and found.live["slices"]:
        measured = [SliceSummary.from_json(part) for part in found.live["slices"]]
        recall = [slices_table(measured, title=f"Recall of {found.live['release']} in percent")]
    return [*recall, *chunk_and_job_tables(found.chunks, found.jobs)]


def chunk_and_job_tables(chunks: Sequence[ChunkRecord], jobs: Sequence[JobRecord]) -> list[Any]:
    """Returns a table of chunks and one of jobs; neither where there are none."""
    from app.words.messages import table

    tables = []
    if chunks:
        header = ("chunk", "name", "pairs", "pictures", "languages", "standing")
        tables.append(table(header, [_chunk_row(one) for one in chunks]))
    if jobs:
        rows = [
            (job.id, job.kind, job.state, job.created[:19], job.error or job.progress.get("message", ""))
            for job in jobs
        ]
        tables.append(table(("job", "kind", "state", "created", "about"), rows))
    return tables


def _chunk_row(one: ChunkRecord) -> tuple[object, ...]:
    standing = one.standing + (", measures" if one.measures else "")
    return one.id, one.name, one.pairs, one.images, ", ".join(one.languages), standing


def _damaged(store: ReleaseStore) -> list[str]:
    """What cannot be trusted of all releases, a sentence each."""
    found = []
    for record in store.releases():
        try:
            store.verify_release(record.id)
        except ReleaseDamaged as error:
            found.append(f"{record.id}: {error.message}")
    return found


def _live(store: ReleaseStore) -> dict[str, Any] | None:
    """What is live, and the damaged commits above it that are passed over."""
    standing = store.standing()
    skipped = [asdict(commit) for commit in standing.skipped]
    if standing.commit is None:
        return {"release": None, "skipped": skipped, "slices": [], "languages": []} if skipped else None
    record = store.release(standing.commit.release)
    return {
        "release": record.id,
        "commit": standing.commit.number,
        "since": standing.commit.time,
        "by": standing.commit.by,
        "why": standing.commit.why,
        "version": record.version,
        "generation": record.generation,
        "languages": list(record.manifest.languages),
        "slices": [part.to_json() for part in record.manifest.slices],
        "skipped": skipped,
    }


def _live_lines(live: dict[str, Any] | None) -> list[str]:
    if live is None:
        return ["Nothing is live yet. Run `python -m app init`."]
    damaged = [f"Commit {commit['number']} is skipped: {commit['why']}" for commit in live["skipped"]]
    if live["release"] is None:
        return [*damaged, "Nothing released here can be trusted."]
    return [
        *damaged,
        f"Live: {live['release']} since {live['since']}, "
        f"commit {live['commit']} by {live['by']}: {live['why']}",
        f"Languages: {', '.join(live['languages'])}",
    ]
