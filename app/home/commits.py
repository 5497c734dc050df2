"""The commit log: small numbered records that say which release is live since when.

They lie in files of the home, or where its catalog lies in a database, in that (`app.home.commit_files`,
`ingest.commit_rows`). What is written under a number is never written again: that is the one step at which a release
becomes live, and it fails when the number is taken, so of several writers exactly one wins. Numbers only grow; a
rollback is a new commit that names an older release.
"""

import hashlib
import json
import logging
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from app.desk.errors import CommitUnconfirmed, HomeDamaged, ParentMoved, ReleaseDamaged
from app.desk.health import SkippedCommit
from app.home.commit_files import CommitFiles, Unconfirmed
from app.home.durable import FileSystem
from app.home.folder import Home
from ingest.errors import CatalogError, CommitUnknown

logger = logging.getLogger(__name__)

REASONS = ("init", "promote", "rollback", "ingest")


@dataclass(frozen=True, slots=True)
class Debt:
    """What a person accepted to lose on a slice by promoting in spite of a review."""

    slice: str  # language and domain, `de/photo`
    view: str  # in which it was measured (`model_updates.evaluation.View`)
    points: float  # of the gate's metric
    who: str  # accepted it
    why: str  # in that person's words


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One change of the live release."""

    number: int  # higher is newer
    release: str  # the release that it made live
    release_sha256: str  # of that release's manifest
    parent: int | None  # the commit that was current before; None for the first
    reason: str  # one of `REASONS`
    why: str  # a sentence for people
    by: str  # who did it
    time: str  # UTC in ISO form
    debt: tuple[Debt, ...] = ()  # what was accepted to be lost with it; most commits have none
    # newer commits that cannot be trusted; filled by `ReleaseStore.current` only
    skipped: tuple[SkippedCommit, ...] = field(default=(), compare=False)


def now() -> str:
    """Returns the time as ISO 8601 in UTC, to the second."""
    return datetime.now(UTC).isoformat("T", "seconds")


class Commits(Protocol):
    """Where commits are kept: bytes under numbers, each of which is written once."""

    def numbers(self) -> list[int]:
        """Returns all numbers in use, ascending."""
        ...

    def read(self, number: int) -> bytes | None:
        """Returns what was written under a number, or None; an OSError where it cannot be read."""
        ...

    def read_many(self, numbers: Collection[int]) -> dict[int, bytes]:
        """Returns what was written under some numbers, as far as it can be read."""
        ...

    def put_if_absent(self, number: int, data: bytes) -> bool:
        """Writes, durably, under a number that nobody has written under; says whether that was so."""
        ...


class CommitPlace:
    """Says where the commits of a home are kept, whenever it is asked: they may be moved meanwhile."""

    def __init__(self, home: Home, files: FileSystem) -> None:
        self._home, self._files = home, files
        self._last: tuple[Path | str, Commits] | None = None

    def now(self) -> Commits:
        """Returns where they are kept now.

        Raises:
            HomeDamaged: `engines.toml` cannot be read.
        """
        place = self._home.commits_place
        if self._last is None or self._last[0] != place:
            self._last = place, kept_at(place, self._home, self._files)
        return self._last[1]

    def for_reading(self) -> Commits:
        """Returns the same, or where they were kept before while a new place cannot be read."""
        before = self._last
        try:
            found = self.now()
            if before is not None and found is not before[1]:
                found.numbers()
            return found
        except (CatalogError, HomeDamaged) as error:
            if before is None:
                raise
            logger.warning("commits are read where they were kept before: %s", error)
            self._last = before
            return before[1]


def kept_at(place: Path | str, home: Home, files: FileSystem) -> Commits:
    """Returns the commits of a home that lie in a folder, or in the database at an address."""
    if isinstance(place, Path):
        return CommitFiles(place, files)
    from ingest.commit_rows import CommitRows  # loads what connects to PostgreSQL

    return CommitRows(place, owner=home.identity)


def carry_commits(old: Commits, new: Commits) -> None:
    """Writes all commits to another place as well, as they are; some may be there already, and no others.

    Raises:
        HomeDamaged: another one is there, or one cannot be read, and nothing was written; or the disk failed.
    """
    numbers = old.numbers()
    carried = old.read_many(numbers)
    unread = set(numbers) - carried.keys()
    if unread:
        raise HomeDamaged(
            f"Commit {min(unread)} cannot be read, so nothing was moved; `perennial doctor` says more."
        )
    there = new.read_many(new.numbers())
    others = [number for number in there if there[number] != carried.get(number)]
    if others:
        raise HomeDamaged(
            f"Commit {min(others)} is another one there than here, or is not here; nothing was changed. Where a "
            "database was put back from a backup, move what lies in the home's `commits/` away, and try again."
        )
    try:
        for number in sorted(carried.keys() - there.keys()):
            new.put_if_absent(number, carried[number])
    except Unconfirmed as error:
        raise HomeDamaged(
            f"The disk failed to keep a commit ({error}), so the catalog stays where it was. Check the disk, and "
            "try again."
        ) from error


class CommitLog:
    """The commits of a home, read and checked."""

    def __init__(self, kept: CommitPlace) -> None:
        self._kept = kept

    def numbers(self) -> list[int]:
        """All numbers in use, damaged commits included, ascending."""
        return self._kept.for_reading().numbers()

    def read(self, number: int) -> CommitRecord:
        """Reads one commit.

        Raises:
            ReleaseDamaged: Missing, or not as it was written.
        """
        try:
            data = self._kept.for_reading().read(number)
        except OSError as error:
            raise ReleaseDamaged(f"Commit {number} cannot be read ({error.strerror}).") from error
        if data is None:
            raise ReleaseDamaged(f"Commit {number} cannot be read (it is not there).")
        return _checked(number, data)

    def read_all(self) -> Iterator[CommitRecord | ReleaseDamaged]:
        """Yields every commit, the oldest first, or why it cannot be read."""
        numbers = self.numbers()
        found = self._kept.for_reading().read_many(numbers)
        for number in numbers:
            try:
                yield _checked(number, found[number]) if number in found else self.read(number)
            except ReleaseDamaged as error:
                yield error

    def append(self, record: CommitRecord) -> None:
        """Makes a commit durable; when this returns, the release is live whatever happens.

        Raises:
            ParentMoved: Somebody else took the number first.
            NoSpace: The disk is full; nothing has changed.
            CommitUnconfirmed: The commit is live but the disk failed to confirm it, or a database may have it.
        """
        try:
            is_first = self._kept.now().put_if_absent(record.number, _encode(record))
        except Unconfirmed as error:
            # Taking it back would reuse a number that a reader may have seen.
            raise CommitUnconfirmed(
                f"Release {record.release} is live as commit {record.number}, but the disk reported an error "
                f"({error}): a power cut may undo it. Check the disk, then promote again."
            ) from error
        except CommitUnknown as error:
            raise CommitUnconfirmed(
                f"Whether release {record.release} is live as commit {record.number} is not known yet. {error} "
                "Once the database answers, `perennial status` says it."
            ) from error
        if not is_first:
            raise ParentMoved(
                f"Somebody else wrote commit {record.number} at the same moment. "
                "Check again against the release that is live now."
            )


def _checked(number: int, data: bytes) -> CommitRecord:
    try:
        record = _decode(data.partition(b"\n")[0])
    except (ValueError, TypeError, RecursionError) as error:
        raise ReleaseDamaged(f"Commit {number} is not a commit ({error}).") from error
    if record.number != number or _encode(record) != data:
        raise ReleaseDamaged(f"Commit {number} fails its checksum.")
    return record


def _decode(text: bytes) -> CommitRecord:
    facts = json.loads(text)
    return CommitRecord(**facts | {"debt": tuple(Debt(**owed) for owed in facts.get("debt", ()))})


def _encode(record: CommitRecord) -> bytes:
    # A commit without debt is written as it was before there was such a thing.
    left_out = {"skipped"} if record.debt else {"skipped", "debt"}
    names = [entry.name for entry in fields(record) if entry.name not in left_out]
    facts = asdict(record)
    text = json.dumps({name: facts[name] for name in names})
    return f"{text}\n{hashlib.sha256(text.encode()).hexdigest()}\n".encode()
