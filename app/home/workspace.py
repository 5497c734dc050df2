"""One opened home: its catalog, stores, releases and the encoders and generations read from it."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from app.desk.errors import ReleaseDamaged, UpdateRunning
from app.desk.troubles import saying_what_is_missing
from app.home import engines, lock
from app.home.folder import Home
from app.home.settings import Settings
from app.home.store import ReleaseStore
from index.elsewhere import has_moved, keep_vectors
from index.errors import GenerationDamaged, VectorsRefused, VectorsUnreachable
from index.feature_store import FeatureStore
from index.generation import Generation, load_generation
from ingest.blobs import BlobStore
from ingest.catalog import Catalog
from ingest.sentence import joined, phrase
from ingest.storage import Store
from model_updates.errors import NeedsLearning
from model_updates.portable_encoder import Graphs, PortableEncoder, graphs_of
from model_updates.search_encoder import SearchEncoder
from model_updates.version_files import read_manifest

if TYPE_CHECKING:
    from index.vector_index import VectorEngine
    from model_updates.encoder import Encoder
    from model_updates.strategy import State
    from model_updates.versions import Version

logger = logging.getLogger(__name__)
Vectors = NDArray[np.float32]
KEPT_VERSIONS = 3  # live, candidate's parent and the earlier one that a gate measures just then


@dataclass
class Workspace:
    """What every verb works on. Open it once a process; close it at the end."""

    settings: Settings
    home: Home
    catalog: Catalog
    blobs: BlobStore
    features: FeatureStore
    releases: ReleaseStore
    beside: frozenset[str] | None = None  # chunks that may stand beside others, while an update is replayed
    _features: Store | None = None
    _is_for_reading: bool = False
    _using: ExitStack = field(default_factory=ExitStack)  # the catalog: nobody may replace its file
    _versions: OrderedDict[str, Version] = field(default_factory=OrderedDict)
    _searchers: OrderedDict[str, SearchEncoder] = field(default_factory=OrderedDict)

    @classmethod
    def open(cls, settings: Settings, *, read_only: bool = False) -> Workspace:
        """Opens an existing home; with `read_only` without the right to write, as a server's queries need.

        Raises:
            NoHome: there is none; the sentence says how to make one.
            HomeDamaged: it has releases, but its catalog or its pictures have gone.
        """
        home = Home.open(settings.home).require_stores()
        return cls._on(settings, home, read_only=read_only)

    @classmethod
    def create(cls, settings: Settings) -> Workspace:
        """Makes a home's folders and opens it; nothing is live yet."""
        return cls._on(settings, Home.create(settings.home), read_only=False)

    @classmethod
    def _on(cls, settings: Settings, home: Home, *, read_only: bool) -> Workspace:
        using = ExitStack()
        with suppress(OSError):  # who may not write here replaces nothing, either
            using.enter_context(lock.briefly(home.catalog_lock, alone=False))
        catalog = home.open_catalog(read_only=read_only)
        # A home that came to share what others have has none of its own yet.
        keeps = read_only and not (home.objects_address and not home.features.is_dir())
        features = Store.open(home.features, read_only=keeps)
        return cls(
            settings=settings,
            home=home,
            catalog=catalog,
            blobs=home.open_blobs(catalog, read_only=read_only),
            features=FeatureStore(features),
            releases=ReleaseStore(home),
            _features=features,
            _is_for_reading=read_only,
            _using=using,
        )

    def follow_catalog(self) -> None:
        """Opens catalog and pictures where they lie now, when somebody has carried them to another place."""
        said = engines.read(self.home.root)
        place = said.catalog or self.home.catalog
        if place != self.catalog.place:
            self.catalog.follow(place)
        if said.objects != self.blobs.address:
            self.blobs.follow(self.home.open_blobs(self.catalog, read_only=self._is_for_reading))

    def close(self) -> None:
        """Closes catalog and stores."""
        self.catalog.close()
        self.blobs.close()
        if self._features is not None:
            self._features.close()
        self._using.close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_version(self, version_id: str) -> Version:
        """Loads a version, every byte checked; the last few stay in memory. Do not train the encoder you get."""
        if version_id not in self._versions:
            loaded: Version = _in_torch().load_version(self.releases.version_folder(version_id))
            loaded.encoder.spares_second = self.settings.second_tower == "where-needed"
            self._versions[version_id] = loaded
            while len(self._versions) > KEPT_VERSIONS:
                self._versions.popitem(last=False)
        self._versions.move_to_end(version_id)
        return self._versions[version_id]

    def open_searcher(self, version_id: str) -> SearchEncoder:
        """Opens what searches with a version: its graphs, which need no torch, or its encoder where it can have none.

        Every byte is checked; the last few stay in memory.
        """
        if version_id not in self._searchers:
            graphs = self._graphs_of(version_id)
            if graphs is None:
                return self.open_encoder(version_id)
            opened = read_encoder(self.releases.version_folder(version_id), graphs)
            opened.spares_second = self.settings.second_tower == "where-needed"
            self._searchers[version_id] = opened
            while len(self._searchers) > KEPT_VERSIONS:
                self._searchers.popitem(last=False)
        self._searchers.move_to_end(version_id)
        return self._searchers[version_id]

    def _graphs_of(self, version_id: str) -> Path | None:
        """Returns where a version's graphs lie; where there are none, or damaged ones, they are made of its weights.

        Damaged ones that came with the program are taken from there.

        Raises:
            ReleaseDamaged: they are damaged, and there is no torch to make them again.
            NeedsLearning: there never were any, and there is no torch to make them.
        """
        folder, later = self.releases.version_folder(version_id), self.home.graphs / version_id
        found = graphs_of(folder, later)
        if found.are_damaged:
            found = self._restored(folder, later, found)
        if found.may_be_made:
            logger.warning("the graphs of version %s are made of its weights: %s", version_id, found.why)
            try:
                _in_torch().write_graphs(folder, self.open_encoder(version_id), later)
                found = graphs_of(folder, later)
            except NeedsLearning as error:
                said = phrase(
                    "Version {version} has no sound graphs to be searched by ({why}); they can be made of its weights.",
                    version=version_id,
                    why=found.why,
                )
                raise (ReleaseDamaged if found.are_damaged else NeedsLearning)(
                    joined((said, str(error)))
                ) from error
            except OSError as error:
                logger.warning(
                    "version %s is searched by torch, its graphs cannot be written: %s", version_id, error
                )
        return found.place

    def _restored(self, folder: Path, later: Path, found: Graphs) -> Graphs:
        from model_updates.embedded import restore_graphs  # reads what a search seldom needs

        try:
            restore_graphs(folder)
        except OSError as error:
            logger.warning("the graphs of version %s cannot be written: %s", folder.name, error)
            return found
        return graphs_of(folder, later)

    def forget_version(self, version_id: str) -> None:
        """Lets a version's memory go once nobody uses it any more."""
        self._versions.pop(version_id, None)
        self._searchers.pop(version_id, None)

    def carried(self, version_id: str, strategy: str) -> State | None:
        """Reads what a strategy carried to a version; None when it never ran on its line."""
        state: State | None = _in_torch().load_state(self.releases.version_folder(version_id), strategy)
        return state

    def open_encoder(self, version_id: str) -> Encoder:
        """Loads a version's encoder (see `open_version`)."""
        return self.open_version(version_id).encoder

    def open_generation(self, generation_id: str, *, but_damaged: bool = False) -> Generation:
        """Loads a generation, every byte checked; onto the GPU when the settings name it (see `load_generation`)."""
        on_gpu = self.settings.device == "cuda"
        folder = self.releases.generation_folder(generation_id)
        mark = self.releases.damage.of(folder)
        if mark is not None and not but_damaged:  # what is held of it in memory is mapped from the same files
            raise GenerationDamaged(mark.why)
        engine, elsewhere = self.vector_engine, None
        try:
            elsewhere = None if engine is None else engine.known().get
        except (VectorsUnreachable, VectorsRefused) as error:
            if self._is_for_reading:  # a server whose search would be another than it was
                raise
            logger.warning("generation %s is read from its files: %s", generation_id, error)
        return load_generation(folder, use_gpu=on_gpu, but_damaged=but_damaged, elsewhere=elsewhere)

    @property
    def vector_engine(self) -> VectorEngine | None:
        """What keeps vectors beside the files, or may; None where the catalog is a file, and no Milvus is named."""
        return next(iter(self._vector_engines()), None)

    def _vector_engines(self) -> Iterator[VectorEngine]:
        """Yields what keeps vectors, or may, and after it what may have kept them before."""
        address = engines.read(self.home.root).index
        if address is not None:
            from index.milvus import MilvusCollections

            yield MilvusCollections(address)
        if isinstance(self.catalog.place, str):
            from index.vector_tables import VectorTables

            yield VectorTables(self.catalog.engine)

    def publish_generation(self, staged: Path, queries: Callable[[], Vectors]) -> str:
        """Makes a staged generation immutable, and has its vectors kept elsewhere where they are; returns its id.

        `queries`, (q, dim) float32 unit rows, are what searching there is tuned on. What cannot be kept there is
        searched in its file, and is tried again with the next one.
        """
        generation = self.releases.publish_generation(staged)
        try:
            if (engine := self.vector_engine) is not None and engine.are_kept:
                keep_vectors(engine, self.releases.generation_folder(generation), queries)
        except (VectorsRefused, VectorsUnreachable) as error:
            logger.warning("generation %s is searched in its files: %s", generation, error)
        return generation

    def is_searched_elsewhere(self, generation: Generation) -> bool:
        """Whether vectors of an opened generation were carried to another engine since, or back."""
        engine = self.vector_engine
        return has_moved(generation, {} if engine is None else engine.known())

    def drop_vectors(self) -> list[str]:
        """Has what keeps vectors beside the files drop those that no published generation has; returns their names.

        What cannot be dropped, or while somebody updates, or nobody knows what a generation has, stays until the next
        time.
        """
        found: list[str] = []
        for engine in self._vector_engines():
            try:
                with self.releases.updater_lock(lock.TIDYING):
                    found += engine.drop_others(self.releases.index_files() if engine.are_kept else ())
            except (UpdateRunning, ReleaseDamaged, VectorsRefused, VectorsUnreachable) as error:
                logger.warning("vectors that nobody needs any more stay where they are kept: %s", error)
        return found

    def version_manifest(self, version_id: str) -> dict[str, object]:
        """Reads what a version's manifest says, without its weights."""
        return read_manifest(self.releases.version_folder(version_id))

    def root_of(self, version_id: str) -> str:
        """Returns the version that a version's line started from; one that was imported starts a line here."""
        root = str(self.version_manifest(version_id).get("root") or version_id)
        return root if self.releases.has_version(root) else version_id

    def load_image(self, image_id: str) -> Image.Image:
        """Returns a stored picture as towers look at it: decoded, upright, RGB."""
        return self.blobs.embedded(image_id)


def read_encoder(folder: Path, graphs: Path | None) -> SearchEncoder:
    """Opens the encoder of a version's folder, every byte checked: by its graphs, or in torch where none are given."""
    if graphs is not None:
        return PortableEncoder(folder, graphs=graphs)
    encoder: SearchEncoder = _in_torch().load_version(folder).encoder
    return encoder


def threads_of(encoder: SearchEncoder) -> int:
    """Returns with how many threads what an encoder gives is the same to the bit: graphs give the same with any."""
    return 1 if isinstance(encoder, PortableEncoder) else int(_in_torch().torch.get_num_threads())


@saying_what_is_missing()
def _in_torch() -> ModuleType:
    """Imports what opens a version in torch, which searching does without.

    Raises:
        NeedsLearning: it is not installed; the sentence says how to install it.
    """
    from model_updates import versions

    return versions
