"""What an update writes: versions and their releases, each whole or not at all; nothing goes live here."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from app.desk.jobs import Stage
from app.home.commits import CommitRecord, now
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import gallery
from app.learning.gallery import PublishedGeneration
from app.learning.lessons import Lesson
from app.learning.made import made_of
from app.learning.outcomes import Tell, UpdateOutcome
from app.learning.quality import summaries
from app.learning.training import Trained, device_for, training_json
from ingest.sentence import joined, phrase
from model_updates.encoder import Encoder
from model_updates.gate.report import GateReport
from model_updates.measurement import Results
from model_updates.strategy import State
from model_updates.versions import write_version

SPARE_BYTES = 256 << 20


def bytes_needed(workspace: Workspace, record: ReleaseRecord) -> int:
    """Returns what an update may write: version and index twice (staged, checkpointed), new features, some air."""
    folders = (
        workspace.releases.version_folder(record.version),
        workspace.releases.generation_folder(record.generation),
    )
    published = sum(path.stat().st_size for folder in folders for path in folder.iterdir())
    features = 4 * workspace.open_encoder(record.version).dim * len(workspace.catalog.gallery_ids())
    return 2 * published + 2 * features + SPARE_BYTES


def version_facts(
    workspace: Workspace, *, strategy: str, languages: list[str], parent: str
) -> dict[str, Any]:
    """Returns what the manifest of every version but the first says of where it comes from."""
    root = workspace.root_of(parent)
    return {"strategy": strategy, "languages": languages, "parent": parent, "root": root, "created": now()}


def publish_version(
    workspace: Workspace,
    encoder: Encoder,
    facts: dict[str, Any],
    states: Mapping[str, State],
    parent: str | None = None,
) -> str:
    """Writes an encoder, with what its strategies carry, as a version, and returns its id.

    `facts` are `version_facts` and what else its manifest says, `states` are by strategy. Of `parent`, a version, those
    files are taken that are the same.
    """
    staged = workspace.home.staging / f"version-{time.time_ns()}"
    before = None if parent is None else workspace.releases.version_folder(parent)
    try:
        write_version(staged, encoder, facts, states, parent=before, portable=True)
        return workspace.releases.publish_version(staged)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def publish_candidate(workspace: Workspace, lesson: Lesson, trained: Trained, record: ReleaseRecord) -> str:
    """Writes what an update has trained as a version of its own, whatever becomes of it, and returns its id."""
    facts = version_facts(
        workspace, strategy=lesson.strategy.name, languages=lesson.languages_after, parent=record.version
    )
    facts |= {
        "options": lesson.options,
        "seed": lesson.seed,
        "chunk": lesson.chunk,
        "training": training_json(trained.report),
        "made": asdict(made_of(lesson, device_for(workspace.settings.device), trained.processes)),
    }
    state = replace(lesson.strategy.carried(), update=lesson.number)
    return publish_version(workspace, trained.encoder, facts, {lesson.strategy.name: state}, record.version)


@dataclass(frozen=True)
class JudgedCandidate:
    """A candidate that was not rejected."""

    lesson: Lesson  # what it was taught
    candidate: Encoder  # its encoder
    outcome: UpdateOutcome  # so far, with version and verdict
    gate: GateReport  # the report
    results: Results  # what it reaches on each slice
    against: CommitRecord  # the commit that was live when it was judged


def publish_taught(
    workspace: Workspace,
    judged: JudgedCandidate,
    record: ReleaseRecord,
    embedded: PublishedGeneration,
    progress: Tell,
) -> UpdateOutcome:
    """Publishes a candidate's release with its report, once its index is sound; returns the outcome with its id."""
    lesson, outcome, gate = judged.lesson, judged.outcome, judged.gate
    progress(Stage("index", phrase("checking generation {generation}", generation=embedded.generation)))
    figures = gallery.require_published(workspace, embedded, judged.candidate, record)
    mode = embedded.mode if embedded.moved else "none"
    progress(Stage("release", phrase("publishing the release")))
    release = workspace.releases.publish_release(
        record.manifest.successor(
            record.id,
            version=outcome.version,
            generation=embedded.generation,
            languages=tuple(lesson.languages_after),
            chunks=(*record.manifest.chunks, lesson.chunk),
            strategy=lesson.strategy.name,
            options=lesson.options,
            seed=lesson.seed,
            mode=mode,
            images_embedded=embedded.images_embedded,
            integrity=figures,
            judged_against=judged.against.number,
            gate=gate.to_json(),
            training=outcome.training,
            slices=summaries(judged.results),
            created=now(),
        ),
        {"report.md": gate.markdown().encode()},
    )
    why = gate.first_reason
    said = (
        phrase("Passed: {why}", why=why)
        if outcome.verdict == "promote"
        else phrase("Needs a person's review: {why}", why=why)
    )
    embedding = phrase("{count} pictures were embedded again.", count=embedded.images_embedded)
    return replace(
        outcome,
        release=release,
        mode=mode,
        images_embedded=embedded.images_embedded,
        sentence=joined((said, embedding)),
    )
