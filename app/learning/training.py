"""Training a candidate on a lesson, with everything a strategy may ask for."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from app.desk.jobs import Stage, counted
from app.home.store import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.lessons import Lesson
from app.learning.outcomes import Tell
from app.learning.pairs import earlier_pairs, known_pairs, reference_pairs
from ingest.sentence import phrase
from model_updates.batches import gather
from model_updates.encoder import Encoder
from model_updates.pairs import TrainingPair, UpdateData
from model_updates.progress import TrainingProgress
from model_updates.strategy import UpdateContext
from model_updates.trainer import TrainingReport, run_update

CHECKPOINTS = "checkpoints"


def learn(
    workspace: Workspace, lesson: Lesson, *, scratch: Path, progress: Tell
) -> tuple[Encoder, TrainingReport]:
    """Trains a copy of the live encoder on a lesson; checkpoints in `scratch` make an interrupted one go on."""
    candidate = workspace.open_encoder(lesson.parent.version).copy().to(_device(workspace.settings.device))
    context = update_context(
        workspace,
        lesson.parent,
        candidate,
        lesson.train,
        lesson.validation,
        lesson.known_domains,
        seed=lesson.seed,
        number=lesson.number,
    )

    def data(context: UpdateContext) -> UpdateData:
        said = phrase(
            "{count} pairs to learn from, {validation} to validate",
            count=len(lesson.train),
            validation=len(lesson.validation),
        )
        progress(Stage("features", said))
        return gather(
            lesson.train,
            lesson.validation,
            strategy=lesson.strategy,
            context=context,
            load_image=workspace.load_image,
            cache=workspace.features,
            progress=lambda done, total: progress(counted("features", said, done, total)),
        )

    report = run_update(
        lesson.strategy,
        context,
        data,
        checkpoints=scratch / CHECKPOINTS,
        progress=lambda step: progress(_as_stage(step)),
    )
    return candidate.to("cpu"), report


def update_context(
    workspace: Workspace,
    parent: ReleaseRecord,
    encoder: Encoder,
    train: Sequence[TrainingPair],
    validation: Sequence[TrainingPair],
    domains: frozenset[str],
    *,
    seed: int = 0,
    number: int = 1,
) -> UpdateContext:
    """Returns what a strategy may look at besides its batches.

    `encoder` is the candidate, a copy that may change, or the version itself for a strategy that only foresees.
    `domains` are those of the chunk that it knows; `number` is that of the update in its line, from 1.
    """
    root = workspace.root_of(parent.version)
    return UpdateContext(
        encoder=encoder,
        pairs=train,
        learned_languages=frozenset(parent.manifest.languages),
        open_anchor=lambda: workspace.open_encoder(root),
        open_previous=lambda: workspace.open_encoder(parent.version),
        seed=seed,
        learned_domains=domains,
        update_number=number,
        load_image=workspace.load_image,
        open_earlier=lambda: earlier_pairs(workspace, parent),
        open_known=lambda: known_pairs(workspace, parent, {*train, *validation}),
        open_reference=lambda chunk: reference_pairs(workspace, chunk),
    )


def training_json(report: TrainingReport) -> dict[str, Any]:
    """Returns a training report as plain values."""
    return asdict(report) | {"history": list(report.history), "notes": list(report.notes)}


def _as_stage(step: TrainingProgress) -> Stage:
    done = (step.epoch - 1 + step.step / max(1, step.steps)) / step.epochs
    return Stage(
        "train",
        phrase(
            "epoch {epoch} of {all}, {speed} pairs/s, {left} s left",
            epoch=step.epoch,
            all=step.epochs,
            speed=f"{step.pairs_per_second:.0f}",
            left=f"{step.seconds_left:.0f}",
        ),
        done,
        asdict(step),
    )


def _device(wanted: str) -> str:
    if wanted != "auto":
        return wanted
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
