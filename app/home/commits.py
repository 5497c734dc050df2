"""The commit log: small numbered files that say which release is live since when.

A commit is written beside the log, made durable, and then linked under its number: the link is the one
step at which a release becomes live, and fails when the number is taken, so of several writers exactly
one wins. Numbers only grow; a rollback is a new commit that names an older release.
"""

import hashlib
import json
import re
import uuid
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path

from app.desk.errors import CommitUnconfirmed, ParentMoved, ReleaseDamaged
from app.desk.health import SkippedCommit
from app.home.durable import FileSystem, explaining_full_disk, fault

REASONS = ("init", "promote", "rollback", "ingest")
TEMPORARY_PREFIX = ".tmp-"
_NAME = re.compile(r"([0-9]{8})\.json")


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


class CommitLog:
    """The folder of commits."""

    def __init__(self, folder: Path, files: FileSystem) -> None:
        self._folder = folder
        self._files = files

    def numbers(self) -> list[int]:
        """All numbers in use, damaged commits included, ascending."""
        matches = (_NAME.fullmatch(path.name) for path in self._folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def read(self, number: int) -> CommitRecord:
        """Reads one commit.

        Raises:
            ReleaseDamaged: Missing, or not as it was written.
        """
        try:
            data = self._path(number).read_bytes()
            record = _decode(data.partition(b"\n")[0])
        except OSError as error:
            raise ReleaseDamaged(f"Commit {number} cannot be read ({error.strerror}).") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise ReleaseDamaged(f"Commit {number} is not a commit ({error}).") from error
        if record.number != number or _encode(record) != data:
            raise ReleaseDamaged(f"Commit {number} fails its checksum.")
        return record

    def append(self, record: CommitRecord) -> None:
        """Makes a commit durable; when this returns, the release is live whatever happens.

        Raises:
            ParentMoved: Somebody else took the number first.
            NoSpace: The disk is full; nothing has changed.
            CommitUnconfirmed: The commit is live but the disk failed to confirm it.
        """
        temporary = self._folder / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        target = self._path(record.number)
        with explaining_full_disk(self._folder, f"writing commit {record.number}"):
            fault("commit:write")
            self._files.write(temporary, _encode(record))
            fault("commit:fsync-file")
            self._files.fsync_file(temporary)
            fault("commit:link")
            try:
                self._files.link(temporary, target)
            except FileExistsError as error:
                self._files.unlink(temporary)
                raise ParentMoved(
                    f"Somebody else wrote commit {record.number} at the same moment. "
                    "Check again against the release that is live now."
                ) from error
        try:
            fault("commit:fsync-commits")
            self._files.fsync_dir(self._folder)
            fault("commit:unlink-temporary")
            self._files.unlink(temporary)
        except OSError as error:
            # The link stands: taking it back would reuse a number that a reader may have seen.
            raise CommitUnconfirmed(
                f"Release {record.release} is live as commit {record.number}, but the disk reported an error "
                f"({error.strerror}): a power cut may undo it. Check the disk, then promote again."
            ) from error

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}.json"


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
