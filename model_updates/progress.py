"""How far an update is: the running means of an epoch's terms, the rate, and the time left."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

BETWEEN_REPORTS = 1.0
"""Seconds between two reports of one epoch; its last step is always reported."""


@dataclass(frozen=True)
class TrainingProgress:
    """Where an update is, for people: rate and time left included."""

    epoch: int
    epochs: int
    step: int
    steps: int
    terms: dict[str, float]
    pairs_per_second: float
    seconds_left: float


class Pace:
    """Counts the steps of one epoch and reports about once a second.

    The rate is the mean since the epoch began; the time left holds for all epochs that are still to come.
    """

    def __init__(
        self,
        epoch: int,
        epochs: int,
        steps: int,
        pairs_per_step: int,
        report: Callable[[TrainingProgress], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts the clock, in seconds from any beginning; `epoch` counts from 0, `steps` are of one epoch."""
        self._epoch, self._epochs, self._steps, self._pairs = epoch, epochs, steps, pairs_per_step
        self._report, self._clock = report, clock
        self._sums: dict[str, float] = {}
        self._done = 0
        self._began = self._reported = clock()

    def step(self, terms: Mapping[str, float]) -> None:
        """Counts a finished step with its terms, and reports when a report is due."""
        self._done += 1
        for name, value in terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        now = self._clock()
        if now - self._reported > BETWEEN_REPORTS or self._done == self._steps:
            self._reported = now
            self._report(self._progress((now - self._began) / self._done))

    def means(self) -> dict[str, float]:
        """Returns each term's mean over the steps so far."""
        return {name: total / max(1, self._done) for name, total in self._sums.items()}

    def _progress(self, seconds_per_step: float) -> TrainingProgress:
        left = self._steps * (self._epochs - self._epoch) - self._done
        return TrainingProgress(
            epoch=self._epoch + 1,
            epochs=self._epochs,
            step=self._done,
            steps=self._steps,
            terms=self.means(),
            pairs_per_second=self._pairs / seconds_per_step if seconds_per_step else 0.0,
            seconds_left=left * seconds_per_step,
        )
