"""Claims about what an index takes: the figures at the size that was measured, and how they grow beyond."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from index.capacity import BUSY, USABLE, Engine, Machine, engines

MACHINE = Machine(cores=16, memory=64e9, disk=2e12)


@pytest.fixture(params=engines(), ids=lambda one: one.name)
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found


def test_at_the_size_that_was_measured_it_is_what_was_measured(engine: Engine) -> None:
    need = engine.need(engine.count, engine.dim)
    assert need.query_ms == engine.query_ms
    assert need.build_hours * 3.6e6 == pytest.approx(engine.count * engine.build_ms)
    assert need.memory == engine.count * (engine.memory_bytes[0] + engine.dim * engine.memory_bytes[1])
    assert 0 < engine.finds <= 1
    assert engine.source


@pytest.mark.parametrize(
    ("looks_at", "query", "build"),
    [("all", 100, 100), ("root", 10, 1000), ("log", math.log(1e6) / math.log(1e4), None)],
)
def test_a_query_grows_with_what_it_compares(looks_at: str, query: float, build: float | None) -> None:
    engine = replace(engines()[0], looks_at=looks_at)
    small, large = engine.need(1e4, 512), engine.need(1e6, 512)
    assert large.query_ms / small.query_ms == pytest.approx(query)
    assert large.build_hours / small.build_hours == pytest.approx(build or 100 * query)
    assert large.memory / small.memory == pytest.approx(100)


def test_memory_disk_and_queries_each_ask_for_machines() -> None:
    engine = replace(
        engines()[-1], memory_bytes=(0, 1), disk_bytes=(0, 1), query_ms=6.0, count=10**6, dim=100
    )
    need = engine.need(10**6, 100)
    assert engine.machines(need, 0, MACHINE) == 1
    small = Machine(cores=16, memory=1e8 / USABLE / 2.9, disk=2e12)
    assert engine.machines(need, 0, small) == 3
    assert engine.machines(need, 0, MACHINE._replace(disk=2.5e7)) == 4
    one_answers = 16 * BUSY / 0.006
    assert engine.machines(need, 2 * one_answers, MACHINE) == 2
    assert engine.machines(need, 4 * one_answers, small) == 6, "two copies of three parts"


def test_what_cannot_be_spread_fits_one_machine_or_none() -> None:
    whole = engines()[0]
    assert whole.most_machines == 1
    assert whole.machines(whole.need(1e6, 512), 1, MACHINE) == 1
    assert whole.machines(whole.need(1e9, 512), 1, MACHINE) is None
    assert any(one.machines(one.need(1e9, 512), 1, MACHINE) for one in engines())


def test_nothing_needs_nothing_and_is_refused(engine: Engine) -> None:
    for count, dim in ((0, 512), (10, 0)):
        with pytest.raises(ValueError, match="an index of"):
            engine.need(count, dim)
