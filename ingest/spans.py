"""Where the time of a request goes: whoever does a step of it says so, and whoever wants to know listens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field

Trace = Callable[[str], AbstractContextManager[object]]
STEPS = ("parse", "detect", "tokenise", "encode", "index", "relevance", "catalog", "answer")
"""Of a query, in their order; no span has another name."""


@dataclass
class Spans:
    """What one request has spent so far."""

    trace: Trace = nullcontext  # surrounds each span, for a tracer
    # in seconds by step, without the steps inside it
    spent: dict[str, float] = field(default_factory=dict)
    inner: float = 0.0  # spent by steps inside the one under way


_LISTENING: ContextVar[Spans | None] = ContextVar("listening", default=None)


@contextmanager
def listening(spans: Spans) -> Iterator[None]:
    """Has the steps that run inside counted, also those in threads that take this context over."""
    before = _LISTENING.set(spans)
    try:
        yield
    finally:
        _LISTENING.reset(before)


@contextmanager
def span(step: str) -> Iterator[None]:
    """Says that what runs inside is a step, one of `STEPS`; costs next to nothing where nobody listens."""
    spans = _LISTENING.get()
    if spans is None:
        yield
        return
    around, spans.inner = spans.inner, 0.0
    begun = time.perf_counter()
    try:
        with spans.trace(step):
            yield
    finally:
        spent = time.perf_counter() - begun
        spans.spent[step] = spans.spent.get(step, 0.0) + spent - spans.inner
        spans.inner = around + spent
