"""What a server tells Prometheus: counted as queries are answered, and read from the home when it is scraped.

Labels come from closed sets alone (learned languages, releases, routes), so that no caller can make new series.
"""

from __future__ import annotations

import os
import time
from collections import Counter as Tally
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
    values,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.gc_collector import GCCollector
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from app.desk.hits import SearchAnswer
from app.desk.probes import probe_chunks, shown_slices
from app.feedback import shadow
from ingest.records import JOB_STATES

if TYPE_CHECKING:
    from app.desk.health import Degraded
    from app.home.workspace import Workspace
    from app.query.snapshot import Snapshot

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OTHER = "other"

# Around what one query takes: some milliseconds with a small encoder on a GPU, seconds with a large one on a busy CPU.
_SECONDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_STEP_SECONDS = (0.0001, 0.00025, 0.0005, 0.001, *_SECONDS[:-2])
_JOBS_COUNTED = 1000
_TOGETHER = "PROMETHEUS_MULTIPROC_DIR"  # which the library reads


class Watched(Protocol):
    """What is read at each scrape, and whose searches are counted: a server's state."""

    workspace: Workspace
    metrics: ServerMetrics

    @property
    def problem(self) -> str | None:
        """Why the newest release is not the one that answers, if so."""

    @property
    def degraded(self) -> Collection[Degraded]:
        """What is not as it should be while the rest goes on."""

    def live(self) -> Snapshot | None:
        """The live snapshot, if one is loaded."""


def count_together(folder: Path) -> None:
    """Has this process and all that it starts keep their counters in a new folder, and each tell those of all.

    Called before there are counters. What is said of a process itself stays that of whichever is asked.
    """
    folder.mkdir()
    os.environ[_TOGETHER] = str(folder)
    values.ValueClass = values.MultiProcessValue()  # type: ignore[no-untyped-call]


class ServerMetrics:
    """The counters of a server, in registries of their own."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call] # a second series for each, which no panel shows
        self.registry, self._counted = CollectorRegistry(), CollectorRegistry()
        self._learned: dict[str, frozenset[str]] = {}
        own: dict[str, Any] = {"namespace": "perennial", "registry": self._counted}
        self._searches = Counter(
            "searches", "Answered queries by the language they were read in.", ["language", "release"], **own
        )
        self._refused = Counter("searches_refused", "Queries that got a sentence instead.", ["reason"], **own)
        self._turned_away = Counter(
            "turned_away", "Requests that found no place of their kind in time, and got 503.", ["kind"], **own
        )
        self._seconds = Histogram(
            "search_seconds",
            "Where the time of an answered query went; total includes waiting.",
            ["part"],
            buckets=_SECONDS,
            **own,
        )
        self._steps = Histogram(
            "step_seconds",
            "Where the time of a request to REST that asks queries went, by step, without what runs inside it.",
            ["step"],
            buckets=_STEP_SECONDS,
            **own,
        )
        waiting = "Queries being answered or waiting for a place."
        self._under_way = Gauge("searches_under_way", waiting, multiprocess_mode="livesum", **own)
        self._shadow = Counter(
            "shadow_queries", "Live queries for the candidate in the shadow: answered, refused or dropped.",
            ["outcome"], **own,
        )  # fmt: skip
        for outcome in ("answered", "refused", "dropped"):
            self._shadow.labels(outcome)
        self._swaps = Counter("swaps", "Releases that took the place of another without a pause.", **own)
        self._http = Histogram(
            "http_seconds",
            "Requests to REST by route, until the answer begins.",
            ["method", "route", "status"],
            buckets=_SECONDS,
            **own,
        )
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)

    def watch(self, serving: Watched) -> None:
        """Adds what is read from the home at each scrape."""
        self.registry.register(_Home(serving))

    def swapped(self) -> None:
        """Counts a release that took over."""
        self._swaps.inc()

    def shadowed(self, outcome: str, count: int = 1) -> None:
        """Counts queries that a candidate in the shadow answered, refused, or was not asked for want of time."""
        self._shadow.labels(outcome).inc(count)

    def counted(self, serving: Watched, search: Callable[[], SearchAnswer]) -> SearchAnswer:
        """Has a search of a server counted and timed, answered or not."""
        started = time.perf_counter()
        with self._under_way.track_inprogress():
            try:
                answer = search()
            except Exception as error:
                self.refused(error)
                raise
        self.answered(answer, time.perf_counter() - started, self.learned(serving, answer.release))
        return answer

    def answered(self, answer: SearchAnswer, seconds: float, learned: Collection[str]) -> None:
        """Counts an answered query once, under the likeliest language it was read in."""
        language = answer.language.split(" ")[0]  # empty for a query without words
        self._searches.labels(language if language in learned else OTHER, answer.release).inc()
        parts = {"encode": answer.timing.encode, "index": answer.timing.index, "total": seconds}
        if any(hit.match is not None for hit in answer.hits):
            parts["rerank"] = answer.timing.rerank
        for part, spent in parts.items():
            self._seconds.labels(part).observe(spent)

    def learned(self, serving: Watched, release: str) -> frozenset[str]:
        """Returns the languages of a release; it never changes, so its manifest is read once."""
        if release not in self._learned:
            manifest = serving.workspace.releases.release(release).manifest
            self._learned[release] = frozenset(manifest.languages)
        return self._learned[release]

    def refused(self, error: Exception) -> None:
        """Counts a query that was not answered."""
        self._refused.labels(type(error).__name__).inc()

    def turned_away(self, kind: str) -> None:
        """Counts a request that found no place."""
        self._turned_away.labels(kind).inc()

    def request(
        self, method: str, route: str, status: int, seconds: float, steps: Mapping[str, float]
    ) -> None:
        """Counts a request to REST, and what each step of a query took of it where it asked one."""
        self._http.labels(method, route, str(status)).observe(seconds)
        if steps.keys() - {"answer"}:
            for step, spent in steps.items():
                self._steps.labels(step).observe(spent)

    def text(self) -> bytes:
        """Returns everything in Prometheus' text format."""
        counted = self._counted
        if _TOGETHER in os.environ:
            counted = CollectorRegistry()
            MultiProcessCollector(counted)  # type: ignore[no-untyped-call]
        return generate_latest(counted) + generate_latest(self.registry)


class _Home(Collector):
    """What the home holds at the moment of the scrape."""

    def __init__(self, serving: Watched) -> None:
        self._serving = serving

    def describe(self) -> list[Metric]:
        """Says nothing beforehand: registering must not read the home."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yields jobs, chunks, gallery and the live release with its recall."""
        yield from self._work()
        yield from self._live()
        yield self._shadow()

    def _work(self) -> Iterator[Metric]:
        catalog = self._serving.workspace.catalog
        jobs = GaugeMetricFamily(
            "perennial_jobs", "Jobs by kind and state, of the last thousand.", labels=["kind", "state"]
        )
        listed = catalog.jobs(limit=_JOBS_COUNTED)
        tally = Tally((job.kind, job.state) for job in listed)
        for kind in sorted({"update", "ingest", "gallery"} | {job.kind for job in listed}):
            for state in JOB_STATES:
                jobs.add_metric([kind, state], tally[kind, state])
        yield jobs
        chunks = GaugeMetricFamily("perennial_chunks", "Chunks by standing.", labels=["standing"])
        drawn = probe_chunks(catalog)
        own = [chunk for chunk in catalog.standings() if chunk.id not in drawn]
        for standing, count in sorted(Tally(chunk.standing for chunk in own).items()):
            chunks.add_metric([standing], count)
        yield chunks

    def _shadow(self) -> Metric:
        overlap = GaugeMetricFamily(
            "perennial_shadow_overlap_percent",
            "Of the first hits of the candidate in the shadow, those that the live release shows too.",
            labels=["release", "language"],
        )
        workspace = self._serving.workspace
        record = shadow.active(workspace)
        if record is not None:
            told = shadow.report(workspace, record.release)
            learned = self._serving.metrics.learned(self._serving, record.release)
            for line in (*told.languages, *([told.total] if told.total else [])):
                if line.queries and (line.language in learned or line is told.total):
                    overlap.add_metric([told.release, line.language], line.overlap)
        return overlap

    def _live(self) -> Iterator[Metric]:
        problem = GaugeMetricFamily(
            "perennial_problem", "1 while the newest release is not the one that answers."
        )
        problem.add_metric([], float(self._serving.problem is not None))
        yield problem
        degraded = GaugeMetricFamily(
            "perennial_degraded_since_timestamp_seconds",
            "Since when a part is not as it should be, and the command that mends it.",
            labels=["part", "mend"],
        )
        for one in self._serving.degraded:
            degraded.add_metric([one.part, one.mend], datetime.fromisoformat(one.since).timestamp())
        yield degraded
        snapshot = self._serving.live()
        if snapshot is None:
            return
        live = GaugeMetricFamily("perennial_live", "The commit that answers.", labels=["release", "version"])
        live.add_metric([snapshot.release.id, snapshot.release.version], snapshot.commit)
        yield live
        pictures = GaugeMetricFamily("perennial_gallery_pictures", "Pictures that search may return.")
        pictures.add_metric([], snapshot.pictures)
        yield pictures
        recall = GaugeMetricFamily(
            "perennial_recall_percent",
            "Recall of the live release on held-out pairs.",
            labels=["language", "domain", "view", "metric"],
        )
        for part in shown_slices(snapshot.release.manifest.slices):
            for metric, value in sorted(part.recalls.items()):
                recall.add_metric([part.language, part.domain, part.view, metric], value)
        yield recall
