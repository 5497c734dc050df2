"""Which languages people ask in: counted by day in the catalog, so that what is missing can be seen.

A query's words are kept in memory until they are counted, some seconds, and written nowhere. Counting waits for no
query and no query waits for it.
"""

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from app.desk.hits import AUTO, Relevance, SearchAnswer
from app.desk.opinions import AskedLanguage
from app.language.detection import UNDETERMINED, Guess, Profiles, detect, guessed_of_all, unfamiliar
from app.query.grammar import Kind
from app.query.question import Question
from app.query.snapshot import Snapshot
from ingest.asked import AskedRecord
from ingest.catalog import Catalog
from ingest.errors import IngestError

logger = logging.getLogger(__name__)

WINDOW_DAYS = 30
"""How far back the languages that are asked for are looked at."""
_EVERY_SECONDS = 5.0
_MOST_WAITING = 5000  # queries; of a rush beyond that some are not counted
# How many times what reading a query takes this thread rests before the next. The queries of five seconds of a rush,
# read without a rest, would slow every search for almost a second.
_RESTS = 4.0


@dataclass(frozen=True, slots=True)
class _Query:
    text: str
    told: str
    detected: tuple[Guess, ...]
    profiles: Profiles
    unanswered: bool


class LanguageCounter:
    """Counts the languages of answered queries."""

    def __init__(self, catalog: Catalog) -> None:
        """Prepares, on a catalog that is opened for writing; `start` begins to write."""
        self._catalog = catalog
        self._waiting: deque[_Query] = deque(maxlen=_MOST_WAITING)
        self._stopping = threading.Event()
        self._flushing = threading.Lock()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts writing every few seconds."""
        self._thread = threading.Thread(target=self._run, name="count-languages", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Writes what is still waiting, and stops."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(timeout=10)

    def note(self, question: Question, answer: SearchAnswer, snapshot: Snapshot) -> None:
        """Has a query counted, unless it has no words or is a later page of one that was."""
        query = _query(question, answer, snapshot)
        if query.text and not question.asked.cursor:
            self._waiting.append(query)

    def flush(self, rests: float = 0.0) -> None:
        """Writes what is waiting; when that fails it waits on.

        Args:
            rests: how many times what reading a query takes to leave the processor to others before the next.
        """
        with self._flushing:
            queries = [self._waiting.popleft() for _ in range(len(self._waiting))]
            counts: Counter[str] = Counter()
            unanswered: Counter[str] = Counter()
            for query in queries:
                began = time.perf_counter()
                language = _language_of(query)
                counts[language] += 1
                unanswered[language] += query.unanswered
                self._stopping.wait(rests * (time.perf_counter() - began))
            try:
                self._catalog.asked.add(_today(), {tag: (n, unanswered[tag]) for tag, n in counts.items()})
            except IngestError as error:
                logger.warning(
                    "the languages of %d queries could not be counted yet: %s", len(queries), error
                )
                self._waiting.extendleft(reversed(queries))

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_SECONDS):
            self.flush(_RESTS)
        self.flush()


def asked_languages(
    catalog: Catalog, learned: Collection[str], *, days: int = WINDOW_DAYS
) -> list[AskedLanguage]:
    """Returns how often each language was asked for in the last days, the most asked first."""
    found: list[AskedRecord] = catalog.asked.since(_today() - timedelta(days=days - 1))
    total = sum(one.queries for one in found)
    return [
        AskedLanguage(one.language, one.queries, one.unanswered, one.queries / total, one.language in learned)
        for one in found
    ]


def language_asked(question: Question, answer: SearchAnswer, snapshot: Snapshot) -> str:
    """Returns the language of an answered query: as told, or as it looks; empty where it has no words."""
    query = _query(question, answer, snapshot)
    return _language_of(query) if query.text else ""


def language_of(text: str, snapshot: Snapshot) -> str:
    """Returns the language that a text looks like: a learned one, or any other; `und` where nobody can tell."""
    profiles = snapshot.encoder.profiles
    return _looks_like(text, detect(text, snapshot.languages, profiles), profiles)


def _query(question: Question, answer: SearchAnswer, snapshot: Snapshot) -> _Query:
    text = " ".join(term.value for term in question.terms if term.kind is Kind.TEXT)
    told = "" if question.asked.language == AUTO else answer.language
    unanswered = answer.relevance == Relevance.NOTHING
    return _Query(text, told, answer.detected, snapshot.encoder.profiles, unanswered)


def _language_of(query: _Query) -> str:
    if query.told:
        return query.told.split(" ")[0]
    return _looks_like(query.text, query.detected, query.profiles)


def _looks_like(text: str, detected: Sequence[Guess], profiles: Profiles) -> str:
    """As it was read, where that language wrote such words before; else as all languages at large look."""
    read = detected[0][0] if detected else UNDETERMINED
    if read != UNDETERMINED and not unfamiliar(text, detected, profiles):
        return read
    return guessed_of_all(text)


def _today() -> date:
    return datetime.now(UTC).date()
