"""What is live: the commits that choose among what is published, and what of that is damaged.

A version and a generation are published first, then a release that names both by the checksum of their
manifests, then the commit. Whoever reads the newest commit that checks out therefore finds an encoder
and an index that belong together, whenever the machine stopped.
"""

import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from types import MappingProxyType

from app.desk.errors import (
    NoRelease,
    ParentMoved,
    ReleaseDamaged,
    ReleasePruned,
    UnknownRelease,
    UsageProblem,
)
from app.desk.health import SkippedCommit
from app.home import holding, lock
from app.home.commits import REASONS, CommitLog, CommitPlace, CommitRecord, Debt, now
from app.home.damage import Damage, is_passing
from app.home.durable import FileSystem
from app.home.folder import Home
from app.home.published import Shelf
from app.home.releases import PublishedReleases, ReleaseRecord
from model_updates.version_files import GRAPHS

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the commit log says now."""

    commit: CommitRecord | None  # the highest commit that can be trusted, if any
    skipped: tuple[SkippedCommit, ...]  # higher ones that cannot, newest first
    highest: int  # the highest number in use; 0 when there is none


class ReleaseStore(PublishedReleases):
    """Makes published releases live, and knows which are damaged."""

    def __init__(self, home: Home, files: FileSystem | None = None) -> None:
        super().__init__(home, files)
        self._log = CommitLog(CommitPlace(home, self.files))
        self.damage = Damage(home.damaged)  # what was found damaged
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

    def fetch_live(self) -> None:
        """Fetches what is live, where machines share the home: who holds a lock would wait for it otherwise."""
        if self._releases.lately() is not None:
            self.standing()

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


def _say_commit(number: int | None) -> str:
    return "an empty home" if number is None else f"commit {number}"
