"""What the server does for a caller, whether the call came through REST or from a screen.

One live snapshot; every query takes it once. Queries share a few places so that a rush is refused with a sentence
instead of slowing everybody down.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from sqlalchemy.exc import SQLAlchemyError

from app.desk.errors import HomeDamaged, NoRelease, ReleaseDamaged, UpdateRunning
from app.desk.health import Degraded
from app.desk.troubles import OWN_ERRORS as OWN_ERRORS
from app.feedback.asked import LanguageCounter
from app.home import cores, garbage, holding
from app.home.catalog_copy import damage_in
from app.home.commits import now
from app.home.damage import CATALOG
from app.home.degraded import degraded
from app.home.workspace import Workspace
from app.jobs import sharing
from app.query.finder import Finder
from app.query.snapshot import LiveSnapshot, Snapshot
from app.server.admission import places_by_kind
from app.server.metrics import ServerMetrics
from app.server.places import Places
from app.server.shadowing import Shadowing
from app.server.watching import FolderWatch
from app.server.work import Work
from ingest.errors import CatalogDamaged, CatalogError
from ingest.sentence import phrase

logger = logging.getLogger(__name__)

_TIDYING_MAY_FAIL: tuple[type[Exception], ...] = (*OWN_ERRORS, OSError, MemoryError)
_LOOKING_MAY_FAIL: tuple[type[Exception], ...] = (*_TIDYING_MAY_FAIL, SQLAlchemyError)

_KEPT_SNAPSHOTS = 3
_DAY = 86_400.0  # seconds
SERVING, INDEX = "serving", "index"


class Serving:
    """The state of one server process."""

    def __init__(self, workspace: Workspace, *, is_first: bool = True) -> None:
        """Prepares; `start` begins.

        Args:
            workspace: opened for writing, and stays the caller's to close.
            is_first: of the processes of its server. The first one alone tidies up, has jobs done, watches folders.
        """
        self._is_first = is_first
        self.workspace = workspace
        self.settings = workspace.settings
        self.work = Work(workspace, on_ended=self.refresh, threads=cores.but_one(workspace.settings.threads))
        self.metrics = ServerMetrics()
        self.metrics.watch(self)
        self.languages_asked = LanguageCounter(workspace.catalog)
        self.shadowing = Shadowing(workspace, self.metrics)
        self.folders = FolderWatch(workspace, self.work.follow, self.work.is_over)
        self._live: LiveSnapshot | None = None
        self._why_not = ""
        self._prepared = ""  # the release that was read whole and measured last
        self._preparing: threading.Thread | None = None
        self._others: OrderedDict[str, Snapshot] = OrderedDict()
        self._others_lock = threading.Lock()
        # Two queries at once use the cores of a small machine; of several processes each has a core, and two queries
        # would take Python's lock from one another (docs/log.md). What REST asks waits at the door (`admission.py`).
        self.searching = Places(at_once=2 if self.settings.processes == 1 else 1, waiting=32)
        self.places = places_by_kind(self.searching)
        # Drawing the pictures of a zip keeps a core at work for seconds.
        self.packing = Places(at_once=1, waiting=4)
        self._stopping = threading.Event()
        self._poller: threading.Thread | None = None
        self.finder = Finder(workspace, patient=False)
        self.withheld, self._outside = self._out()
        self._hiding = threading.Lock()
        self.degraded: tuple[Degraded, ...] = ()  # what is not as it should be while the rest goes on
        self._left_behind: Degraded | None = None  # why this server does not read where the catalog lies now

    # Life

    def start(self) -> None:
        """Loads what is live, if anything is, and starts watching for commits and over running jobs, and tidying up."""
        self.refresh()
        self._look_around()
        if self._is_first:
            self.work.take_up()
            self.folders.start()
        self.languages_asked.start()
        self.shadowing.start()
        self._poller = threading.Thread(target=self._watch, name="commit-watch", daemon=True)
        self._poller.start()

    def _tidy(self) -> None:
        """Removes what dead processes left and no release needs, unless somebody is updating."""
        releases = self.workspace.releases
        try:
            removed = [
                *garbage.clean_staging(releases, garbage.resumable(self.workspace.catalog.jobs())),
                *garbage.collect(releases, grace_seconds=garbage.UNRELEASED_SECONDS),
                *sharing.tidy(self.workspace.home, self.workspace.catalog),
                *self.workspace.drop_vectors(),
            ]
        except UpdateRunning:
            return
        except _TIDYING_MAY_FAIL as error:  # the watch for new releases must go on
            logger.warning("could not remove what nobody needs any more: %s", error)
            return
        if removed:
            logger.info("removed what nobody needs any more: %s", ", ".join(removed))

    def stop(self) -> None:
        """Stops watching; the workspace stays open."""
        self._stopping.set()
        self.work.stop()
        self.languages_asked.stop()
        self.shadowing.stop()
        self.folders.stop()
        for thread in (self._poller, self._preparing):
            if thread is not None:
                thread.join(timeout=10)

    @property
    def is_stopping(self) -> bool:
        """Whether the server is about to end; streams of events end then too."""
        return self._stopping.is_set()

    def refresh(self) -> bool:
        """Takes the newest release if it can be served; returns whether that is another one than before."""
        if self._live is not None:
            is_new = self._live.refresh()
            if is_new:
                self.metrics.swapped()
                self.hide()
            return is_new
        try:
            self._live = LiveSnapshot(self.workspace)
        except _TIDYING_MAY_FAIL as error:
            # Not the end: whoever repairs or makes a release need not restart the server.
            self._why_not = str(error)
            return False
        return True

    @property
    def problem(self) -> str | None:
        """Why the newest release is not the one that answers, if so."""
        return self._why_not if self._live is None else self._live.problem

    def _look(self) -> None:
        """Looks what is not as it should be, for all who ask about it."""
        workspace, problem = self.workspace, self.problem
        try:
            size, snapshot = workspace.catalog.gallery_size(), self.live()
        except CatalogDamaged as error:
            size, snapshot = 0, self.live()
            workspace.releases.damage.note(CATALOG, str(error))
        found = degraded(
            workspace.home, workspace.releases, size, None if snapshot is None else snapshot.pictures
        )
        if problem is None:
            workspace.releases.damage.forget(SERVING)
        elif not any(one.part == "release" for one in found):
            since = workspace.releases.damage.note(SERVING, problem).since
            found = (*found, Degraded(SERVING, problem, since, "perennial doctor"))
        if away := self._live.engine_away if self._live is not None else "":
            found = (*found, Degraded(INDEX, away, workspace.releases.damage.note(INDEX, away).since))
        else:
            workspace.releases.damage.forget(INDEX)
        self.degraded = found if self._left_behind is None else (*found, self._left_behind)

    def _check_catalog(self) -> None:
        """Has SQLite look through its pages, for which nobody waits; one that was mended is damaged no more."""
        home, damage = self.workspace.home, self.workspace.releases.damage
        try:
            why = damage_in(home)
        except CatalogError as error:  # nobody knows; a mark stays as it is
            logger.warning("%s", error)
            return
        if why:
            damage.note(CATALOG, phrase("The catalog is damaged: {why}.", why=why))
            logger.error("the catalog is damaged: %s", why)
        else:
            damage.forget(CATALOG)

    def _watch(self) -> None:
        if self._is_first:
            self._guarded(self._check_catalog)
            self._guarded(self._tidy)
        tidied = time.monotonic()
        self._guarded(self._prepare_live)
        while not self._stopping.wait(self.settings.poll_seconds):
            for step in (
                self._follow_catalog,
                self._say_present,
                self.refresh,
                self._look_around,
                self._prepare_live,
            ):
                self._guarded(step)
            if self._is_first:
                self._guarded(self.work.take_over)
                if time.monotonic() - tidied >= _DAY:
                    self._guarded(self._tidy)
                    tidied = time.monotonic()

    def _follow_catalog(self) -> None:
        try:
            self.workspace.follow_catalog()
            self._left_behind = None
        except (CatalogError, HomeDamaged) as error:  # it reads the one that was left until it can follow
            logger.warning("the catalog cannot be followed to where it was carried: %s", error)
            if self._left_behind is None or self._left_behind.what != str(error):
                self._left_behind = Degraded(CATALOG, str(error), now(), "perennial serve")

    def _say_present(self) -> None:
        if self._is_first:
            try:
                holding.say_present(self.workspace.home, "serving")
            except (CatalogError, HomeDamaged) as error:  # who asks is told by what it asks for
                logger.warning("other machines could not be told that this one serves: %s", error)

    def _guarded(self, step: Callable[[], object]) -> None:
        """Does a step of the watch, which goes on whatever comes of it."""
        try:
            step()
        except Exception:
            logger.exception("the watch could not do a step; it tries again in a moment")

    def _prepare_live(self) -> None:
        """Has what is live read and measured once for all processes: the others read what the first one has kept.

        Beside the watch: who goes back meanwhile does not wait for it. One after another, the newest last.
        """
        if not self._is_first or self._live is None or (self._preparing and self._preparing.is_alive()):
            return
        snapshot = self._live.current
        if snapshot.release.id != self._prepared:
            self._prepared = snapshot.release.id
            self._preparing = threading.Thread(
                target=self._read_and_measure, args=(snapshot,), name="prepare", daemon=True
            )
            self._preparing.start()

    def _read_and_measure(self, snapshot: Snapshot) -> None:
        reading = threading.Thread(target=self._read_behind, args=(snapshot,), name="read-whole", daemon=True)
        reading.start()
        reading.join()
        current = self.live()
        if current is not None and not self.is_stopping:
            self._guarded(partial(self._prepare, current))

    def _look_around(self) -> None:
        try:
            self._look()
            self.hide(is_new=False)  # what others took out
        except _LOOKING_MAY_FAIL as error:  # the watch must go on; it looks again in a moment
            logger.warning("could not look which pictures were taken out, or what is wrong: %s", error)

    def _prepare(self, snapshot: Snapshot) -> None:
        try:
            self.finder.prepare(snapshot)
        except _TIDYING_MAY_FAIL as error:  # the watch must go on; a query that needs it tries again
            logger.warning("could not prepare release %s: %s", snapshot.release.id, error)

    def _read_behind(self, snapshot: Snapshot) -> None:
        cores.stand_back()
        self._guarded(partial(self._read_whole, snapshot))

    def _read_whole(self, snapshot: Snapshot) -> None:
        """Reads every byte of what answers, for which nobody waited, and steps down where one has changed."""
        releases = self.workspace.releases
        try:
            releases.verify_release(snapshot.release.id)
        except ReleaseDamaged:
            releases.find_damage(snapshot.release)
            self.workspace.forget_version(snapshot.release.version)
            if self._live is not None and self._live.refresh(anew=True):
                self.hide()
        except _TIDYING_MAY_FAIL as error:  # the watch must go on
            logger.warning("could not read release %s: %s", snapshot.release.id, error)

    # Searching

    def live(self) -> Snapshot | None:
        """Returns the live snapshot, if one is loaded."""
        return None if self._live is None else self._live.current

    def reached(self) -> int:
        """Returns the commit up to which this server knows what is live; 0 while nothing is loaded."""
        return 0 if self._live is None else self._live.reached

    def snapshot(self, release: str | None = None) -> Snapshot:
        """Returns the live snapshot, or that of any release; the last few others stay loaded.

        Raises:
            NoRelease: nothing is live.
            UnknownRelease: there is no such release.
        """
        if self._live is None:
            raise NoRelease(
                self._why_not or "The server is still loading its release. Try again in a moment."
            )
        current = self._live.current
        if release is None:
            return current
        wanted = self.workspace.releases.release(release).require_kept().id
        if wanted == current.release.id:
            return current
        with self._others_lock:
            if wanted not in self._others:
                other = Snapshot.load(self.workspace, wanted)
                self._others[wanted] = replace(other, texts=current.texts)
                while len(self._others) > _KEPT_SNAPSHOTS:
                    self._others.popitem(last=False)
            self._others.move_to_end(wanted)
            return self._others[wanted]

    def loaded(self) -> frozenset[str]:
        """Returns the releases, beside the live one, that people asked lately."""
        with self._others_lock:
            return frozenset(self._others)

    def hide(self, *, is_new: bool = True) -> None:
        """Leaves out of every answer what has left the gallery by now, and shows what came back.

        Args:
            is_new: whether something has; else it is done only where pictures left or came back since, by whatever
                another process did: it took some out, withdrew a chunk, or found a folder's gone.
        """
        with self._hiding:
            out = self._out()
            if not is_new and out == (self.withheld, self._outside):
                return
            self.withheld, self._outside = out
            if self._live is not None:
                self._live.hide()
            self.forget_others()

    def _out(self) -> tuple[frozenset[str], int]:
        """Returns what a person took out, and a mark of all that is outside the gallery."""
        catalog = self.workspace.catalog
        return catalog.withheld.ids(), catalog.outside_mark()

    def catch_up(self) -> None:
        """Sees at once what the watch would see in a moment.

        Raises:
            NoRelease: the newest release cannot be served.
        """
        self.refresh()
        self.hide()
        if self.problem:
            raise NoRelease(self.problem)

    def forget_others(self) -> None:
        """Drops the other releases' snapshots: pictures may have been withdrawn since they were loaded."""
        with self._others_lock:
            self._others.clear()
