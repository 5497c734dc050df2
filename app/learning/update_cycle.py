"""The story of Perennial in one file: take a chunk, train, measure, gate, embed, index, release, commit.

Search never waits for any of this: readers look at immutable folders, and what is live changes in one step at the very
end (`ReleaseStore.commit`). An update's commit names the commit it was judged against; when another one came first, the
candidate is judged and embedded again, against what is live by then, and taught again when that is another version.
"""

from __future__ import annotations

import logging
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from app.desk.errors import ChunkHeld, ParentMoved
from app.desk.jobs import Stage, UpdateRequest
from app.home.commits import CommitRecord
from app.home.enough import require_room
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import gallery, going_live, lessons, publishing
from app.learning.chunk_checks import judge_chunk
from app.learning.cross_fitting import examine
from app.learning.forecast import memory_needed
from app.learning.judging import Taught, judge_taught
from app.learning.outcomes import Tell, UpdateOutcome, committing
from app.learning.release_words import pin_sentence, pinned
from app.learning.standing import require_teachable
from app.learning.training import CHECKPOINTS, learn, training_json
from app.learning.untaught import Learned, known_to
from ingest.records import ChunkRecord
from ingest.sentence import joined, phrase
from ingest.standing import WITHDRAWN
from model_updates.encoder import Encoder
from model_updates.gate.examined import CrossFitted
from model_updates.gate.report import GateReport, Verdict

logger = logging.getLogger(__name__)

ATTEMPTS = 5  # how often a commit is tried again when others commit in between


def update(workspace: Workspace, request: UpdateRequest, *, scratch: Path, progress: Tell) -> UpdateOutcome:
    """Runs one update from chunk to commit.

    The same `scratch` folder, which holds the checkpoints, resumes an interrupted update.

    Raises:
        UpdateRunning: another update holds the lock.
        NoSpace: the disk has less room than the update may need.
        ReleaseDamaged: what went live last cannot be served.
        UnknownChunk, UnknownStrategy, BadStrategyOption, NothingToLearn, ForeignTokenizer, TrainingDiverged: nothing
            changed.
    """
    started = time.monotonic()
    with workspace.releases.updater_lock(f"updating on chunk {request.chunk}"):
        _require_judged(workspace, request.chunk, progress)
        taught: _Taught | None = None
        for _ in range(2 * ATTEMPTS):
            live, record = going_live.live_release(workspace)
            going_live.require_newest(workspace, record.id)
            if taught is None or taught.lesson.parent.version != record.version:
                if taught is not None:  # what went live may know what the candidate does not
                    message = phrase("another version went live meanwhile; teaching that one instead")
                    progress(Stage("features", message))
                taught = _teach(workspace, request, record, scratch, progress)
                continue  # what is live may have changed again while this was taught
            outcome = _bring_live(workspace, request, taught, live, record, progress)
            if outcome is not None:
                shutil.rmtree(scratch / CHECKPOINTS, ignore_errors=True)
                return replace(outcome, seconds=round(time.monotonic() - started, 1))
        raise ParentMoved(
            "Other releases kept going live while this chunk was taught. Start the update again."
        )


def _require_judged(workspace: Workspace, asked: str, progress: Tell) -> None:
    """Judges a chunk whose checks were broken off; what holds it refuses it when the lesson is planned."""
    chunk = workspace.catalog.chunk(asked).id
    _, live = going_live.live_release(workspace)
    if chunk in workspace.catalog.unjudged(chunk, live.manifest.chunks):
        judge_chunk(workspace, chunk, progress)


def _bring_live(
    workspace: Workspace,
    request: UpdateRequest,
    taught: _Taught,
    live: CommitRecord,
    record: ReleaseRecord,
    progress: Tell,
) -> UpdateOutcome | None:
    """Judges a candidate and makes it live if it may be; None when another release went live meanwhile."""
    outcome = _judge_and_release(workspace, taught, live, record, progress)
    if outcome.verdict != "promote" or not request.promote or outcome.release is None:
        return outcome
    pin = pinned(workspace)
    if pin is not None:
        waits = phrase("It waits, not live: {why}", why=pin_sentence(pin))
        return replace(outcome, sentence=joined((outcome.sentence, waits)))
    try:
        for chunk in _stood_beside(workspace, taught.lesson):
            require_teachable(chunk)
    except ChunkHeld as gone:  # a person said so while it was taught
        waits = phrase("It waits, not live: {why}", why=str(gone))
        return replace(outcome, sentence=joined((outcome.sentence, waits)))
    progress(committing(asdict(outcome), live))
    why = request.why or f"{taught.lesson.strategy.name} on chunk {taught.lesson.chunk}"
    try:
        commit = workspace.releases.commit(
            outcome.release, parent=live.number, reason="promote", why=why, by=request.by
        )
    except ParentMoved:
        progress(Stage("gate", phrase("another release went live meanwhile; judging against that one")))
        return None
    return replace(outcome, commit=commit.number)


def _stood_beside(workspace: Workspace, lesson: lessons.Lesson) -> list[ChunkRecord]:
    """Returns the chunk of a lesson, and those beside it that were withdrawn since."""
    every = workspace.catalog.standings()
    withdrawn = [one.id for one in every if one.standing == WITHDRAWN and one.id in lesson.beside]
    return [workspace.catalog.chunk(one) for one in (lesson.chunk, *withdrawn)]


def teach_onto(
    workspace: Workspace,
    request: UpdateRequest,
    record: ReleaseRecord,
    live: CommitRecord,
    *,
    scratch: Path,
    progress: Tell,
) -> UpdateOutcome:
    """Teaches a chunk to a release that need not be live, and publishes what passes; nothing goes live.

    The caller holds the updater lock. `record` is what is taught, and judged against; `live` the commit that was
    current when this began.
    """
    taught = _teach(workspace, request, record, scratch, progress)
    outcome = _judge_and_release(workspace, taught, live, record, progress)
    shutil.rmtree(scratch / CHECKPOINTS, ignore_errors=True)
    return outcome


@dataclass(frozen=True)
class _Taught:
    """A candidate, and what it was made from; `forwards`: pictures it had embedded when it was trained."""

    lesson: lessons.Lesson
    candidate: Encoder
    outcome: UpdateOutcome
    forwards: int
    copies: list[CrossFitted] = field(default_factory=list)

    def examined(self, workspace: Workspace, progress: Tell) -> list[CrossFitted]:
        """Returns what copies found of all pairs; who loses a race is judged again by what they found."""
        if not self.copies:
            self.copies.extend(examine(workspace, self.lesson, progress))
        return self.copies


def _teach(
    workspace: Workspace, request: UpdateRequest, record: ReleaseRecord, scratch: Path, progress: Tell
) -> _Taught:
    """Trains a candidate from a release's version and publishes it as a version."""
    require_room(
        phrase("This update"),
        workspace.home.root,
        disk=publishing.bytes_needed(workspace, record),
        memory=memory_needed(workspace, request, record),
    )
    progress(Stage("plan", phrase("looking at what the chunk brings and what is known of it")))
    lesson = lessons.plan(workspace, request, record)
    trained = learn(workspace, lesson, scratch=scratch, progress=progress)
    version = publishing.publish_candidate(workspace, lesson, trained, record)
    outcome = UpdateOutcome(
        version=version, strategy=lesson.strategy.name, training=training_json(trained.report)
    )
    return _Taught(lesson, trained.encoder, outcome, trained.encoder.image_forwards)


def _judge_and_release(
    workspace: Workspace, taught: _Taught, live: CommitRecord, record: ReleaseRecord, progress: Tell
) -> UpdateOutcome:
    """Gates the candidate against what is live now; embeds the gallery and publishes a release unless rejected."""
    lesson, candidate, outcome = taught.lesson, taught.candidate, taught.outcome
    told = Taught(
        lesson.chunk,
        lesson.taught,
        tuple(lesson.languages_after),
        outcome.version,
        lesson.strategy.name,
    )
    gate, results = judge_taught(
        workspace,
        told,
        candidate,
        record,
        workspace.settings.gate,
        progress,
        lambda: taught.examined(workspace, progress),
    )
    outcome = replace(outcome, verdict=str(gate.verdict), gate=gate.to_json(), judged_against=record.version)
    _note_standing(workspace, lesson, record, gate)
    if outcome.verdict == "reject":
        return replace(
            outcome,
            sentence=phrase(
                "Rejected, {release} stays live: {why}", release=record.id, why=gate.first_reason
            ),
        )
    previous = workspace.open_generation(record.generation)
    progress(
        Stage("embed", phrase("{count} pictures in the gallery", count=len(workspace.catalog.gallery_ids())))
    )
    known = Learned(known_to(workspace, record).chunks | {lesson.chunk}, lesson.languages_after)
    embedded = gallery.embed_gallery(
        workspace,
        candidate,
        previous=previous,
        tell=progress,
        since=taught.forwards,
        known=known,
        version=outcome.version,
    )
    judged = publishing.JudgedCandidate(lesson, candidate, outcome, gate, results, against=live)
    return publishing.publish_taught(workspace, judged, record, embedded, progress)


def _note_standing(
    workspace: Workspace, lesson: lessons.Lesson, record: ReleaseRecord, gate: GateReport
) -> None:
    """Writes into the catalog what a verdict says of the chunk; what a person said of it stands."""
    chunk = workspace.catalog.chunk(lesson.chunk)
    if gate.verdict is Verdict.REJECT:
        if chunk.standing == "new" and chunk.id not in record.manifest.chunks:
            workspace.catalog.set_standing(chunk.id, "rejected", by="gate", why=gate.first_reason)
    elif gate.verdict is Verdict.PROMOTE and chunk.standing == "rejected":
        why = f"a later update of it passed the gate against {record.id}"
        workspace.catalog.set_standing(chunk.id, "new", by="gate", why=why)
