"""Asking the candidate in the shadow what people ask the live release: by one thread, when nobody waits for an answer.

A search hands its question over and goes on. Questions wait in a short queue; those that find it full, and those that
find no quiet moment, are dropped and counted. The candidate's encoder and index are loaded when somebody puts it into
the shadow and let go when that ends.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from app.desk.errors import AppError
from app.desk.hits import Found, Relevance, SearchAnswer
from app.desk.opinions import DEPTH, ShadowReport
from app.desk.troubles import passes
from app.feedback import shadow
from app.feedback.asked import language_asked
from app.home.workspace import Workspace
from app.query.finder import Finder
from app.query.question import Question
from app.query.snapshot import Snapshot
from app.server.metrics import ServerMetrics
from index.errors import IndexingError
from ingest.errors import IngestError
from ingest.shadows import SUMS, ShadowCount, ShadowRecord
from model_updates.errors import ModelUpdateError

logger = logging.getLogger(__name__)

_MOST_WAITING = 32
_MOST_PIXELS = 48_000_000  # of the pictures in waiting questions together: 144 MB
_PATIENCE_SECONDS = 5.0
_FLUSH_SECONDS = 5.0
_OWN: tuple[type[Exception], ...] = (AppError, IngestError, ModelUpdateError, IndexingError)
_WORTH = {Relevance.STRONG: 2, Relevance.WEAK: 1, Relevance.NOTHING: 0}


@dataclass(frozen=True)
class _Asked:
    """What somebody asked, what the live release answered, and the snapshot that did."""

    question: Question
    answer: SearchAnswer
    snapshot: Snapshot

    @property
    def pixels(self) -> int:
        return sum(one.image.width * one.image.height for one in self.question.pictures.values())


@dataclass(frozen=True)
class _Candidate:
    """A release in the shadow, loaded; its finder shares nothing with the live one, so that neither waits."""

    record: ShadowRecord
    snapshot: Snapshot
    finder: Finder


class Shadowing:
    """The thread that asks, and what searches tell it."""

    def __init__(self, workspace: Workspace, metrics: ServerMetrics) -> None:
        """Prepares; `start` begins.

        Args:
            workspace: opened for writing.
            metrics: counts what became of questions.
        """
        self._workspace, self._metrics = workspace, metrics
        self._candidate: _Candidate | None = None
        self._waiting: deque[_Asked] = deque()
        self._dropped = 0
        self._counts: dict[tuple[str, str], ShadowCount] = {}
        self._answering = 0
        self._lock = threading.Lock()
        self._quiet, self._something = threading.Event(), threading.Event()
        self._quiet.set()
        self._stopping = threading.Event()
        self._flushing = threading.Lock()
        self._thread: threading.Thread | None = None
        self._chance = random.Random()

    def start(self) -> None:
        """Starts looking for a candidate to ask."""
        self._thread = threading.Thread(target=self._run, name="shadow", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Asks nothing more, and writes what was counted."""
        self._stopping.set()
        self._something.set()
        self._quiet.set()
        if self._thread is not None:
            self._thread.join(timeout=30)

    @property
    def release(self) -> str:
        """The release that is asked now; empty when none is."""
        candidate = self._candidate
        return candidate.record.release if candidate else ""

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """While this lasts, somebody waits for an answer and no question is begun in the shadow."""
        with self._lock:
            self._answering += 1
            self._quiet.clear()
        try:
            yield
        finally:
            with self._lock:
                self._answering -= 1
                if not self._answering:
                    self._quiet.set()

    def note(self, question: Question, answer: SearchAnswer, snapshot: Snapshot) -> None:
        """Has a question asked in the shadow, by chance; never waits."""
        candidate = self._candidate
        if candidate is None or question.asked.cursor or question.asked.offset:
            return
        if self._chance.random() >= candidate.record.share:
            return
        asked = _Asked(question, answer, snapshot)
        with self._lock:
            pixels = sum(one.pixels for one in self._waiting) + asked.pixels
            is_full = len(self._waiting) >= _MOST_WAITING or pixels > _MOST_PIXELS
            if is_full:
                self._dropped += 1
            else:
                self._waiting.append(asked)
        if is_full:
            self._metrics.shadowed("dropped")
        self._something.set()

    def report(self, release: str) -> ShadowReport:
        """Returns what the shadow of a release has shown up to now (`app.feedback.shadow.report`)."""
        self.flush()
        return shadow.report(self._workspace, release)

    def flush(self) -> None:
        """Writes what was counted; when that fails it waits on."""
        candidate = self._candidate
        if candidate is None:
            return
        with self._flushing:
            with self._lock:
                counts, self._counts = list(self._counts.values()), {}
                dropped, self._dropped = self._dropped, 0
            try:
                self._workspace.catalog.shadows.add(counts, shadow=candidate.record.id, dropped=dropped)
            except IngestError as error:
                logger.warning("what the shadow found could not be written yet: %s", error)
                with self._lock:
                    self._dropped += dropped
                for one in counts:
                    self._add(one)

    def _run(self) -> None:
        next_look = next_flush = 0.0
        while not self._stopping.is_set():
            now = time.monotonic()
            try:
                if now >= next_look:
                    next_look = now + self._workspace.settings.poll_seconds
                    self._follow()
                if now >= next_flush:
                    next_flush = now + _FLUSH_SECONDS
                    self.flush()
                if not self._waiting:
                    self._something.wait(self._workspace.settings.poll_seconds)
                self._something.clear()
                self._ask_next()
            except (
                Exception
            ):  # a thread that died would hold the candidate and drop every query, and nobody would know
                logger.exception("the shadow goes on after a fault")
        self._let_go()

    def _follow(self) -> None:
        """Loads the release that somebody put into the shadow, or lets the one go that left it."""
        try:
            wanted = shadow.active(self._workspace)
        except _OWN as error:
            logger.warning("cannot see which release is in the shadow: %s", error)
            return
        held = self._candidate
        try:
            has_moved = held is not None and self._workspace.is_searched_elsewhere(held.snapshot.generation)
        except _OWN as error:
            logger.warning("where the index is searched cannot be asked: %s", error)
            has_moved = False
        if (held.record.id if held else None) == (wanted.id if wanted else None) and not has_moved:
            return
        self._let_go()
        if wanted is not None:
            self._load(wanted)

    def _load(self, wanted: ShadowRecord) -> None:
        try:
            snapshot = Snapshot.load(self._workspace, wanted.release)
            finder = Finder(self._workspace, patient=False)
            finder.prepare(snapshot)
        except Exception as error:  # noqa: BLE001 - the same: a release that cannot be loaded leaves the shadow
            if isinstance(error, _OWN) and passes(error):  # it is tried again
                logger.warning("release %s cannot be asked in the shadow yet: %s", wanted.release, error)
                return
            logger.warning("release %s cannot be asked in the shadow: %s", wanted.release, error)
            self._give_up(wanted, f"it could not be loaded: {error}"[:500])
            return
        self._candidate = _Candidate(wanted, snapshot, finder)
        logger.info(
            "release %s is in the shadow, asked %g %% of the queries", wanted.release, 100 * wanted.share
        )

    def _give_up(self, wanted: ShadowRecord, why: str) -> None:
        try:
            self._workspace.catalog.shadows.stop(wanted.release, by="the server", why=why)
        except IngestError as error:  # it is tried again
            logger.warning("the shadow of %s could not be ended: %s", wanted.release, error)

    def _let_go(self) -> None:
        """Writes what was counted and lets the candidate's memory go."""
        candidate = self._candidate
        if candidate is None:
            return
        self.flush()
        self._candidate = None
        with self._lock:
            self._waiting.clear()
            self._counts.clear()
            self._dropped = 0
        commit = self._workspace.releases.standing().commit
        live = self._workspace.releases.readable(commit.release) if commit else None
        if live is None or live.version != candidate.snapshot.release.version:
            self._workspace.forget_version(candidate.snapshot.release.version)
        logger.info("release %s left the shadow", candidate.record.release)

    def _ask_next(self) -> None:
        """Asks the candidate the oldest question that waits, once nobody waits for an answer."""
        with self._lock:
            asked = self._waiting.popleft() if self._waiting else None
        candidate = self._candidate
        if asked is None or candidate is None:
            return
        if not self._quiet.wait(_PATIENCE_SECONDS):
            with self._lock:
                self._dropped += 1
            self._metrics.shadowed("dropped")
            return
        if self._stopping.is_set() or asked.snapshot.release.version == candidate.snapshot.release.version:
            return
        language = language_asked(asked.question, asked.answer, asked.snapshot)
        count = ShadowCount(candidate.record.release, asked.snapshot.release.version, language)
        try:
            count = _compared(candidate, asked, count)
        except Exception as error:  # noqa: BLE001 - this thread's edge: whatever a candidate does wrong ends nothing
            # The sentence of an error may quote the query, which is nobody else's to read.
            logger.warning("release %s refused a query: %s", candidate.record.release, type(error).__name__)
            count = replace(count, refused=1)
        self._metrics.shadowed("refused" if count.refused else "answered")
        self._add(count)

    def _add(self, count: ShadowCount) -> None:
        key = (count.against, count.language)
        with self._lock:
            before = self._counts.get(key)
            self._counts[key] = count if before is None else _sum(before, count)


def _compared(candidate: _Candidate, asked: _Asked, count: ShadowCount) -> ShadowCount:
    """Asks the candidate and returns how far its answer lies from the live one."""
    bare = asked.question.asked.model_copy(update={"captions": 0, "explain": False})
    question = replace(asked.question, k=DEPTH, asked=bare)
    live = asked.answer
    if asked.question.k < DEPTH:
        live = candidate.finder.find(asked.snapshot, question)
    other = candidate.finder.find(candidate.snapshot, question)
    # Pictures that only one of the two holds came or went since: they tell nothing of the encoders.
    sides = asked.snapshot, candidate.snapshot
    overlap, same_first, moved = shadow.how_far(_held(live.hits, sides), _held(other.hits, sides))
    better = _worth(other) - _worth(live) if live.relevance and other.relevance else 0
    return replace(
        count,
        queries=1,
        overlap=overlap,
        same_first=int(same_first),
        moved=moved,
        stronger=int(better > 0),
        weaker=int(better < 0),
        seconds=_seconds(other),
        seconds_live=_seconds(live),
    )


def _held(hits: tuple[Found, ...], sides: tuple[Snapshot, Snapshot]) -> list[str]:
    """Returns the first hits that both releases hold, and may show."""
    held = [hit.id for hit in hits]
    for one in sides:
        held = one.among(held)
    return held[:DEPTH]


def _worth(answer: SearchAnswer) -> int:
    return _WORTH[Relevance(answer.relevance)]


def _seconds(answer: SearchAnswer) -> float:
    return answer.timing.encode + answer.timing.index + answer.timing.rerank


def _sum(a: ShadowCount, b: ShadowCount) -> ShadowCount:
    sums = {name: getattr(a, name) + getattr(b, name) for name in SUMS}
    return replace(a, **sums)
