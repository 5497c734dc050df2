"""The desk as a server keeps it: an opened home with its snapshot loaded, places for queries, and jobs followed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING

from app.desk.errors import TooBusy, UsageProblem
from app.desk.releases import SUFFIX, Exported
from app.home.durable import sha256_of
from app.local.at_home import AtHome
from app.server.places import PATIENCE_SECONDS
from app.server.security import OWNER, Account
from app.server.serving import Serving
from ingest.records import FINAL_STATES, JobRecord

if TYPE_CHECKING:
    from app.desk.health import Degraded
    from app.desk.hits import SearchAnswer
    from app.desk.opinions import ShadowReport
    from app.query.finder import Finder
    from app.query.question import Question
    from app.query.snapshot import Snapshot


class Served(AtHome):
    """What one account may ask of a server; made for each request."""

    def __init__(self, serving: Serving, account: Account) -> None:
        super().__init__(serving.settings, by=account.name, workspace=serving.workspace)
        self._serving, self._account = serving, account

    @property
    def where(self) -> str:
        """Nothing: whoever asks from elsewhere knows the address, and need not know the folder."""
        return ""

    @cached_property
    def finder(self) -> Finder:
        """The engine of the server, which does not wait for captions to be embedded."""
        return self._serving.finder

    def snapshot(self, release: str | None = None) -> Snapshot:
        """Returns the live snapshot, or that of any release; the last few others stay loaded.

        The owner's commands see what went live, or left the gallery, a moment ago: they would without a server.
        """
        if self._account is OWNER:
            self._serving.catch_up()
        return self._serving.snapshot(release)

    def find(self, question: Question) -> SearchAnswer:
        """Answers a question; it is counted and timed, answered or not, unless pictures are only browsed."""
        if not question.terms:
            return super().find(question)
        return self._serving.metrics.counted(self._serving, partial(super().find, question))

    def note(self, question: Question, answer: SearchAnswer, snapshot: Snapshot, *, is_live: bool) -> None:
        """Counts the language, and may have the candidate in the shadow asked the same."""
        self._serving.languages_asked.note(question, answer, snapshot)
        if is_live:
            self._serving.shadowing.note(question, answer, snapshot)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Holds a place for a query, and holds back the shadow meanwhile."""
        with self._serving.searching.taken(), self._serving.shadowing.held_back():
            yield

    def packing(self) -> AbstractContextManager[None]:
        """Holds the place for drawing many pictures."""
        return self._serving.packing.taken()

    def begin(self, job: JobRecord) -> None:
        """Has a thread of the server start a job and follow it."""
        self._serving.work.follow(job)

    expect = begin

    def is_over(self, job: JobRecord) -> bool:
        """Whether nothing more happens with a job by itself."""
        return self._serving.work.is_over(job)

    def changed_gallery(self) -> None:
        """Hides at once what left the gallery."""
        self._serving.hide()

    def in_use(self) -> frozenset[str]:
        """Returns the releases that people asked lately."""
        return self._serving.loaded()

    def went_live(self) -> None:
        """Answers from the newest commit."""
        self._serving.refresh()

    @contextmanager
    def intake_turn(self) -> Iterator[None]:
        """Waits until no upload is being taken in: accepted pairs get splits and groups as theirs do, one by one."""
        turn = self._serving.work.intake
        if not turn.acquire(timeout=PATIENCE_SECONDS):
            raise TooBusy("An upload is being taken in; accept pairs when it has ended.")
        try:
            yield
        finally:
            turn.release()

    def may_see_all(self) -> bool:
        """Whether who asks is an admin."""
        return self._account.may("admin")

    def may_add(self) -> bool:
        """Whether who asks may upload."""
        return self._account.may("contributor")

    def may_see_places(self) -> bool:
        """Whether the role of who asks is told where pictures lie."""
        return self._account.may(self.installed.places_for)

    def require_admin(self) -> None:
        """Refuses who is no admin."""
        self._account.require_admin()

    @property
    def withheld(self) -> frozenset[str]:
        """The pictures that somebody took out."""
        return self._serving.withheld

    @property
    def problem(self) -> str:
        """Why the newest release is not the one that answers."""
        return self._serving.problem or ""

    def degraded(self) -> tuple[Degraded, ...]:
        """Returns what is not as it should be, as the server saw it a moment ago."""
        return self._serving.degraded

    def job(self, job: str) -> JobRecord:
        """Returns a job; what one that has ended made live answers from then on."""
        found = super().job(job)
        if found.state in FINAL_STATES:
            self._serving.refresh()
        return found

    def taking_in(self) -> JobRecord | None:
        """Returns the job that takes pictures in, else the next that is to."""
        waiting = [*self.catalog.jobs(state="running"), *self.catalog.jobs(state="queued")[::-1]]
        return next((one for one in waiting if one.kind in {"ingest", "folder"}), None)

    def packed(self, release: str) -> Exported:
        """Returns a release's package, made now or up to a day ago; what lies in staging goes by itself.

        Raises:
            UnknownRelease, ReleaseDamaged, NoSpace: nothing was written.
        """
        record = self.store.release(release)
        folder = self.home.staging / f"export-{record.id}"
        folder.mkdir(exist_ok=True)
        path = folder / f"{record.id}{SUFFIX}"
        if not path.is_file():
            try:
                return self.export(record.id, folder)
            except UsageProblem:
                if not path.is_file():  # else another who asked at the same time was first
                    raise
        # Written whole or not at all, and a release never changes.
        return Exported(record.id, path, path.stat().st_size, sha256_of(path))

    def shadow(self, release: str) -> ShadowReport:
        """Returns what the shadow of a release has shown, what was counted just now included."""
        return self._serving.shadowing.report(release)
