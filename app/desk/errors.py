"""What can go wrong for the person in front of the application; each error is one clear sentence.

AppError                   exit code 1 unless a leaf says otherwise
├── UsageProblem           2: what was asked makes no sense as asked
│   ├── NothingBefore      what is live is the first release
│   ├── UnknownFeedback    nobody said anything of this number
│   └── UnknownCanary      no query is pinned in these words and this language
├── BadQuery               2: a query that cannot be searched for
├── CaptionsNotReady       5: captions are being embedded; ask again later
├── NoHome                 there is no Perennial home at this place
├── HomeDamaged            a file that everything else refers to has gone
├── NewerFormat            the home was written by a newer Perennial
├── NoRelease              nothing has been released yet, or nothing released can be trusted
├── UnknownRelease         no release has this id or prefix
├── ReleasePruned          a release's encoder and index were removed to free room
├── ReleaseDamaged         a release, version, generation or commit fails its checksum
├── PackageDamaged         a file to import is not what an export wrote
├── CommitUnconfirmed      a commit is live but the disk failed to confirm it, or may be live
├── NoSpace                the disk has less room than the work needs
├── NoMemory               this machine has less memory than the work needs
├── UpdateRunning          5: another process holds the updater lock
├── ParentMoved            5: another commit became current since this one was prepared
├── ChunkHeld              4: a chunk teaches nothing until a person accepts it
├── JobFailed              a job did not end well; with the exit code that it had in its own process
├── AddressRefused         a server cannot listen at the address that it was given
├── ClusterUnusable        the Ray cluster that the settings name cannot be used, or failed
├── TooBusy                5: more is asked than the server can do soon
└── NotAllowed             the account may not do this
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from ingest.records import JobRecord


class AppError(Exception):
    """A sentence for the user and the exit code that goes with it.

    Attributes:
        message: What was asked, what was found, what to do.
        exit_code: 1 error, 2 usage, 3 rejected, 4 needs review, 5 busy.
    """

    default_exit_code: ClassVar[int] = 1

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = self.default_exit_code if exit_code is None else exit_code


class UsageProblem(AppError):
    """What was asked makes no sense as asked."""

    default_exit_code = 2


class NothingBefore(UsageProblem):
    """What is live is the first release of its home: there is none to go back to."""


class BadQuery(AppError):
    """A query cannot be searched for.

    Attributes:
        at: where in the query the trouble is, from 0; None where it is nowhere in particular.
    """

    default_exit_code = 2

    def __init__(self, message: str, exit_code: int | None = None, *, at: int | None = None) -> None:
        super().__init__(message, exit_code)
        self.at = at


class CaptionsNotReady(AppError):
    """Captions are being embedded; ask again later."""

    default_exit_code = 5


class NoHome(AppError):
    """There is no Perennial home at this place."""


class HomeDamaged(AppError):
    """A file that everything else refers to has gone."""


class NewerFormat(AppError):
    """The home was written by a newer Perennial."""


class NoRelease(AppError):
    """Nothing has been released yet, or nothing released can be trusted."""


class UnknownRelease(AppError):
    """No release has this id or prefix."""


class ReleasePruned(AppError):
    """A release's encoder and index were removed to free room."""


class ReleaseDamaged(AppError):
    """A release, version, generation or commit fails its checksum."""


class PackageDamaged(AppError):
    """A file to import is not what an export wrote."""


class CommitUnconfirmed(AppError):
    """A commit is live but the disk failed to confirm it, or may be: the database did not say so."""


class NoSpace(AppError):
    """The disk has less room than the work needs."""


class NoMemory(AppError):
    """This machine has less memory than the work needs."""


class UpdateRunning(AppError):
    """Another process holds the updater lock."""

    default_exit_code = 5


class ParentMoved(AppError):
    """Another commit became current since this one was prepared."""

    default_exit_code = 5


class ChunkHeld(AppError):
    """A chunk teaches nothing until a person accepts it."""

    default_exit_code = 4


class UnknownFeedback(UsageProblem):
    """There is no feedback of this number."""


class UnknownCanary(UsageProblem):
    """No query is pinned in these words and this language."""


class JobFailed(AppError):
    """A job did not end well.

    Attributes:
        code: the name that the reason had in the job's own process.
    """

    def __init__(self, job: JobRecord) -> None:
        resumed = f"`perennial update --resume {job.id}` goes on with it."
        sentence = job.error or f"Job {job.id} is {job.state}. {resumed}"
        super().__init__(sentence, int(job.result.get("exit_code", 1)))
        self.code = str(job.result.get("code", "job_failed"))


class AddressRefused(AppError):
    """A server cannot listen at the address that it was given."""


class ClusterUnusable(AppError):
    """The Ray cluster that the settings name cannot be used, or failed."""


class TooBusy(AppError):
    """More is asked than the server can do soon."""

    default_exit_code = 5


class NotAllowed(AppError):
    """The account may not do this."""
