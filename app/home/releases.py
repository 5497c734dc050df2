"""What is published: versions, generations, and the releases that name one of each by the checksum of its manifest."""

import hashlib
import json
import logging
import shutil
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from app.desk.errors import AppError, ReleaseDamaged, ReleasePruned, UnknownRelease
from app.home import pruned
from app.home.durable import FileSystem, explaining_full_disk, fault, folder_bytes, freed_by
from app.home.folder import Home
from app.home.manifest import ReleaseManifest
from app.home.pruned import Pruned
from app.home.published import Shelf, sequence
from app.home.shared import MANIFEST, SharedPlace
from ingest.sentence import phrase, to_stored

logger = logging.getLogger(__name__)

KNOWN_SHOWN = 10
# Each is some ten to a hundred kilobytes, and is read several times whenever what is live changes.
_KEPT_MANIFESTS = 64


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """A version, a generation and what is known about the two together."""

    id: str  # the folder's name, `r<seq>-<8 hex of the manifest's sha256>`
    seq: int  # the number in the id
    # everything its maker wrote down: version, generation, gate report, metrics, chunks, when
    manifest: ReleaseManifest
    folder: Path  # where it and its extra files are
    sha256: str  # of the manifest file
    # since when its version and generation are not needed any more; None while it is kept
    pruned: Pruned | None = None

    @property
    def version(self) -> str:
        """Id of its version."""
        return self.manifest.version

    @property
    def generation(self) -> str:
        """Id of its generation."""
        return self.manifest.generation

    def require_kept(self) -> "ReleaseRecord":
        """Returns the release if its encoder and index are kept.

        Raises:
            ReleasePruned: They were removed.
        """
        if self.pruned is not None:
            raise ReleasePruned(
                phrase(
                    "{release} was pruned to free room ({time}): its report is kept, its encoder and index are "
                    "not. Choose another release.",
                    release=self.id,
                    time=self.pruned.time[:16].replace("T", " "),
                )
            )
        return self


class PublishedReleases:
    """Publishes versions, generations and releases, and finds them again."""

    def __init__(self, home: Home, files: FileSystem | None = None) -> None:
        self.home = home
        self.files = files or FileSystem()
        self._shared = SharedPlace(home, self.files)
        self._versions = Shelf(home.versions, "version", self.files, self._shared.now)
        self._generations = Shelf(home.generations, "generation", self.files, self._shared.now)
        self.shelves = self._versions, self._generations  # what a release needs
        self._releases = Shelf(home.releases, "release", self.files, self._shared.now)
        self._manifests: dict[str, ReleaseManifest] = {}  # what was read last, by sha256

    def publish_version(self, staged: Path) -> str:
        """Makes a staged version immutable and returns its id; the same content again gives the id it already has.

        The folder lies below the home, `manifest.json` written last; it is moved away.

        Raises:
            ReleaseDamaged: The folder has no manifest.
            NoSpace: The disk is full.
        """
        return self._versions.publish(staged)

    def known_version(self, staged: Path) -> str | None:
        """Returns the id of the published version that has the content of a folder; None where there is none."""
        return self._versions.known(staged)

    def publish_generation(self, staged: Path) -> str:
        """Makes a staged generation immutable, as `publish_version` does with a version."""
        return self._generations.publish(staged)

    def index_files(self) -> set[str]:
        """Returns the sha256 of every file of published generations.

        Raises:
            ReleaseDamaged: a manifest cannot be read.
        """
        manifests = (self._generations.read(name)[0] for name in self._generations.ids())
        files = (cast("dict[str, dict[str, str]]", one["files"]) for one in manifests)
        return {facts["sha256"] for each in files for facts in each.values()}

    def publish_release(
        self, manifest: ReleaseManifest, extra_files: Mapping[str, bytes] | None = None
    ) -> str:
        """Joins a published version and generation into a release and returns its id; nothing becomes live yet.

        The manifest is without NaN, its checksums are filled in; `extra_files` are contents by file name.

        Raises:
            UnknownRelease: The version or generation is not published.
            NoSpace: The disk is full.
        """
        extras = dict(extra_files or {})
        facts = replace(
            manifest,
            version_sha256=_require_published(self._versions, manifest.version),
            generation_sha256=_require_published(self._generations, manifest.generation),
            files={
                name: {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
                for name, data in extras.items()
            },
        )
        text = json.dumps(to_stored(facts.to_json()), indent=2, sort_keys=True, allow_nan=False)
        fault("release:stage")
        staged = self.home.staging / f"release-{uuid.uuid4().hex}"
        try:
            with explaining_full_disk(self.home.staging, "writing a release"):
                self.files.mkdir(staged)
                for name, data in extras.items():
                    self.files.write(staged / name, data)
                fault("release:write-manifest")
                self.files.write(staged / MANIFEST, f"{text}\n".encode())
            return self._releases.publish(staged)
        except (OSError, AppError):
            shutil.rmtree(staged, ignore_errors=True)
            raise

    def release(self, id_or_prefix: str) -> ReleaseRecord:
        """Finds a release by its id, its number (`r3`) or any unique longer beginning.

        Raises:
            UnknownRelease: None, or more than one, begins so; the sentence lists what there is.
            ReleaseDamaged: Its manifest is not as it was written.
        """
        known = self._releases.ids()
        matches = [name for name in known if _is_meant(name, id_or_prefix)]
        if len(matches) > 1:
            raise UnknownRelease(
                f"{id_or_prefix!r} may mean any of {', '.join(matches)}. Write more of the id."
            )
        if not matches:
            shown = ", ".join(reversed(known[-KNOWN_SHOWN:])) or "none yet"
            raise UnknownRelease(f"There is no release {id_or_prefix!r}. Known, newest first: {shown}.")
        self._releases.bring(matches[0])
        return self._read_release(matches[0])

    def readable(self, id_or_prefix: str) -> ReleaseRecord | None:
        """A release of the past, or None, logged, when it is damaged: what is live must not suffer from it."""
        try:
            return self.release(id_or_prefix)
        except (ReleaseDamaged, UnknownRelease) as error:
            logger.warning("a release of the past is left out: %s", error)
            return None

    def line(self, record: ReleaseRecord) -> Iterator[ReleaseRecord]:
        """Yields a release and those it was made from, as far back as they can be read."""
        yield record
        while record.manifest.parent is not None and (parent := self.readable(record.manifest.parent)):
            record = parent
            yield record

    def releases(self) -> list[ReleaseRecord]:
        """Every readable release, oldest first; damaged ones are left out and logged."""
        records = []
        for name in self._releases.ids():
            try:
                records.append(self._read_release(name))
            except ReleaseDamaged as error:
                logger.warning("left out of the releases: %s", error)
        return records

    def names(self) -> list[str]:
        """The ids of all releases on the shelf, damaged ones too, oldest first."""
        return self._releases.ids()

    def version_folder(self, version: str) -> Path:
        """Returns where a version lies on this machine; where machines share a home, it is fetched when it is missing.

        Raises:
            ReleaseDamaged: it is nowhere, or what came is not what was published.
            ObjectsUnreachable: the bucket does not answer.
        """
        return self._versions.bring(version)

    def generation_folder(self, generation: str) -> Path:
        """Returns where a generation lies on this machine; see `version_folder`."""
        return self._generations.bring(generation)

    def is_here(self, release_id: str) -> bool:
        """Whether all of a release lies on this machine; where machines share the home, some may not.

        Raises:
            UnknownRelease, ReleaseDamaged: its manifest cannot be read.
        """
        if self._shared.now() is None:
            return True
        record = self.release(release_id)
        folders = self.home.versions / record.version, self.home.generations / record.generation
        return all(folder.is_dir() for folder in folders)

    def has_version(self, version: str) -> bool:
        """Whether a version is published."""
        return version in self._versions.ids()

    def version_bytes(self, version: str) -> int:
        """How large the files of a version are that the version it was made from does not have; 0 when it has gone."""
        if not self.has_version(version):
            return 0
        return self._versions.bytes_beside([version], [str(self._versions.read(version)[0].get("parent"))])

    def generation_bytes(self, record: ReleaseRecord) -> int:
        """How large the files of a release's generation are that the release it was made from does not have."""
        before = self.readable(record.manifest.parent) if record.manifest.parent else None
        return self._generations.bytes_beside([record.generation], [before.generation] if before else [])

    def freed_by(self, folders: Collection[Path]) -> int:
        """How much room removing folders leaves: in the bucket, where there is one; on the disk otherwise."""
        if self._shared.now():
            names = {folder.name for folder in folders}
            return sum(shelf.bytes_beside(names, {*shelf.ids()} - names) for shelf in self.shelves)
        # The graphs that a version got later go with it.
        return freed_by([*folders, *(self.home.graphs / folder.name for folder in folders)])

    def bytes_to_open(self, record: ReleaseRecord) -> int:
        """How large the files are, together, of all that a search by a release reads, which come to this machine."""
        folders = self.version_folder(record.version), self.generation_folder(record.generation)
        return sum(map(folder_bytes, folders))

    def kept(self, but: Collection[str] = ()) -> list[ReleaseManifest] | None:
        """What the kept releases say of themselves; None when one cannot be read: nobody knows what it needs."""
        try:
            records = [self._read_release(name) for name in self._releases.ids()]
        except ReleaseDamaged:
            return None
        return [record.manifest for record in records if record.pruned is None and record.id not in but]

    def mark_pruned(self, names: Collection[str], *, by: str, why: str) -> None:
        """Marks releases as pruned, durably; from then on nothing needs their versions and generations any more."""
        shared = self._shared.now()
        for name in names:
            mark = pruned.mark(self.home.pruned, name, by=by, why=why, files=self.files)
            if shared:
                shared.rows.mark_pruned(name, mark.to_json())

    def _read_release(self, release_id: str) -> ReleaseRecord:
        document, digest = self._releases.read(release_id)
        manifest = self._manifests.get(digest)
        if manifest is None:
            try:
                manifest = ReleaseManifest.from_json(document)
            except (KeyError, TypeError) as error:
                raise ReleaseDamaged(
                    f"The manifest of release {release_id} is none of a release ({error!r})."
                ) from error
            if len(self._manifests) >= _KEPT_MANIFESTS:
                self._manifests.clear()
            self._manifests[digest] = manifest
        return ReleaseRecord(
            id=release_id,
            seq=sequence(release_id),
            manifest=manifest,
            folder=self._releases.folder / release_id,
            sha256=digest,
            pruned=self._pruned(release_id),
        )

    def _pruned(self, release_id: str) -> Pruned | None:
        shared = self._releases.lately()
        if shared:
            return pruned.of_json(shared.rows.pruned(release_id), release_id)
        return pruned.read(self.home.pruned, release_id)


def _require_published(shelf: Shelf, named: str) -> str:
    """The manifest checksum of the version or generation that a release names."""
    known = shelf.ids()
    if named not in known:
        raise UnknownRelease(
            f"A release names {shelf.label} {named!r}, which is not published. "
            f"Known, newest first: {', '.join(reversed(known[-KNOWN_SHOWN:])) or 'none yet'}."
        )
    _, digest = shelf.read(named)
    return digest


def _is_meant(release_id: str, text: str) -> bool:
    """Whether `text` is an id or its beginning; `r3` is r3-… and never r30-…."""
    return release_id == text or release_id.startswith(text if "-" in text else f"{text}-")
