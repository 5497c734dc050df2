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

    @property
    def done(self) -> float:
        """Of all epochs, from 0 to 1."""
        return (self.epoch - 1 + self.step / max(1, self.steps)) / self.epochs


@dataclass
class Pace:
    """Counts the steps of one epoch and reports about once a second.

    The rate is the mean since the epoch began; the time left holds for all epochs that are still to come.
    """

    epoch: int  # the one that begins, from 0
    epochs: int  # of the whole update
    steps: int  # of one epoch
    pairs_per_step: int
    report: Callable[[TrainingProgress], None]
    clock: Callable[[], float] = time.monotonic  # seconds, from any beginning

    def __post_init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._done = 0
        self._began = self._reported = self.clock()

    def step(self, terms: Mapping[str, float]) -> None:
        """Counts a finished step with its terms, and reports when a report is due."""
        self._done += 1
        for name, value in terms.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        now = self.clock()
        if now - self._reported > BETWEEN_REPORTS or self._done == self.steps:
            self._reported = now
            self.report(self._progress((now - self._began) / self._done))

    def means(self) -> dict[str, float]:
        """Returns each term's mean over the steps so far."""
        return {name: total / max(1, self._done) for name, total in self._sums.items()}

    def _progress(self, seconds_per_step: float) -> TrainingProgress:
        left = self.steps * (self.epochs - self.epoch) - self._done
        return TrainingProgress(
            epoch=self.epoch + 1,
            epochs=self.epochs,
            step=self._done,
            steps=self.steps,
            terms=self.means(),
            pairs_per_second=self.pairs_per_step / seconds_per_step if seconds_per_step else 0.0,
            seconds_left=left * seconds_per_step,
        )
