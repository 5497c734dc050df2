"""Claims about spans: each step counts its own time alone, and only while somebody listens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context

import pytest

from ingest.spans import Spans, listening, span


def _query(*, fails: bool = False) -> None:
    with span("encode"):
        time.sleep(0.02)
        with span("tokenise"):
            time.sleep(0.03)
        if fails:
            raise ValueError("no such words")
    with span("encode"):
        time.sleep(0.01)


def test_a_step_counts_its_own_time_and_all_of_its_turns() -> None:
    spans = Spans()
    with listening(spans):
        _query()
    _query()  # nobody listens any more
    assert 0.03 <= spans.spent["encode"] < 0.055
    assert 0.03 <= spans.spent["tokenise"] < 0.055


def test_what_fails_is_counted_and_threads_that_take_the_context_over_are_heard() -> None:
    spans = Spans()
    with listening(spans), ThreadPoolExecutor() as pool:
        failed = pool.submit(copy_context().run, _query, fails=True)
        with pytest.raises(ValueError, match="no such words"):
            failed.result()
    assert spans.spent.keys() == {"encode", "tokenise"}
    assert spans.spent["encode"] < 0.03


def test_a_tracer_surrounds_each_step() -> None:
    seen = list[str]()

    @contextmanager
    def trace(step: str) -> Iterator[None]:
        seen.append(f"{step} begins")
        yield
        seen.append(f"{step} ends")

    with listening(Spans(trace)):
        _query()
    assert seen[:4] == ["encode begins", "tokenise begins", "tokenise ends", "encode ends"]
