"""Training on a Ray cluster: Ray Train has several processes run one update, each a share of every batch.

One process on the machine of the job, which alone need have the home, answers what they ask for: pictures, and
the last checkpoint. They are given everything else, as it was read when the update began. After each epoch it is sent
a checkpoint. Where a process or a machine dies, all begin again from there. What comes back in the end is the last
checkpoint: the update goes on from it on the machine of the job, which ends it as if it had been interrupted there.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from app.desk.errors import ClusterUnusable
from app.home.cluster import joined, last_line, room
from app.home.settings import Settings
from app.home.workspace import Workspace
from app.learning.lessons import Lesson
from app.learning.pairs import Read, read_once
from app.learning.ray_embedding import Files, files_of, write_files
from ingest.blobs import for_embedding
from ingest.errors import UnknownImage
from ingest.sentence import phrase
from model_updates.checkpoint import FILE
from model_updates.data_parallel import DataParallelEncoder, up_to_its_end
from model_updates.errors import ModelUpdateError
from model_updates.pair_sets import PairSet, PictureRows, UpdateData
from model_updates.pairs import TrainingPair
from model_updates.progress import TrainingProgress
from model_updates.strategy import Strategy, UpdateContext
from model_updates.trainer import run_update
from model_updates.version_files import GRAPHS
from model_updates.versions import load_version

logger = logging.getLogger(__name__)

_TRIES_AGAIN = 3  # after a process died, or could not begin
_AT_A_TIME = 16  # questions that are answered
_LOOKS_SECONDS = 0.5  # between two looks at how far they are
_HUNG_SECONDS = 600  # that a process waits for the others


@dataclass(frozen=True)
class TrainingParcel:
    """What each process that trains is given: a lesson, and what is frozen about it."""

    previous: Files  # of the version that is taught
    anchor: Files | None  # of the version that its line started from; None where it is the same
    strategy: Strategy  # before it teaches
    pairs: Sequence[TrainingPair]
    learned_languages: frozenset[str]
    learned_domains: frozenset[str]
    seed: int
    number: int  # of the update in its line
    data: UpdateData
    read: Read  # what it asks the catalog for
    threads: int  # that each computes with


class JobHome:
    """What the processes that train ask for; it runs on the machine of the job."""

    def __init__(self, settings: Settings, checkpoints: Path) -> None:
        self._workspace = Workspace.open(settings, read_only=True)
        self._checkpoints = checkpoints
        self._told: TrainingProgress | None = None
        self._missed: str | None = None

    def picture(self, image_id: str) -> bytes:
        """Returns the file of a picture."""
        try:
            return self._workspace.blobs.original(image_id)
        except UnknownImage:
            self._missed = image_id
            raise

    def missed(self) -> str | None:
        """Returns the id of a picture that it was asked for in vain; None where there was none."""
        return self._missed

    def checkpoint(self) -> bytes | None:
        """Returns the last checkpoint; None before the first."""
        file = self._checkpoints / FILE
        return file.read_bytes() if file.exists() else None

    def keep(self, checkpoint: bytes) -> None:
        """Puts a checkpoint into the place of the one before."""
        self._checkpoints.mkdir(parents=True, exist_ok=True)
        temporary = self._checkpoints / f".{FILE}.sent"
        with temporary.open("wb") as file:
            file.write(checkpoint)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self._checkpoints / FILE)

    def tell(self, progress: TrainingProgress) -> None:
        """Is told how far they are."""
        self._told = progress

    def told(self) -> TrainingProgress | None:
        """Returns what it was last told."""
        return self._told


def train_on_ray(
    workspace: Workspace,
    lesson: Lesson,
    data: UpdateData,
    *,
    read: Read,
    checkpoints: Path,
    progress: Callable[[TrainingProgress], None],
    begun: TrainingProgress,
) -> int:
    """Has a cluster train a lesson up to its last checkpoint; returns how many pictures its towers embedded.

    `data` is what was gathered for it, `read` what else it asks the catalog for, and `begun` what is told until there
    is more to tell.

    Raises:
        ClusterUnusable: it does not answer, has too few cores, or fails. The checkpoints are kept.
        UnknownImage: a picture to train on was removed meanwhile.
    """
    settings = workspace.settings.model_copy(update={"home": workspace.home.root.resolve()})
    address, count, threads = settings.ray, settings.training_workers, torch.get_num_threads()
    with joined(address):
        import ray

        if (fits := room(address, threads)) < count:
            raise ClusterUnusable(
                phrase(
                    "The Ray cluster at {address} has room for {fits} processes of {threads} threads each, and "
                    "`training_workers` asks for {count}. Add machines, or "
                    "set `training_workers` or `threads` to fewer.",
                    address=address,
                    fits=fits,
                    threads=threads,
                    count=count,
                )
            )
        here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
        home = (
            ray.remote(JobHome)
            .options(num_cpus=0, label_selector=here, max_concurrency=_AT_A_TIME)
            .remote(settings, checkpoints.resolve())
        )
        given = {"parcel": [ray.put(_parcel(workspace, lesson, data, read, threads))], "home": home}
        fit = ray.remote(_fit).options(num_cpus=0, label_selector=here, max_retries=0)
        ended, told = fit.remote(given, count, threads), begun
        try:
            while not ray.wait([ended], timeout=_LOOKS_SECONDS)[0]:
                if missed := ray.get(home.missed.remote()):
                    workspace.blobs.original(missed)  # raises that it is gone: no other try would find it
                told = ray.get(home.told.remote()) or told
                progress(told)  # also where it is the same: a job is cancelled by what telling it finds
            return int(ray.get(ended))
        except ray.exceptions.RayError as error:
            raise ClusterUnusable(
                phrase(
                    "Ray did not train this ({why}). Its machines need Python, Ray and Perennial in the versions of "
                    "this one. Finished epochs are kept: the same again goes on from there.",
                    why=last_line(str(error)),
                )
            ) from error


def _parcel(
    workspace: Workspace, lesson: Lesson, data: UpdateData, read: Read, threads: int
) -> TrainingParcel:
    root = workspace.root_of(lesson.parent.version)
    folders = [workspace.releases.version_folder(version) for version in (lesson.parent.version, root)]
    return TrainingParcel(
        previous=_read(folders[0]),
        anchor=None if folders[0] == folders[1] else _read(folders[1]),
        strategy=lesson.again(workspace),
        pairs=lesson.train,
        learned_languages=frozenset(lesson.parent.manifest.languages),
        learned_domains=lesson.known_domains,
        seed=lesson.seed,
        number=lesson.number,
        data=_portable(data),
        read=read,
        threads=threads,
    )


def _read(folder: Path) -> Files:
    """Returns what a version is opened from in torch."""
    return {name: data for name, data in files_of(folder).items() if not name.startswith(GRAPHS)}


def _portable(data: UpdateData) -> UpdateData:
    """Returns the data with features in the place of what makes them, and without a way to pictures."""
    features, trunk = data.train.pictures.features, data.train.pictures.trunk
    pictures = PictureRows(trunk, partial(_same, features))

    def own(rows: PairSet) -> PairSet:
        return replace(rows, pictures=pictures)

    return UpdateData(
        own(data.train),
        own(data.memory),
        own(data.validation),
        _no_pictures,
        None if data.known is None else own(data.known),
    )


def _same(features: Tensor) -> Tensor:
    return features


def _no_pictures(image_id: str) -> Image.Image:
    raise UnknownImage(image_id)


def _fit(given: dict[str, Any], count: int, threads: int) -> int:
    """Runs Ray Train. That is a task of its own, since what asks Ray in a thread dies where Ray is shut down."""
    from ray.train import FailureConfig, RunConfig, ScalingConfig
    from ray.train.torch import TorchConfig, TorchTrainer

    # Failures to begin are counted, too: a cluster may be busy, or have lost a machine for good.
    failures = FailureConfig(
        max_failures=_TRIES_AGAIN,
        controller_failure_limit=_TRIES_AGAIN,
        max_preemption_failures=_TRIES_AGAIN,
    )
    with TemporaryDirectory(prefix="perennial-ray-") as storage:
        trainer = TorchTrainer(
            train,
            train_loop_config=given,
            torch_config=TorchConfig(backend="gloo", timeout_s=_HUNG_SECONDS),
            scaling_config=ScalingConfig(num_workers=count, resources_per_worker={"CPU": threads}),
            run_config=RunConfig(storage_path=storage, failure_config=failures),
        )
        return int(trainer.fit().return_value)


class _Asked:
    """`JobHome` as a process that trains asks it."""

    def __init__(self, actor: Any) -> None:
        self._actor = actor

    def __getattr__(self, name: str) -> Callable[..., Any]:
        import ray

        return lambda *given: ray.get(getattr(self._actor, name).remote(*given))


def train(given: Mapping[str, Any]) -> int:
    """Trains in one of the processes; returns how many pictures the towers of all embedded.

    Args:
        given: "parcel", where a `TrainingParcel` lies, and "home", the actor of a `JobHome`.
    """
    import ray
    from ray.train import get_context

    home, is_first = _Asked(given["home"]), get_context().get_world_rank() == 0
    parcel: TrainingParcel = ray.get(given["parcel"][0])
    torch.set_num_threads(parcel.threads)
    with TemporaryDirectory(prefix="perennial-training-") as place:
        folder = Path(place)
        kept = [home.checkpoint() if is_first else None]  # all go on from the same
        torch.distributed.broadcast_object_list(kept, src=0)
        if kept[0] is not None:
            (folder / FILE).write_bytes(kept[0])
        write_files(folder / "previous", parcel.previous)
        if parcel.anchor is not None:
            write_files(folder / "anchor", parcel.anchor)
        return _trained(parcel, home, folder, is_first=is_first)


def _trained(parcel: TrainingParcel, home: Any, folder: Path, *, is_first: bool) -> int:
    group = torch.distributed.group.WORLD

    def opened(name: str) -> DataParallelEncoder:
        return DataParallelEncoder.of(load_version(folder / name).encoder, group)

    def picture(image_id: str) -> Any:
        return for_embedding(home.picture(image_id))

    def data(context: UpdateContext) -> UpdateData:
        # Its pairs are gathered already. It also sets what the strategy knows of them, as in the process of the job.
        parcel.strategy.memory(context)
        return replace(parcel.data, load_image=picture)

    def send() -> None:
        if is_first and (folder / FILE).exists():
            home.keep((folder / FILE).read_bytes())

    encoder = opened("previous")
    context = UpdateContext(
        encoder=encoder,
        pairs=parcel.pairs,
        learned_languages=parcel.learned_languages,
        open_anchor=lambda: opened("previous" if parcel.anchor is None else "anchor"),
        open_previous=lambda: opened("previous"),
        learned_domains=parcel.learned_domains,
        seed=parcel.seed,
        update_number=parcel.number,
        load_image=picture,
    )
    try:
        run_update(
            up_to_its_end(parcel.strategy, send),
            read_once(context, parcel.read),
            data,
            checkpoints=folder,
            progress=home.tell if is_first else None,
        )
    except ModelUpdateError as error:
        # All met it. The machine of the job goes on from the last checkpoint, meets it as well, and says so.
        logger.warning("training ended early: %s", error)
    send()
    return encoder.image_forwards
