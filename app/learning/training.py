"""Training a candidate on a lesson, with everything a strategy may ask for."""

import gc
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, Protocol

from app.desk.jobs import Stage, counted
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.lessons import Lesson
from app.learning.outcomes import Tell
from app.learning.pairs import (
    Read,
    counted_places,
    earlier_pairs,
    known_pairs,
    read_once,
    reference_pairs,
)
from ingest.sentence import phrase
from model_updates.batches import gather
from model_updates.encoder import Encoder
from model_updates.features import FeatureCache
from model_updates.pair_sets import UpdateData
from model_updates.pairs import TrainingPair
from model_updates.progress import TrainingProgress
from model_updates.strategy import Strategy, UpdateContext
from model_updates.trainer import TrainingReport, run_update

CHECKPOINTS = "checkpoints"
WORTH_SECONDS = 60.0  # of training: a cluster takes some twenty to begin
TRIED_SECONDS = 1.0  # of training, to know


class Trained(NamedTuple):
    """What came of a lesson."""

    encoder: Encoder  # on the CPU
    report: TrainingReport
    processes: int = 1  # that trained it together


class Gather(Protocol):
    """Gathers the data of a lesson, for the strategy that it is for."""

    def __call__(self, context: UpdateContext, strategy: Strategy = ...) -> UpdateData:
        """See `model_updates.batches.gather`."""
        ...


def learn(workspace: Workspace, lesson: Lesson, *, scratch: Path, progress: Tell) -> Trained:
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
    alone: bool = False,
) -> Trained:
    """Trains a copy of a lesson's parent; `gathered` is told (pictures embedded, pictures to embed).

    No caption of the pictures `apart`, by id, is among what it trains beside. Features are kept in the home's cache, or
    in the one that is given. What would take more than a minute is trained by several processes of the Ray cluster
    that the settings name, unless this one is to train `alone`.

    Raises:
        ClusterUnusable: the cluster does not answer, has too few cores, or fails. The checkpoints are kept.
        UnknownImage: a picture to train on was removed meanwhile.
    """
    live = workspace.open_encoder(lesson.parent.version)
    candidate = live.copy().to(device_for(workspace.settings.device))
    context, read = _context(workspace, lesson, candidate, apart), Read()
    if workspace.settings.ray:
        context = read_once(context, read)

    def data(context: UpdateContext, strategy: Strategy = lesson.strategy) -> UpdateData:
        return gather(
            lesson.train,
            lesson.validation,
            strategy=strategy,
            context=context,
            load_image=workspace.load_image,
            cache=cache or workspace.features,
            progress=gathered,
        )

    begun = None if alone else _begun_as_long(workspace, lesson, context, data)
    if begun is None:
        report, count = (
            run_update(lesson.strategy, context, data, checkpoints=checkpoints, progress=progress),
            1,
        )
    else:
        with TemporaryDirectory(prefix="perennial-") as own:
            checkpoints = checkpoints or Path(own)
            report, count = _together(workspace, lesson, context, data, read, begun, checkpoints, progress)
    candidate.spares_second = live.spares_second  # learned as a whole, it is measured as it will be searched
    return Trained(candidate.to("cpu"), report, count)


def _together(
    workspace: Workspace,
    lesson: Lesson,
    context: UpdateContext,
    data: Gather,
    read: Read,
    begun: TrainingProgress,
    checkpoints: Path,
    progress: Callable[[TrainingProgress], None] | None,
) -> tuple[TrainingReport, int]:
    """Has a cluster train a lesson, and ends it here; returns by how many processes it was trained.

    `read` is what was read for it until now: all that it asks for, since it was begun on copies.
    """
    from app.learning.ray_training import train_on_ray

    began, count, here = time.monotonic(), workspace.settings.training_workers, []

    def tell(step: TrainingProgress) -> None:
        if progress is not None:
            progress(step)

    def train_here(step: TrainingProgress) -> None:
        here.append(step)
        tell(step)

    given = data(context, lesson.again(workspace))
    forwards = train_on_ray(
        workspace, lesson, given, read=read, checkpoints=checkpoints, progress=tell, begun=begun
    )
    report = run_update(lesson.strategy, context, data, checkpoints=checkpoints, progress=train_here)
    said = f"{count} processes of a Ray cluster"
    note = f"Begun by {said}, and gone on with by this one." if here else f"Trained by {said}."
    report = replace(
        report,
        seconds=time.monotonic() - began,
        image_forwards=report.image_forwards + forwards,
        notes=(*report.notes, note),
    )
    return report, count


def _context(
    workspace: Workspace, lesson: Lesson, candidate: Encoder, apart: Collection[str]
) -> UpdateContext:
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
    return beside_others(context, apart)


class _Seen(Exception):
    """Ends a trial."""


def _begun_as_long(
    workspace: Workspace, lesson: Lesson, context: UpdateContext, data: Gather
) -> TrainingProgress | None:
    """Begins a lesson on copies, where a cluster may train it; returns how far it got if the rest takes long here.

    What is on a card stays there, and what takes one epoch stays here: most of that is solved at once.
    """
    settings, is_on_card = workspace.settings, str(context.encoder.device) != "cpu"
    if not settings.ray or settings.training_workers < 2 or is_on_card:
        return None
    if lesson.strategy.foreseen(context).epochs < 2:
        return None
    seen: list[tuple[float, TrainingProgress]] = []

    def see(step: TrainingProgress) -> None:
        seen.append((time.monotonic(), step))
        if len(seen) > 1 and seen[-1][0] - seen[0][0] > TRIED_SECONDS:
            raise _Seen

    trial, strategy = replace(context, encoder=context.encoder.copy()), lesson.again(workspace)
    try:
        run_update(strategy, trial, partial(data, strategy=strategy), progress=see)
    except _Seen:
        # Not from the first, which pays for what is set up once.
        (first, before), (last, begun) = seen[0], seen[-1]
        left = (1 - begun.done) * (last - first) / (begun.done - before.done)
        return replace(begun, seconds_left=left) if left > WORTH_SECONDS else None
    finally:
        del trial, strategy
        gc.collect()  # an encoder is hundreds of megabytes, and lies in cycles
    return None


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
        still_counted=lambda pairs: counted_places(workspace, pairs),
    )


def beside_others(context: UpdateContext, apart: Collection[str]) -> UpdateContext:
    """Returns a context in which no caption of the pictures `apart`, by id, is known or was learned."""
    unseen = frozenset(apart)
    return replace(
        context,
        open_known=lambda: [pair for pair in context.open_known() if pair.image_id not in unseen],
        open_earlier=lambda: [pair for pair in context.open_earlier() if pair.image_id not in unseen],
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
