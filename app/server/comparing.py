"""Comparing releases by many queries, for REST and for the Compare tab."""

from __future__ import annotations

from collections.abc import Sequence

from app.desk.hits import ManyCompared
from app.query.comparison import ask_all, mean_overlap, most_changed
from app.query.grammar import literal
from app.query.known_queries import known_queries
from app.server.serving import Serving


def compare_all(
    serving: Serving, queries: Sequence[str], a: str, b: str, *, language: str = "auto", k: int | None = None
) -> ManyCompared:
    """Asks two releases many queries; each waits for a place by itself, so that searches come between.

    Raises:
        UnknownRelease: there is no such release.
        NoRelease: nothing is live.
    """
    first, second = (serving.snapshot(name).release.id for name in (a, b))
    asked = ask_all(lambda query: serving.compare(query, first, second, language=language, k=k), queries)
    return ManyCompared(first, second, len(asked), mean_overlap(asked), tuple(asked))


def changed_most(
    serving: Serving, a: str, b: str, *, language: str = "auto", k: int | None = None, most: int = 20
) -> ManyCompared:
    """Asks two releases canaries and a sample of held-out captions; returns those whose answers changed most.

    Raises:
        UnknownRelease: there is no such release.
        NoRelease: nothing is live.
    """
    releases = [serving.workspace.releases.release(name) for name in (a, b)]
    queries = known_queries(serving.workspace, *releases)
    # Captions and canaries are meant as they are, whatever signs are in them.
    every = compare_all(serving, list(map(literal, queries)), a, b, language=language, k=k)
    changed = most_changed(every.results, most)
    return ManyCompared(every.a, every.b, every.queries, every.overlap, tuple(changed))
