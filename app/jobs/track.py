"""What a job leaves behind on its way: its losses as a curve, and how long each stage took.

Both are kept in the job's row, so that whoever opens a page later sees them from the beginning, and a second worker
goes on where the first one stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from app.desk.jobs import Stage

MOST_POINTS = 160
"""Of a curve; a screen shows no more. When there are more, every second one goes."""


class Track:
    """The way of one job so far."""

    def __init__(
        self, earlier: Mapping[str, Any] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Begins, or goes on with what an earlier worker left.

        Args:
            earlier: the job's `progress`.
            clock: seconds, from any beginning.
        """
        earlier = earlier or {}
        self._curve: list[dict[str, Any]] = list(earlier.get("curve") or ())
        self._seconds: dict[str, float] = dict(earlier.get("seconds") or {})
        self._clock = clock
        self._name, self._since = "", clock()

    def stage(self, stage: Stage) -> None:
        """Notes where the job is."""
        self.lap()
        self._name = stage.name
        details = stage.details
        terms = details.get("terms")
        if not terms:
            return
        at = int(details["epoch"]) - 1 + int(details["step"]) / max(1, int(details["steps"]))
        # A worker that goes on from a checkpoint takes some steps a second time.
        self._curve = [point for point in self._curve if point["at"] < at]
        self._curve.append(
            {"at": round(at, 4), "terms": {name: float(value) for name, value in terms.items()}}
        )
        if len(self._curve) > MOST_POINTS:
            self._curve = self._curve[1::2]

    def lap(self) -> None:
        """Counts the time since the last word for the stage that is going on."""
        now = self._clock()
        if self._name:
            self._seconds[self._name] = self._seconds.get(self._name, 0.0) + now - self._since
        self._since = now

    def to_json(self) -> dict[str, Any]:
        """Returns the curve, `at` in epochs, and the seconds by stage."""
        return {
            "curve": self._curve,
            "seconds": {name: round(value, 2) for name, value in self._seconds.items()},
        }
