"""What is published and what is live: immutable folders, and the commits that choose among them.

A version and a generation are published first, then a release that names both by the checksum of their
manifests, then the commit. Whoever reads the newest commit that checks out therefore finds an encoder
and an index that belong together, whenever the machine stopped. (Longer than other files because it is
the one door to all of this; the work is in `published`, `commits` and `lock`.)
"""

import hashlib
import json
import logging
import shutil
import threading
import uuid
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import cast

from app.desk.errors import (
    AppError,
    NoRelease,
    ParentMoved,
    ReleaseDamaged,
    ReleasePruned,
    UnknownRelease,
    UsageProblem,
)
from app.desk.health import SkippedCommit
from app.home import holding, lock, pruned
from app.home.commits import REASONS, CommitLog, CommitPlace, CommitRecord, Debt, now
from app.home.damage import Damage, is_passing
from app.home.durable import FileSystem, explaining_full_disk, fault, folder_bytes, freed_by
from app.home.folder import Home
from app.home.manifest import ReleaseManifest
from app.home.pruned import Pruned
from app.home.published import Shelf, sequence
from app.home.shared import MANIFEST, SharedPlace
from ingest.sentence import phrase, to_stored
from model_updates.version_files import GRAPHS

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
    pruned: Pruned | None = (
        None  # since when its version and generation are not needed any more; None while it is kept
    )

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


@dataclass(frozen=True, slots=True)
class Standing:
    """What the commit log says now."""

    commit: CommitRecord | None  # the highest commit that can be trusted, if any
    skipped: tuple[SkippedCommit, ...]  # higher ones that cannot, newest first
    highest: int  # the highest number in use; 0 when there is none


class ReleaseStore:
    """Publishes versions, generations and releases, and makes releases live."""

    def __init__(self, home: Home, files: FileSystem | None = None) -> None:
        self.home = home
        self.files = files or FileSystem()
        self._log = CommitLog(CommitPlace(home, self.files))
        self._shared = SharedPlace(home, self.files)
        self._versions = Shelf(home.versions, "version", self.files, self._shared.now)
        self._generations = Shelf(home.generations, "generation", self.files, self._shared.now)
        self.shelves = self._versions, self._generations  # what a release needs
        self._releases = Shelf(home.releases, "release", self.files, self._shared.now)
        self.damage = Damage(home.damaged)  # what was found damaged
        self._manifests: dict[str, ReleaseManifest] = {}  # what was read last, by sha256
        # A thread, not a flag: another thread of this process is another updater.
        self._locked_by: int | None = None

    @contextmanager
    def updater_lock(self, what: str = "updating") -> Iterator[None]:
        """Keeps every other updater out while the block runs; `what` is being done, for others to read.

        Raises:
            UpdateRunning: Somebody else is at it; the sentence names who and since when.
        """
        with holding.hold(self.home, holding.UPDATER, what):
            self._locked_by = threading.get_ident()
            try:
                yield
            finally:
                self._locked_by = None

    def lock_unless_held(self, what: str) -> AbstractContextManager[None]:
        """The updater lock, unless this thread holds it already."""
        if self._locked_by == threading.get_ident():
            return nullcontext()
        return self.updater_lock(what)

    def lock_holder(self) -> lock.LockHolder | None:
        """Who is updating now, or None."""
        return holding.holder(self.home, holding.UPDATER)

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
        encoded = (
            json.dumps(to_stored(facts.to_json()), indent=2, sort_keys=True, allow_nan=False) + "\n"
        ).encode()
        fault("release:stage")
        staged = self.home.staging / f"release-{uuid.uuid4().hex}"
        try:
            with explaining_full_disk(self.home.staging, "writing a release"):
                self.files.mkdir(staged)
                for name, data in extras.items():
                    self.files.write(staged / name, data)
                fault("release:write-manifest")
                self.files.write(staged / MANIFEST, encoded)
            return self._releases.publish(staged)
        except (OSError, AppError):
            shutil.rmtree(staged, ignore_errors=True)
            raise

    def commit(
        self,
        release_id: str,
        *,
        parent: int | None,
        reason: str,
        why: str,
        by: str,
        debt: tuple[Debt, ...] = (),
    ) -> CommitRecord:
        """Makes a release live, if nothing else became live since it was checked.

        `parent` is the number of the commit it was checked against, None when there was none; `reason` is one of
        `REASONS`. The new commit is durable.

        Raises:
            ParentMoved: Another commit is current, or was written at the same moment.
            UnknownRelease: There is no such release.
            ReleasePruned: It was pruned.
            ReleaseDamaged: The release, its version or its generation is damaged.
            NoSpace: The disk is full; nothing has changed.
            CommitUnconfirmed: It is live but the disk failed to confirm it, or may be: a database did not say.
            CatalogUnreachable, CatalogHeld, CatalogMoved: The database that has the commits takes none now.
        """
        if reason not in REASONS:
            raise UsageProblem(f"A commit's reason is one of {', '.join(REASONS)}; {reason!r} is not.")
        self.fetch_live()
        with holding.briefly(self.home, alone=False):  # or it may be pruned meanwhile
            return self._commit(release_id, parent=parent, reason=reason, why=why, by=by, debt=debt)

    def _commit(
        self, release_id: str, *, parent: int | None, reason: str, why: str, by: str, debt: tuple[Debt, ...]
    ) -> CommitRecord:
        record = self.release(release_id)
        self._require_intact(record)
        standing = self.standing()
        current = standing.commit.number if standing.commit else None
        if current != parent:
            raise ParentMoved(
                f"Release {record.id} was checked against {_say_commit(parent)}, but {_say_commit(current)} "
                "is current now. Check it against the live release again."
            )
        commit = CommitRecord(
            # Not current + 1: a damaged commit above the current one keeps its number.
            number=standing.highest + 1,
            release=record.id,
            release_sha256=record.sha256,
            parent=parent,
            reason=reason,
            why=why,
            by=by,
            time=now(),
            debt=debt,
        )
        self._log.append(commit)
        logger.info("commit %d: release %s is live (%s by %s)", commit.number, record.id, reason, by)
        return commit

    def current(self, refused: Mapping[int, str] = MappingProxyType({})) -> CommitRecord | None:
        """The highest commit that can be trusted, with the ones above it in `skipped`; None before the first.

        `refused` are commits whose release cannot be served, and why.

        Raises:
            NoRelease: There are commits, but not one can be trusted.
        """
        standing = self.standing(refused=refused)
        if standing.commit is not None:
            return replace(standing.commit, skipped=standing.skipped)
        if standing.skipped:
            if self.standing(with_index=False, refused=refused).commit is not None:
                raise NoRelease(
                    f"{standing.skipped[0].why} `perennial repair` makes the index again of what is kept of the "
                    "pictures, and so does the next `perennial add`. Or restore the home from a backup."
                )
            raise NoRelease(
                f"None of the {len(standing.skipped)} commits can be trusted. The newest: "
                f"{standing.skipped[0].why} `perennial repair` mends what it can; or restore the home from a backup."
            )
        return None

    def standing(
        self, *, with_index: bool = True, refused: Mapping[int, str] = MappingProxyType({})
    ) -> Standing:
        """What the commit log says, without raising over damage; `with_index` counts that of an index, too."""
        skipped: list[SkippedCommit] = []
        numbers = self._log.numbers()
        highest = numbers[-1] if numbers else 0
        for number in reversed(numbers):
            try:
                if number in refused:
                    raise ReleaseDamaged(refused[number])
                commit = self._log.read(number)
                record = self.release(commit.release)
                if record.sha256 != commit.release_sha256:
                    raise ReleaseDamaged(f"Release {record.id} is not the one that was committed.")
                self._require_intact(record, with_index=with_index)
            except (ReleaseDamaged, ReleasePruned, UnknownRelease) as error:
                since = self.damage.note(f"commit-{number}", error.message).since
                skipped.append(SkippedCommit(number, error.message, since))
            else:
                return Standing(commit, tuple(skipped), highest)
        return Standing(None, tuple(skipped), highest)

    def history(self) -> list[CommitRecord]:
        """Every readable commit, oldest first; damaged ones are left out and logged."""
        commits = []
        for one in self._log.read_all():
            if isinstance(one, CommitRecord):
                commits.append(one)
            else:
                logger.warning("skipped in the history: %s", one)
        return commits

    def has_gone_back(self, number: int, release_id: str) -> bool:
        """Whether a commit is none of the log any more: the log was put back from a backup."""
        try:
            return self._log.read(number).release != release_id
        except ReleaseDamaged:
            return number not in self._log.numbers()

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

    def fetch_live(self) -> None:
        """Fetches what is live, where machines share the home: who holds a lock would wait for it otherwise."""
        if self._releases.lately() is not None:
            self.standing()

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
        return sum(
            map(
                folder_bytes, (self.version_folder(record.version), self.generation_folder(record.generation))
            )
        )

    def verify_release(
        self,
        id_or_prefix: str,
        *,
        every_byte: bool = True,
        with_graphs: bool = True,
        with_index: bool = True,
    ) -> ReleaseRecord:
        """Reads every byte of a release, its version and its generation; or only compares their sizes.

        Without what does not count: graphs are made again of its weights, an index of its pictures.

        Raises:
            UnknownRelease: There is no such release.
            ReleasePruned: It was pruned.
            ReleaseDamaged: Something is missing or changed.
        """
        record = self.release(id_or_prefix)
        self._require_intact(record, every_byte=every_byte, with_graphs=with_graphs, with_index=with_index)
        return record

    def find_damage(self, record: ReleaseRecord) -> bool:
        """Reads every byte of a release, marks what is damaged so that it is passed over, and says whether anything is.

        Raises:
            ReleasePruned: It was pruned.
            ReleaseDamaged, OSError: It cannot be read now, for want of files or memory; nothing is marked.
        """
        is_damaged = False
        for shelf, name, sha256 in self._parts(record.require_kept()):
            try:
                shelf.verify(name, sha256, every_byte=True, leave_out=GRAPHS)  # which are made again
            except (ReleaseDamaged, OSError) as error:
                if is_passing(error):
                    raise
                is_damaged = True
                self.damage.note(name, str(error), shelf.folder / name)
                logger.error("%s", error)
        if is_damaged:
            from index.segment import forget_held  # loads FAISS, which listing releases does without

            forget_held()
        return is_damaged

    def fetch_damaged(self, record: ReleaseRecord) -> list[str]:
        """Fetches what is damaged of a release again, where machines share the home; returns its names.

        Raises:
            ReleasePruned: It was pruned.
            ObjectsUnreachable: The bucket does not answer.
        """
        fetched = []
        for shelf, name, sha256 in self._parts(record.require_kept()):
            try:
                shelf.verify(name, sha256, every_byte=True, leave_out=GRAPHS)
            except ReleaseDamaged as error:
                if shelf.bring_again(name):
                    logger.warning("%s was fetched again: %s", name, error)
                    self.damage.forget(name)
                    fetched.append(name)
        return fetched

    def read_through(self, sound: str = "") -> Standing:
        """What the commit log says once every byte of what is live was read, but for a release known to be `sound`.

        What is damaged is marked and passed over.
        """
        while True:
            standing = self.standing()
            live = standing.commit
            if live is None or live.release == sound or not self.find_damage(self.release(live.release)):
                return standing

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

    def _require_intact(
        self,
        record: ReleaseRecord,
        *,
        every_byte: bool = False,
        with_index: bool = True,
        with_graphs: bool = False,
    ) -> None:
        for shelf, name, sha256 in self._parts(record.require_kept(), with_index=with_index):
            leave_out = None if with_graphs else GRAPHS
            shelf.verify(name, sha256, every_byte=every_byte, leave_out=leave_out)
            mark = None if every_byte else self.damage.of(shelf.folder / name)
            if mark is not None:
                raise ReleaseDamaged(mark.why)

    def _parts(self, record: ReleaseRecord, *, with_index: bool = True) -> Iterator[tuple[Shelf, str, str]]:
        """Yields the folders of a release, each with its shelf and the sha256 of its manifest."""
        manifest = record.manifest
        yield self._releases, record.id, record.sha256
        yield self._versions, manifest.version, manifest.version_sha256
        if with_index:
            yield self._generations, manifest.generation, manifest.generation_sha256


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


def _say_commit(number: int | None) -> str:
    return "an empty home" if number is None else f"commit {number}"
