"""Taking a chunk in: its pairs kept, its pictures searchable under the live version, its checks made; no teaching.

No torch is needed for it where the live version brings graphs.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

from app.desk.errors import ParentMoved
from app.desk.jobs import Stage, counted
from app.desk.troubles import OWN_ERRORS
from app.home import holding
from app.home.commits import CommitRecord
from app.home.enough import require_room
from app.home.workspace import Workspace
from app.learning import gallery, going_live
from app.learning.chunk_checks import judge_chunk
from app.learning.outcomes import AddOutcome, Tell, say_nothing
from app.learning.unstated import open_domain
from app.learning.untaught import known_to
from index.generation import Generation
from index.writing import MOST_SEGMENTS
from ingest.intake import IntakeOptions, ingest_source
from ingest.sentence import Sentence, phrase

logger = logging.getLogger(__name__)

_JOINING_MAY_FAIL: tuple[type[Exception], ...] = (*OWN_ERRORS, OSError, MemoryError)
_ROUNDED = 1.1  # what a store's pages take more than what they hold
_BYTES_A_PICTURE = 24_000  # thumbnail, features, vector and rows
_PATIENCE = 86_400.0  # seconds that an upload waits for others, of which there may be many
_LET_IN = 0.15  # seconds between parts in which one that waits, and looks ten times a second, takes its turn
_PROCESS_BYTES = 240 << 20  # of a process that takes pictures in, beside what it reads of the live release
ATTEMPTS = 5  # how often a commit is tried again when others commit in between


def add_chunk(
    workspace: Workspace,
    source: Path,
    options: IntakeOptions,
    *,
    by: str,
    progress: Tell = say_nothing,
) -> AddOutcome:
    """Takes a chunk in, makes its pictures searchable under the live encoder, and judges its pairs.

    A chunk that its checks hold is searchable all the same; its pairs teach nothing until somebody accepts it. Stages
    after `ingest` carry the chunk, because by then it is kept.

    Raises:
        IngestError: the upload as a whole cannot be used; nothing changed.
        NoRelease: the home has no live release to add pictures to.
    """
    _, live = going_live.live_but_for_its_index(workspace)
    going_live.require_newest(workspace, live.id, with_index=False)
    made_again = ""
    index = gallery.sound(workspace, live.generation)
    if index is None or index.lost:
        _, embedded = extend_gallery(workspace, why="what its index had lost", by=by, progress=progress)
        made_again = _made_again(index, workspace.catalog.gallery_size(), embedded)
    sooner = _Sooner(workspace, by, progress)
    report = ingest_source(
        source,
        catalog=workspace.catalog,
        blobs=workspace.blobs,
        options=replace(
            options, networks=tuple(workspace.settings.fetch_networks), learned=live.manifest.chunks
        ),
        progress=lambda done, total: progress(_read_so_far(done, total)),
        on_part=sooner,
        on_plan=lambda pictures, size: require_room(
            phrase("Taking these pictures in"),
            workspace.home.root,
            disk=round(_ROUNDED * size) + _BYTES_A_PICTURE * pictures,
            memory=_PROCESS_BYTES + workspace.releases.bytes_to_open(live),
        ),
        turn=partial(
            holding.intake,
            workspace.home,
            patience=_PATIENCE,
            waiting=lambda found: progress(_waits_for(found.pid)),
        ),
    )
    commit, embedded = finish(workspace, report.chunk_id, options, by=by, progress=progress)
    return AddOutcome(report, commit or sooner.commit, embedded + sooner.embedded, made_again)


def finish(
    workspace: Workspace,
    chunk: str,
    options: IntakeOptions,
    *,
    by: str,
    progress: Tell,
) -> tuple[CommitRecord | None, int]:
    """Does what is left to do of a chunk that is kept, and of parts of the same folder that were left undone.

    Returns and raises as `extend_gallery`.
    """

    def tell(stage: Stage) -> None:
        progress(replace(stage, details={**stage.details, "chunk": chunk}))

    _, live = going_live.live_but_for_its_index(workspace)
    unjudged = workspace.catalog.unjudged(chunk, live.manifest.chunks)
    opened = {one: None if options.domain else open_domain(workspace, live, one) for one in unjudged}
    why = f"chunk {chunk} ({workspace.catalog.chunk(chunk).name})"
    commit, embedded = extend_gallery(workspace, why=why, by=by, progress=tell)
    for one in unjudged:
        judge_chunk(workspace, one, tell, opened[one])
    try:
        _join_segments(workspace, by, progress)
    except _JOINING_MAY_FAIL as error:  # what was asked for is done
        logger.warning("parts of the index could not be joined: %s", error)
    return commit, embedded


def _join_segments(workspace: Workspace, by: str, progress: Tell) -> None:
    """Makes few segments of many, where pictures are searchable already and nobody waits for it."""
    commit, record = going_live.live_release(workspace)
    previous = workspace.open_generation(record.generation)
    if len(previous.portions) <= MOST_SEGMENTS:
        return
    progress(Stage("join", phrase("the pictures are searchable; parts of the index are joined")))
    made = gallery.joined(workspace, workspace.open_searcher(record.version), previous)
    why = f"{len(previous.portions)} parts of the index were joined"
    try:
        release = going_live.publish_pictures(workspace, record, made)
        workspace.releases.commit(release, parent=commit.number, reason="ingest", why=why, by=by)
    except ParentMoved:
        logger.info("another release went live while %s; the next upload joins those of that one", why)


class _Sooner:
    """Makes the pictures of a large folder searchable while the rest of it is read, whenever there are twice as many.

    So all that is written on the way is no more than twice the index of the end.
    """

    def __init__(self, workspace: Workspace, by: str, progress: Tell) -> None:
        self._workspace, self._by, self._progress = workspace, by, progress
        self._due = 1
        self.commit: CommitRecord | None = None
        self.embedded = 0

    def __call__(self, new_pictures: int) -> None:
        time.sleep(_LET_IN)
        if new_pictures < self._due:
            return
        self._due = 2 * new_pictures
        why = f"the first {new_pictures} pictures of a folder"
        try:
            made, embedded = extend_gallery(self._workspace, why=why, by=self._by, progress=self._progress)
            self.commit, self.embedded = made or self.commit, self.embedded + embedded
        except ParentMoved:  # the rest comes later anyway, and these with it
            logger.info("others went live meanwhile; %s will be searchable with the rest", why)


def extend_gallery(
    workspace: Workspace, *, why: str, by: str, progress: Tell = say_nothing, in_place: bool = False
) -> tuple[CommitRecord | None, int]:
    """Makes pictures that search does not know yet searchable: a new generation, the same version.

    The commit is None when search knows all pictures already; beside it, how many pictures were embedded. Only who is
    asked to mend lets a release before take the place of a damaged one (`in_place`).

    Raises:
        NoRelease: nothing is live.
        ReleaseDamaged: what went live last cannot be served.
        ParentMoved: other releases kept going live meanwhile.
    """
    embedded_images = 0
    for _ in range(ATTEMPTS):
        parent, record = going_live.live_but_for_its_index(workspace)
        if not in_place:
            going_live.require_newest(workspace, record.id, with_index=False)
        encoder = workspace.open_searcher(record.version)
        progress(Stage("embed", phrase("making the pictures searchable")))
        previous = gallery.sound(workspace, record.generation, progress)
        known = known_to(workspace, record)
        embedded = gallery.embed_gallery(
            workspace, encoder, previous=previous, tell=progress, known=known, version=record.version
        )
        embedded_images += embedded.images_embedded
        if previous is None or previous.lost:
            said = _made_again(previous, len(embedded.pictures), embedded.images_embedded)
            progress(Stage("embed", said))
        if embedded.generation == record.generation:
            return None, embedded_images
        release = going_live.publish_pictures(workspace, record, embedded)
        try:
            return workspace.releases.commit(
                release, parent=parent, reason="ingest", why=why, by=by
            ), embedded_images
        except ParentMoved:
            logger.info("another release went live while pictures were embedded; adding them to that one")
    raise ParentMoved(f"Other releases kept going live while {why} was being added. Try again.")


def _made_again(previous: Generation | None, pictures: int, embedded: int) -> Sentence:
    """Says what was lost of an index of so many pictures, of which some had to be embedded again."""
    lost = pictures if previous is None else previous.lost
    return phrase(
        "The index had lost {lost} of {all} vectors; they are made again: {kept} of what was kept of the pictures, "
        "{count} by embedding them again.",
        lost=lost,
        all=pictures,
        kept=max(0, lost - embedded),
        count=embedded,
    )


def _waits_for(pid: int) -> Stage:
    said = phrase(
        "Process {pid} is taking pictures into this home; this upload waits until it is done.", pid=str(pid)
    )
    return Stage("ingest", said)


def _read_so_far(done: int, total: int | None) -> Stage:
    if not total:
        return Stage("ingest", phrase("{count} pictures read", count=done), None, {"done": done})
    return counted("ingest", phrase("{count} of {all} pictures read", count=done, all=total), done, total)
