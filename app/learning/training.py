"""Training a candidate on a lesson, with everything a strategy may ask for."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
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
from model_updates.features import FeatureCache
from model_updates.pair_sets import UpdateData
from model_updates.pairs import TrainingPair
from model_updates.progress import TrainingProgress
from model_updates.strategy import UpdateContext
from model_updates.trainer import TrainingReport, run_update

CHECKPOINTS = "checkpoints"


def learn(
    workspace: Workspace, lesson: Lesson, *, scratch: Path, progress: Tell
) -> tuple[Encoder, TrainingReport]:
    """Trains a copy of the live encoder on a lesson; checkpoints in `scratch` make an interrupted one go on."""
    said = phrase(
        "{count} pairs to learn from, {validation} to validate",
        count=len(lesson.train),
        validation=len(lesson.validation),
    )
    progress(Stage("features", said))
    return trained(
        workspace,
        lesson,
        checkpoints=scratch / CHECKPOINTS,
        gathered=lambda done, total: progress(counted("features", said, done, total)),
        progress=lambda step: progress(_as_stage(step)),
    )


def trained(
    workspace: Workspace,
    lesson: Lesson,
    *,
    apart: Collection[str] = (),
    cache: FeatureCache | None = None,
    checkpoints: Path | None = None,
    gathered: Callable[[int, int], None] | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
) -> tuple[Encoder, TrainingReport]:
    """Trains a copy of a lesson's parent; `gathered` is told (pictures embedded, pictures to embed).

    No caption of the pictures `apart`, by id, is among what it trains beside. Features are kept in the home's cache, or
    in the one that is given.
    """
    live = workspace.open_encoder(lesson.parent.version)
    candidate = live.copy().to(device_for(workspace.settings.device))
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
    context = beside_others(context, apart)

    def data(context: UpdateContext) -> UpdateData:
        return gather(
            lesson.train,
            lesson.validation,
            strategy=lesson.strategy,
            context=context,
            load_image=workspace.load_image,
            cache=cache or workspace.features,
            progress=gathered,
        )

    report = run_update(lesson.strategy, context, data, checkpoints=checkpoints, progress=progress)
    candidate.spares_second = live.spares_second  # learned as a whole, it is measured as it will be searched
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
        open_anchor=lambda: workspace.open_encoder(root).whole(),
        open_previous=lambda: workspace.open_encoder(parent.version).whole(),
        seed=seed,
        learned_domains=domains,
        update_number=number,
        load_image=workspace.load_image,
        open_earlier=lambda: earlier_pairs(workspace, parent),
        open_known=lambda: known_pairs(workspace, parent, {*train, *validation}),
        open_reference=lambda chunk: reference_pairs(workspace, chunk),
    )


def beside_others(context: UpdateContext, apart: Collection[str]) -> UpdateContext:
    """Returns a context in which no caption of the pictures `apart`, by id, is known."""
    unseen = frozenset(apart)
    return replace(
        context, open_known=lambda: [pair for pair in context.open_known() if pair.image_id not in unseen]
    )


def training_json(report: TrainingReport) -> dict[str, Any]:
    """Returns a training report as plain values."""
    return asdict(report) | {"history": list(report.history), "notes": list(report.notes)}


def _as_stage(step: TrainingProgress) -> Stage:
    return Stage(
        "train",
        phrase(
            "epoch {epoch} of {all}, {speed} pairs/s, {left} s left",
            epoch=step.epoch,
            all=step.epochs,
            speed=f"{step.pairs_per_second:.0f}",
            left=f"{step.seconds_left:.0f}",
        ),
        step.done,
        asdict(step),
    )


def device_for(wanted: str) -> str:
    """Returns the device that a setting names; `auto` takes a CUDA card where there is one."""
    if wanted != "auto":
        return wanted
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
