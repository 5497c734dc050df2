"""What every operation on a home stands on: the home itself, who asks, and what a server does differently.

Heavy imports wait until an operation needs them, so that listing releases does not load an encoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Self

from app.desk.hits import SeenAt
from app.home.folder import Home
from app.home.store import ReleaseStore
from ingest.catalog import Catalog, if_only_for_reading

if TYPE_CHECKING:
    from app.desk.health import Degraded
    from app.desk.hits import SearchAnswer
    from app.home.settings import Settings
    from app.home.workspace import Workspace
    from app.query.finder import Finder
    from app.query.question import Question
    from app.query.snapshot import Snapshot
    from ingest.records import JobRecord
    from ingest.sources import PictureSource


class Opened:
    """A home, and the person who asks; a context manager. A server overrides the methods that say so."""

    def __init__(self, settings: Settings, *, by: str, workspace: Workspace | None = None) -> None:
        """Opens nothing yet.

        An opened `workspace` stays the caller's to close.
        """
        self.installed = settings
        self.by = by
        self._given = workspace
        self._loaded: tuple[object, Snapshot] | None = None

    @property
    def where(self) -> str:
        return str(self.installed.home)

    @cached_property
    def home(self) -> Home:
        """The home's folders; refuses at once where there is none."""
        return Home.open(self.installed.home)

    @property
    def catalog(self) -> Catalog:
        """The catalog, where it lies now; of the opened home where it is open."""
        if self._given is not None:
            return self._given.catalog
        place = self.home.catalog_place
        if self._catalog.place != place:
            self._catalog.follow(place)
        return self._catalog

    @cached_property
    def _catalog(self) -> Catalog:
        return if_only_for_reading(self.home.require_stores().open_catalog)

    @cached_property
    def store(self) -> ReleaseStore:
        """The releases."""
        return self._given.releases if self._given is not None else ReleaseStore(self.home)

    @property
    def workspace(self) -> Workspace:
        """The opened home, with its encoders and stores."""
        if self._given is not None:
            return self._given
        self._workspace.follow_catalog()
        return self._workspace

    @cached_property
    def _workspace(self) -> Workspace:
        self.home.require_stores()  # refuses before the heavy imports
        from app.home.workspace import Workspace

        return if_only_for_reading(partial(Workspace.open, self.installed))

    def close(self) -> None:
        """Closes what was opened here."""
        self._loaded = None
        self.__dict__.pop("finder", None)
        if self._given is None:
            for name in ("_workspace", "_catalog"):
                if name in self.__dict__:
                    self.__dict__.pop(name).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # What a server does differently

    def snapshot(self, release: str | None = None) -> Snapshot:
        """Returns what answers queries of a release, or of the live one, which stays loaded while it is the same."""
        from app.query.snapshot import Snapshot

        if release is not None:
            return Snapshot.load(self.workspace, release)
        state = self.workspace.releases.current(), self.workspace.catalog.outside_mark()
        if self._loaded is None or self._loaded[0] != state or self._has_moved(self._loaded[1]):
            self._loaded = state, Snapshot.load(self.workspace)
        return self._loaded[1]

    def _has_moved(self, loaded: Snapshot) -> bool:
        return self.workspace.is_searched_elsewhere(loaded.generation)

    @cached_property
    def finder(self) -> Finder:
        """The search engine. A server's does not wait for captions to be embedded."""
        from app.query.finder import Finder

        return Finder(self.workspace)

    def answering(self) -> AbstractContextManager[None]:
        """Surrounds each query. A server has a place for it, or refuses."""
        return nullcontext()

    def packing(self) -> AbstractContextManager[None]:
        """Surrounds drawing many pictures. A server does it one by one."""
        return nullcontext()

    def note(self, question: Question, answer: SearchAnswer, snapshot: Snapshot, *, is_live: bool) -> None:
        """Hears of each answer. A server counts languages and asks the candidate in the shadow."""

    def begin(self, job: JobRecord) -> None:
        """Starts a job that nobody here waits for, unless jobs run elsewhere. A server follows it."""
        from app.jobs import worker

        if self.installed.jobs == "here":
            worker.spawn(self.installed, job.id)

    def expect(self, job: JobRecord) -> None:
        """Hears of a job that who asks will `follow`, which starts it. A server starts it at once."""

    def changed_gallery(self) -> None:
        """Hears that pictures left the gallery or came back. A server hides and shows them at once."""
        self._loaded = None

    def in_use(self) -> frozenset[str]:
        """Returns releases that people look at just now. A server has loaded some."""
        return frozenset()

    def went_live(self) -> None:
        """Hears that another release is live. A server answers from it before it says so."""

    @contextmanager
    def intake_turn(self) -> Iterator[None]:
        """Surrounds accepting pairs. A server waits until no upload is being taken in."""
        yield

    def may_see_all(self) -> bool:
        """Whether pictures that somebody took out are shown to who asks. A server shows them to admins."""
        return True

    def may_see_places(self) -> bool:
        """Whether who asks is told where pictures lie. A server goes by roles."""
        return True

    def seen_at(self, ids: Sequence[str]) -> dict[str, tuple[SeenAt, ...]]:
        """Returns where each picture was seen, as far as who asks may know."""
        if not self.may_see_places():
            return {}
        found = self.catalog.sources.of(ids)
        return {image_id: tuple(map(as_seen, every)) for image_id, every in found.items()}

    def report_told(self, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns an intake's report for who asks: where pictures lie is in its rows, and in notes that name files."""
        if self.may_see_places() or not report:
            return report
        rows, notes = report.get("rows", ()), report.get("notes", ())
        on_files = report.get("notes_on_files", len(notes))  # all of a report that does not say which
        left_out = report.get("rows_left_out", 0) + len(rows)
        return {**report, "rows": [], "rows_left_out": left_out, "notes": notes[: len(notes) - on_files]}

    def job_told(self, job: JobRecord) -> JobRecord:
        """Returns a job as far as who asks may know it; of an upload of their own they are told all."""
        is_own = job.kind == "ingest" and job.arguments.get("by") == self.by
        if is_own or self.may_see_places():
            return job
        hidden = {name: "" for name in ("folder", "source", "machine") if name in job.arguments}
        result = {**job.result}
        if "report" in result:
            result["report"] = self.report_told(result["report"])
        folder, error = job.arguments.get("folder"), job.error
        if folder and error:
            error = error.replace(folder, "…")
        return replace(job, arguments=job.arguments | hidden, result=result, error=error)

    @property
    def problem(self) -> str:
        """Why the newest release is not the one that answers; empty where it is. A server knows."""
        return ""

    def degraded(self) -> tuple[Degraded, ...]:
        """Returns what is not as it should be. A server knows."""
        from app.home.degraded import degraded

        return degraded(self.home, self.store, self.catalog.gallery_size())

    def _followed(self, job: JobRecord | None) -> JobRecord | None:
        if job is not None:
            self.begin(job)
        return job

    def _expected(self, job: JobRecord) -> JobRecord:
        self.expect(job)
        return job


def as_seen(one: PictureSource) -> SeenAt:
    """Returns a source as answers tell it."""
    return SeenAt(
        one.kind, one.place, one.name, one.key, one.size, one.modified_at, one.gone, dict(one.fields)
    )
