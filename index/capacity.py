"""What an index of so many vectors takes in each engine that may hold it: memory, disk, processor, time to build.

Each engine was measured, or published, at one size (`capacity.json`, which `benchmarks/scale.py` brings up to date).
What lies beyond follows from how the engine works, and is an estimate.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import NamedTuple

BUSY = 0.6  # the share of its cores that a machine which answers at once can use
USABLE = 0.75  # the share of its memory that an index may have
_KEPT = "capacity.json"


class Machine(NamedTuple):
    """A machine that is to hold an index, or a part of it."""

    cores: int
    memory: float  # bytes
    disk: float  # bytes


class Need(NamedTuple):
    """What an index takes, over all machines."""

    memory: float  # bytes that are read at any time, in memory or mapped
    disk: float  # bytes
    query_ms: float  # of one core, for one query
    build_hours: float  # of one core


@dataclass(frozen=True)
class Engine:
    """An engine as it was at one size."""

    name: str
    finds: float  # the share of the first ten of an exact search that it found
    memory_bytes: tuple[float, float]  # of a vector, and of each of its numbers
    disk_bytes: tuple[float, float]
    query_ms: float  # of one core
    build_ms: float  # of one core, for a vector
    count: int  # vectors that it was measured with
    dim: int  # numbers of each
    looks_at: str  # of n vectors a query compares: all, root (as many lists as each holds), log (a graph)
    most_machines: int | None  # that one index can be spread over; None: any number
    is_offered: bool  # whether Perennial searches by it
    source: str  # where the figures are from

    def need(self, count: float, dim: int) -> Need:
        """Returns what an index of so many vectors of so many numbers takes.

        Raises:
            ValueError: Either is below 1.
        """
        if count < 1 or dim < 1:
            raise ValueError(f"an index of {count:g} vectors of {dim} numbers")
        memory, disk = (count * (own + dim * each) for own, each in (self.memory_bytes, self.disk_bytes))
        wider = dim / self.dim
        more = self._compared(count) / self._compared(self.count)
        built = count * (1 if self.looks_at == "all" else more)
        return Need(memory, disk, self.query_ms * wider * more, self.build_ms * wider * built / 3.6e6)

    def machines(self, need: Need, queries_a_second: float, each: Machine) -> int | None:
        """Returns how many machines hold the index and answer so many queries; None where it does not fit.

        Copies of an index that one machine holds share the queries.
        """
        parts = max(1, math.ceil(need.memory / (each.memory * USABLE)), math.ceil(need.disk / each.disk))
        if self.most_machines is not None and parts > self.most_machines:
            return None
        answering = math.ceil(queries_a_second * need.query_ms / 1000 / (each.cores * BUSY))
        return parts * math.ceil(max(1, answering) / parts)

    def _compared(self, count: float) -> float:
        return {"all": count, "root": math.sqrt(count), "log": math.log(max(count, 2.0))}[self.looks_at]


def engines() -> Sequence[Engine]:
    """Returns the engines, the simplest first."""
    said = json.loads(files(__package__).joinpath(_KEPT).read_text(encoding="utf-8"))
    return [
        Engine(
            **one
            | {name: (float(one[name][0]), float(one[name][1])) for name in ("memory_bytes", "disk_bytes")}
        )
        for one in said
    ]
