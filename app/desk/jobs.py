"""Jobs: what an update is asked, the stages of work, what it will take."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from pydantic import Field, StrictBool, computed_field

from app.desk.fields import Strict
from ingest.records import JobRecord

Value = str | float | int | bool
_TELLING_SECONDS = 1.0  # before that a rate is mostly chance
STAGES = ("features", "train", "measure", "examine", "embed")
"""What takes time in an update; judging, checking and publishing are counted with what they follow."""
_BEFORE = frozenset({"start", "plan"})
_WITH = {"earlier": "measure", "gate": "measure", "index": "embed", "release": "embed", "commit": "embed"}


class StartUpdate(Strict):
    """What an update is to learn from, and how; `promote` makes it live when it passes the gate."""

    chunk: str = Field(min_length=1, max_length=80)
    strategy: str | None = Field(default=None, max_length=80)
    options: dict[str, Value] = Field(default_factory=dict, max_length=50)
    seed: int = Field(default=0, ge=0, lt=2**31)
    promote: StrictBool = True
    why: str = Field(default="", max_length=500)


@dataclass(frozen=True)
class UpdateRequest:
    """What to learn, and how."""

    chunk: str  # id or unique beginning of an ingested chunk
    strategy: str | None = None  # a registered name; None lets `choose_strategy` decide
    # the strategy's options by name
    options: Mapping[str, str | float | int | bool] = field(default_factory=dict)
    seed: int = 0  # of every random choice
    promote: bool = True  # make the candidate live when it passes; otherwise it waits as a release
    why: str = ""  # a sentence for the commit
    by: str = ""  # who asks

    def to_json(self) -> dict[str, Any]:
        """Returns the request as plain values."""
        return asdict(self) | {"options": dict(self.options)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> UpdateRequest:
        """Reads what `to_json` wrote; unknown names are ignored, as a newer version may add some."""
        known = {f.name for f in fields(cls)}
        return cls(**{k: v for k, v in data.items() if k in known})


@dataclass(frozen=True)
class Stage:
    """Where an update is."""

    name: str  # features, train, measure, gate, examine, embed, index, release or commit
    message: str  # a sentence
    fraction: float | None = None  # done of this stage, 0 to 1, when known
    # figures of the stage, such as losses, rate and seconds left
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the stage as plain values."""
        return asdict(self) | {"details": dict(self.details)}

    @classmethod
    def from_json(cls, said: Mapping[str, Any]) -> Stage:
        """Returns the stage that a job's row tells of; what the row says beside it, such as a curve, is left."""
        return cls(**{key: said[key] for key in ("name", "message", "fraction", "details") if key in said})


def counted(name: str, message: str, done: int, total: int) -> Stage:
    """Returns a stage that is so many of how many things far."""
    return Stage(name, message, done / total if total else None, {"done": done, "total": total})


class StagePace:
    """How fast stages go: adds rate and seconds left to the details of those that say how far they are."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begins; `clock` gives seconds from any beginning."""
        self._clock = clock
        self._name, self._since, self._first, self._counted = "", 0.0, 0.0, 0

    def __call__(self, stage: Stage) -> Stage:
        """Returns the stage with `rate`, things a second, and `seconds_left`, once they can be told."""
        now, fraction, done = self._clock(), stage.fraction or 0.0, int(stage.details.get("done", 0))
        if stage.name != self._name or fraction < self._first:
            self._name, self._since, self._first, self._counted = stage.name, now, fraction, done
        elapsed = now - self._since
        if "seconds_left" in stage.details or elapsed < _TELLING_SECONDS:
            return stage
        found: dict[str, float] = {}
        if done > self._counted:
            found["rate"] = round((done - self._counted) / elapsed, 2)
        if fraction > self._first:
            found["seconds_left"] = round(elapsed * (1.0 - fraction) / (fraction - self._first), 1)
        return replace(stage, details={**stage.details, **found})


@dataclass(frozen=True)
class Forecast:
    """What an update will take."""

    strategy: str  # that would train
    pairs: int  # to learn from
    epochs: int  # over them
    seconds: Mapping[str, float]  # by stage
    peak_bytes: int  # of memory
    disk_bytes: int  # written and kept
    based_on: str  # what the rates come from, as a sentence
    recommended: str = ""  # the strategy that suits the chunk, where that was asked
    why: str = ""  # it does, as a sentence
    copies: int = 0  # trained besides, to examine a chunk that holds out too few
    misfit: str | None = None  # why `strategy` does not fit the chunk; None when it does

    @computed_field  # type: ignore[prop-decorator]
    @property
    def total_seconds(self) -> float:
        """Of all stages."""
        return sum(self.seconds.values())


@dataclass(frozen=True)
class Taken:
    """What an update took."""

    seconds: float  # of all stages
    peak_bytes: int  # of memory; 0 where nobody looked
    disk_bytes: int  # written and kept


def timed_as(stage: str) -> str:
    """Returns the one of `STAGES` that a stage's time is counted with; another stage is itself."""
    return _WITH.get(stage, stage)


def forecast_of(job: JobRecord) -> Forecast | None:
    """Returns what was forecast when a job was queued, if anything was."""
    kept = job.arguments.get("forecast")
    if not kept:
        return None
    return Forecast(**{one.name: kept[one.name] for one in fields(Forecast) if one.name in kept})


def seconds_left(job: JobRecord) -> float | None:
    """Returns how long a running update will still take, None where nobody can tell.

    The stage at work is believed where it says so itself; those that come after it are taken from the forecast.
    """
    expected = forecast_of(job)
    stage = timed_as(str(job.progress.get("name")))
    if expected is not None and stage in _BEFORE:
        return expected.total_seconds
    if expected is None or stage not in STAGES:
        return None
    rest = sum(expected.seconds.get(later, 0.0) for later in STAGES[STAGES.index(stage) + 1 :])
    own = (job.progress.get("details") or {}).get("seconds_left")
    if own is None:
        own = expected.seconds.get(stage, 0.0) * (1.0 - float(job.progress.get("fraction") or 0.0))
    return float(own) + rest
