"""Embedding on a Ray cluster: Ray Data hands batches of pictures to actors, each of which has the encoder.

The pictures are read by one actor on the machine of the job, which alone need have the home. The others are given their
bytes, and the files of the encoder. Before it is believed, each of them embeds a batch that this machine has embedded,
and has to give the same to the bit. Where an actor or a machine dies Ray starts another, and gives it again what did
not come back.
"""

import logging
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from app.desk.errors import ClusterUnusable
from app.desk.troubles import explain
from app.home.cluster import joined, last_line, room
from app.home.settings import Settings
from app.home.workspace import Workspace, read_encoder, threads_of
from app.learning.embedder import Here, ImageBatch, Keep
from ingest.blobs import for_embedding
from ingest.sentence import phrase
from model_updates.features import IMAGE, NoCache, trunk_features
from model_updates.portable_encoder import PortableEncoder, graphs_of
from model_updates.search_encoder import Rows, SearchEncoder
from model_updates.version_files import MANIFEST, read_manifest

logger = logging.getLogger(__name__)

_AT_A_TIME = 16  # pictures that are read: a bucket answers late and not slowly
_NO_PROGRESS_SECONDS = 600.0  # such as while others have all cores of the cluster
_AT_ONCE = 1 << 14  # batches that Ray is told of at once: a million pictures

Row = dict[str, Any]
Files = Mapping[str, bytes]


@dataclass(frozen=True)
class Parcel:
    """What an actor that embeds is given: an encoder, and a batch by which to see that it computes as we do."""

    files: Files
    graphs: Files | None  # None where it is opened in torch
    threads: int  # that it computes with
    routes: Sequence[str]  # that pictures take
    route: str  # of the batch
    pictures: Sequence[bytes]  # of the batch
    rows: Rows  # its trunk features

    def opened(self) -> SearchEncoder:
        """Returns the encoder, of which nothing is on the disk any more.

        Raises:
            ClusterUnusable: on this machine, it gives other features.
        """
        os.environ["OMP_NUM_THREADS"] = str(self.threads)
        with TemporaryDirectory(prefix="perennial-encoder-") as place:
            version, graphs = Path(place) / "version", Path(place) / "graphs"
            write_files(version, self.files)
            write_files(graphs, self.graphs or {})
            encoder = read_encoder(version, None if self.graphs is None else graphs)
            given = embedded(encoder, self.route, self.pictures)
            for route in self.routes:  # a graph is read when it is first asked for
                embedded(encoder, route, self.pictures[:1])
        if not np.array_equal(given, self.rows):
            raise ClusterUnusable(
                phrase(
                    "The machine {name} of the Ray cluster does not compute the same vectors, bit for bit: its "
                    "processor or its packages differ from those of this machine. Take it out of the cluster, or leave "
                    "the setting `ray` empty. Nothing that it computed was kept.",
                    name=socket.gethostname(),
                )
            )
        return encoder


class ReadPictures:
    """Adds to batches the bytes of their pictures."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._workspace: Workspace | None = None

    def __call__(self, row: Row) -> Row:
        """Reads a batch, or says what is wrong."""
        return _or_what_is_wrong(self._read, row)

    def _read(self, row: Row) -> Row:
        self._workspace = self._workspace or Workspace.open(self._settings, read_only=True)
        with ThreadPoolExecutor(_AT_A_TIME) as pool:
            pictures = list(pool.map(self._workspace.blobs.original, row["ids"]))
        return row | {"wrong": "", "pictures": pictures}


class EmbedPictures:
    """Turns batches into trunk features."""

    def __init__(self, parcel: Any) -> None:
        self._parcel = parcel
        self._encoder: SearchEncoder | None = None

    def __call__(self, row: Row) -> Row:
        """Embeds a batch, or says what is wrong."""
        return row if row["wrong"] else _or_what_is_wrong(self._embed, row)

    def _embed(self, row: Row) -> Row:
        import ray

        self._encoder = self._encoder or ray.get(self._parcel).opened()
        rows = embedded(self._encoder, row["route"], row["pictures"])
        return {"number": row["number"], "wrong": "", "rows": rows}


def embedded(encoder: SearchEncoder, route: str, pictures: Sequence[bytes]) -> Rows:
    """Returns the trunk features of one batch as the loop of `model_updates.features` gives them."""
    names = [str(n) for n in range(len(pictures))]
    return trunk_features(encoder, names, lambda n: for_embedding(pictures[int(n)]), NoCache(), route=route)


def _or_what_is_wrong(work: Callable[[Row], Row], row: Row) -> Row:
    """Does a part of the work; hands on what an error that was foreseen says, since Ray would keep that to itself."""
    try:
        return work(row)
    except Exception as error:
        problem = explain(error)
        if problem is None:
            raise
        logger.warning("batch %d: %r", row["number"], error)
        return {"number": row["number"], "wrong": str(problem.sentence)}


@dataclass(frozen=True)
class OnRay:
    """Embeds on the Ray cluster that the settings name; `sample` is a batch that this machine has embedded."""

    workspace: Workspace
    encoder: SearchEncoder
    version: str
    sample: ImageBatch

    def __call__(self, batches: Sequence[ImageBatch], keep: Keep) -> None:
        """Embeds batches, and has each kept when it comes.

        Raises:
            ClusterUnusable: the cluster does not answer, computes otherwise, or fails.
        """
        address = self.workspace.settings.ray
        with joined(address):
            import ray

            parcel = self.parcel({batch.route for batch in batches})
            actors = room(address, parcel.threads)
            given = ray.put(parcel)
            for start in range(0, len(batches), _AT_ONCE):
                self._embed(given, parcel.threads, actors, batches[start : start + _AT_ONCE], keep)

    def _embed(
        self, given: Any, threads: int, actors: int, batches: Sequence[ImageBatch], keep: Keep
    ) -> None:
        import ray
        from ray.data import ActorPoolStrategy, DataContext, from_items
        from ray.data.exceptions import ExecutionTimeoutError

        context = DataContext.get_current()
        context.enable_progress_bars = False
        context.execution_no_progress_timeout_s = _NO_PROGRESS_SECONDS
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)  # what goes wrong is raised, too
        settings = self.workspace.settings.model_copy(update={"home": self.workspace.home.root.resolve()})
        asked = [{"number": n, "route": one.route, "ids": list(one.ids)} for n, one in enumerate(batches)]
        here = {"ray.io/node-id": ray.get_runtime_context().get_node_id()}
        rows = (
            from_items(asked, override_num_blocks=len(asked))
            .map(
                ReadPictures,
                fn_constructor_args=(settings,),
                compute=ActorPoolStrategy(size=1),
                num_cpus=0,
                label_selector=here,
            )
            .map(
                EmbedPictures,
                fn_constructor_args=(given,),
                compute=ActorPoolStrategy(min_size=1, max_size=actors, initial_size=actors),
                num_cpus=threads,
            )
        )
        left = set(range(len(batches)))
        try:
            for row in rows.iter_rows():
                batch = batches[row["number"]]
                if row["wrong"]:
                    # Raises what is wrong with its pictures, if that is what is wrong.
                    Here(self.workspace, self.encoder)([batch], keep)
                    raise ClusterUnusable(row["wrong"])
                if row["number"] in left:
                    keep(batch, row["rows"])
                    left.remove(row["number"])
        except (ray.exceptions.RayError, ExecutionTimeoutError) as error:
            raise _failed(str(error)) from error
        if left:
            raise _failed(f"{len(left)} batches did not come")

    def parcel(self, routes: Iterable[str]) -> Parcel:
        """Returns what actors are given that embed pictures of these routes."""
        workspace, encoder, sample = self.workspace, self.encoder, self.sample
        folder = workspace.releases.version_folder(self.version)
        graphs = None
        if isinstance(encoder, PortableEncoder):
            place = graphs_of(folder, workspace.home.graphs / self.version).place
            graphs = None if place is None else files_of(place)
        made_by = encoder.trunk_fingerprint(sample.route)
        rows, _ = workspace.features.get(made_by, IMAGE, sample.ids, encoder.trunk_dim)
        pictures = [workspace.blobs.original(image_id) for image_id in sample.ids]
        return Parcel(
            files_of(folder), graphs, threads_of(encoder), sorted(routes), sample.route, pictures, rows
        )


def _failed(why: str) -> ClusterUnusable:
    return ClusterUnusable(
        phrase(
            "Ray did not embed all pictures ({why}). Its machines need Python, Ray and Perennial in the versions of "
            "this one. What came is kept: the same again goes on from there.",
            why=last_line(why),
        )
    )


def files_of(folder: Path) -> Files:
    """Returns the files of a published folder, without what strategies carry."""
    names = [MANIFEST, *(one for one in read_manifest(folder)["files"] if not one.startswith("state-"))]
    return {name: (folder / name).read_bytes() for name in names}


def write_files(folder: Path, files: Files) -> None:
    """Writes files, each by its name, into a new folder."""
    folder.mkdir()
    for name, data in files.items():
        (folder / name).write_bytes(data)
