"""What an update will take, before it runs: time, memory and disk for this chunk, from rates that were measured.

A rate is the seconds of a stage per thing it handles, as earlier updates of this home took them; where there were
none, the live encoder reads a few captions and pictures now. The forecast travels with the job, so that what the update
took in the end can be laid beside it.
"""

import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.desk.jobs import STAGES, Forecast, UpdateRequest, timed_as
from app.home.durable import folder_bytes
from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning import going_live
from app.learning.cross_fitting import is_examined
from app.learning.domains import known_domains
from app.learning.lessons import choose_strategy
from app.learning.pairs import chunk_pairs
from app.learning.training import update_context
from app.learning.yardstick import Yardstick
from ingest.pair import SliceKey, Split
from ingest.records import JobRecord
from ingest.sentence import phrase
from model_updates.encoder import Encoder
from model_updates.gate.examined import FOLDS
from model_updates.options import options_of
from model_updates.strategies import strategy_named
from model_updates.strategy import Foresight

_PAST_JOBS, _ALIKE = 100, 5
_TRIED_TEXTS, _TRIED_PICTURES = 64, 8
_BACKWARD = 3.0  # a step forward and back costs about three times the way forward
_PROCESS_BYTES = (
    1000 << 20
)  # of an update's process that has loaded torch, the libraries of learning and the catalog
_TRAINED_COPIES = 5  # live, candidate, gradient, and two moments of AdamW


@dataclass(frozen=True)
class Workload:
    """How much there is to do."""

    features: int  # pairs whose features are read
    train: int  # pairs times epochs
    measure: int  # held-out captions, in every view
    examine: int  # pairs times epochs of all copies, where held-out pairs are too few to decide
    embed: int  # pictures of the gallery that may get new vectors


def forecast(workspace: Workspace, request: UpdateRequest) -> Forecast:
    """Returns what an update would take; nothing is changed.

    Raises:
        UnknownChunk, UnknownStrategy, BadStrategyOption, NoRelease: the request cannot be carried out.
    """
    record = going_live.live_release(workspace)[1]
    name = request.strategy or choose_strategy(workspace, request.chunk)[0]
    kind = strategy_named(name)
    strategy = kind(options_of(kind, request.options))
    encoder = workspace.open_encoder(record.version).whole()
    chunk = workspace.catalog.chunk(request.chunk)
    everything = chunk_pairs(workspace, chunk, Split.TRAIN, set(chunk.languages))
    domains = known_domains(workspace, record, everything)
    train = strategy.taught(everything, set(record.manifest.languages), domains)
    taught = frozenset(SliceKey(pair.language, pair.domain) for pair in train)
    captions = Yardstick(workspace, record, chunk.id).slices(record.manifest.languages, taught)
    validation = chunk_pairs(workspace, chunk, Split.VALIDATION, set(chunk.languages))
    foreseen = strategy.foreseen(update_context(workspace, record, encoder, train, validation, domains))
    policy = workspace.settings.gate
    copies = FOLDS if is_examined(captions, train, strategy, foreseen, record, policy) else 0
    work = Workload(
        features=len(train),
        train=len(train) * foreseen.epochs,
        measure=sum(len(one.captions) for one in captions),
        examine=round(copies * (1 - 1 / FOLDS) * len(train)) * foreseen.epochs,
        embed=_moved(workspace, foreseen),
    )
    past = _past(workspace, name)
    rates = (
        _rates(past) if past else _tried(workspace, encoder, train, reads_pictures=foreseen.reads_pictures)
    )
    return Forecast(
        strategy=name,
        pairs=len(train),
        epochs=foreseen.epochs,
        copies=copies,
        seconds={stage: round(rates.get(stage, 0.0) * getattr(work, stage), 2) for stage in STAGES},
        peak_bytes=_peak(past, encoder),
        disk_bytes=_disk(workspace, record, past, work),
        based_on=_said(past, name),
    )


def memory_needed(workspace: Workspace, request: UpdateRequest, record: ReleaseRecord) -> int:
    """Returns the most bytes of memory that an update's process will have: as measured before, else by its weights."""
    name = request.strategy or choose_strategy(workspace, request.chunk)[0]
    return _peak(_past(workspace, name), workspace.open_encoder(record.version))


def _moved(workspace: Workspace, foreseen: Foresight) -> int:
    """Returns how many pictures of the gallery would get other vectors."""
    if not foreseen.moves_pictures:
        return 0
    gallery = workspace.catalog.gallery_ids()
    if foreseen.domains is None:
        return len(gallery)
    return sum(one.domain in foreseen.domains for one in workspace.catalog.images(gallery).values())


def _past(workspace: Workspace, strategy: str) -> list[JobRecord]:
    """Returns updates whose stages were timed: the newest by the same strategy, else the newest by any."""
    ended = [
        job
        for job in workspace.catalog.jobs(limit=_PAST_JOBS)
        if job.kind == "update" and job.result.get("training") and job.progress.get("seconds")
    ]
    alike = [job for job in ended if job.result.get("strategy") == strategy]
    return (alike or ended)[:_ALIKE]


def _rates(past: Sequence[JobRecord]) -> dict[str, float]:
    """Returns the median seconds per thing of each stage that any of them went through."""
    found: dict[str, list[float]] = {}
    for job in past:
        work, seconds = _done(job), _by_stage(job.progress["seconds"])
        for stage in STAGES:
            amount = getattr(work, stage)
            if amount and stage in seconds:
                found.setdefault(stage, []).append(seconds[stage] / amount)
    return {stage: statistics.median(values) for stage, values in found.items()}


def _done(job: JobRecord) -> Workload:
    training = job.result["training"]
    pairs = int(training.get("training_pairs") or 0)
    captions = sum(int(row["captions"]) for row in job.result.get("gate", {}).get("rows", ()))
    return Workload(
        pairs,
        pairs * len(training.get("history") or ()),
        captions,
        round((FOLDS - 1) * pairs) * len(training.get("history") or ()),
        int(job.result.get("images_embedded") or 0),
    )


def _by_stage(seconds: Mapping[str, float]) -> dict[str, float]:
    found: dict[str, float] = {}
    for name, value in seconds.items():
        stage = timed_as(name)
        found[stage] = found.get(stage, 0.0) + value
    return found


def _tried(
    workspace: Workspace, encoder: Encoder, pairs: Sequence[Any], *, reads_pictures: bool
) -> dict[str, float]:
    """Returns rates from a few captions and pictures that the live encoder reads now."""
    texts = [pair.text for pair in pairs[:_TRIED_TEXTS]] or ["a red boat"]
    text = _seconds(lambda: encoder.text_features(texts)) / len(texts)
    ids = list(dict.fromkeys(pair.image_id for pair in pairs))[:_TRIED_PICTURES]
    images = [workspace.load_image(image_id) for image_id in ids]
    picture = _seconds(lambda: encoder.trunk_features(images)) / len(images) if images else 0.0
    step = _BACKWARD * (text + (picture if reads_pictures else 0.0))
    # Candidate, live version and the pictures of each slice; those that were read before are kept.
    return {
        "features": text + picture,
        "train": step,
        "measure": 2 * text + picture / 2,
        "examine": step,
        "embed": picture,
    }


def _seconds(read: Any) -> float:
    read()  # the first time pays for what is set up once
    started = time.perf_counter()
    read()
    return time.perf_counter() - started


def _peak(past: Sequence[JobRecord], encoder: Encoder) -> int:
    measured = [int(job.progress.get("peak_bytes") or 0) for job in past]
    if any(measured):
        return max(measured)
    weights = sum(parameter.numel() * parameter.element_size() for _, parameter in encoder.parameters())
    return _PROCESS_BYTES + _TRAINED_COPIES * weights


def _disk(workspace: Workspace, record: ReleaseRecord, past: Sequence[JobRecord], work: Workload) -> int:
    """Returns what a version adds, which shares what did not change with live, vectors of an index, and features."""
    before = [workspace.releases.version_bytes(str(job.result.get("version"))) for job in past]
    version = max(before, default=0) or folder_bytes(workspace.releases.version_folder(record.version))
    return version + 4 * workspace.open_encoder(record.version).dim * (work.embed + work.features)


def _said(past: Sequence[JobRecord], strategy: str) -> str:
    if not past:
        return phrase("No update has run here yet: the live encoder read a few captions and pictures now.")
    by = strategy if past[0].result.get("strategy") == strategy else phrase("other strategies")
    if len(past) == 1:
        return phrase("Measured in 1 update by {name} in this home.", name=by)
    return phrase("Measured in {count} updates by {name} in this home.", count=len(past), name=by)
