"""Which pictures are nearest to a query, in the order of all its readings, of a match, or of another release."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.desk.errors import BadQuery
from app.desk.hits import Compared, Found, RankMove, SearchAnswer
from app.desk.operation import grown
from app.desk.probes import shown_slices
from app.language.detection import Reading, handicaps
from app.query.snapshot import Snapshot, Vectors
from index.generation import Generation, Rows
from model_updates.errors import NoFusion
from model_updates.readings import NEIGHBOUR, background, fused

FIRST = 50
"""Hits that are laid one by one beside a text, where somebody asks for that."""

MOST_RESULTS = 1000
# Of each reading of an unsure query at least so many hits are looked at, which most often will do, and at most so many
# to find what all readings find near.
SHALLOWEST, DEEPEST = 100, 4096


@dataclass(slots=True)
class Hit:
    """One picture found: cosine of query and picture, and its place from 1.

    Not frozen: a deep page has thousands of hits before it, and frozen ones take three times as long to make.

    Where the query was read in several languages, the likeliest one's are cosines and the others' are levelled with
    them (see `ranked`). Where hits were re-ranked, `match` is the log-odds that text and picture belong together,
    and scores need not fall.
    """

    id: str
    score: float
    rank: int
    match: float | None = None
    by: tuple[str, ...] = ()  # which halves of a search found it: vectors, captions
    fused: float | None = None  # what it was ranked by where both were asked
    copies: tuple[str, ...] = ()  # near-copies of it that were found too and are folded under it
    parts: tuple[float, ...] = ()  # the cosine of each part of the query, where that was asked
    relevance: str = ""  # strong, weak or nothing; empty where nobody can say (see `app.query.relevance`)


def as_found(hits: Iterable[Hit]) -> tuple[Found, ...]:
    """Returns hits as answers have them; who knows the catalog adds what is known of the pictures."""
    return tuple(grown(Found, hit) for hit in hits)


def ranked(
    snapshot: Snapshot,
    vectors: Vectors,
    chosen: Sequence[Reading],
    k: int,
    allowed: Rows | None = None,
) -> tuple[Hit, ...]:
    """Returns the pictures nearest to a query, each with its score by all readings together, best first.

    Args:
        snapshot: of the request.
        vectors: (r, dim) float32, the query as each of r readings has it.
        chosen: the readings.
        k: how many.
        allowed: of which rows of the index, all of which may be shown; any that may where None.

    Raises:
        BadQuery: a vector is not finite.
    """
    if not np.isfinite(vectors).all():
        raise BadQuery("This query could not be encoded; try other words.")
    generation = snapshot.generation
    allowed = snapshot.shown if allowed is None else allowed
    if len(chosen) == 1:
        scores, ids = generation.search(vectors, k, allowed=allowed)
        return _hits(zip(ids[0], scores[0].tolist(), strict=False))
    return _together(generation, vectors, chosen, snapshot.encoder.similarity_scale, k, allowed)


def _together(
    generation: Generation,
    vectors: Vectors,
    chosen: Sequence[Reading],
    scale: float,
    k: int,
    allowed: Rows | None,
) -> tuple[Hit, ...]:
    """Returns the first k by several readings.

    A reading's search says nothing of pictures that another one found, so those are looked up; and a picture that none
    found may still be ahead of some by being near in all, so it goes deeper until that cannot be.
    """
    lowered = np.asarray(handicaps(chosen, scale), dtype=np.float32)
    depth = max(k, SHALLOWEST, NEIGHBOUR)
    while True:
        scores, ids = generation.search(vectors, depth, allowed=allowed)
        taken_off = background(scores)
        taken_off -= taken_off[0]  # the likeliest reading's scores stay its cosines
        union = list(dict.fromkeys(image_id for row in ids for image_id in row))
        if not union:
            return ()
        found = fused(generation.scores_of(vectors, union) - taken_off[:, None], lowered, scale)
        # What no reading found is in each of them no nearer than the last that it found.
        beyond = fused(scores[:, -1:] - taken_off[:, None], lowered, scale)[0]
        is_all = any(len(row) < depth for row in ids)
        if is_all or depth >= DEEPEST or (found >= beyond).sum() >= k:
            ordered = sorted(zip(union, found.tolist(), strict=True), key=lambda hit: (-hit[1], hit[0]))
            return _hits(ordered[:k])
        depth *= 4


def moved(snapshots: Sequence[Snapshot], answers: Sequence[SearchAnswer]) -> Compared:
    """Says how pictures moved from the first of two answers to the second."""
    rank_a, rank_b = ({hit.id: hit.rank for hit in answer.hits} for answer in answers)
    union = list(dict.fromkeys([*rank_b, *rank_a]))
    common = len(rank_a.keys() & rank_b.keys())
    measured = [shown_slices(snapshot.release.manifest.slices) for snapshot in snapshots]
    return Compared(
        a=answers[0],
        b=answers[1],
        overlap=common / max(1, min(len(rank_a), len(rank_b))),
        moves=tuple(RankMove(one, rank_a.get(one), rank_b.get(one)) for one in union),
        slices=dict(zip("ab", measured, strict=True)),
    )


def reranked(snapshot: Snapshot, text: str, language: str, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
    """Puts the first hits in the order of cosines and matching together; the text is read in its likeliest language."""
    first = hits[:FIRST]
    try:
        if snapshot.reranker is None:
            raise NoFusion("it has no fusion encoder; `ctp` with fusion=yes teaches one")
        odds = snapshot.reranker.log_odds(text, language, [hit.id for hit in first])
    except NoFusion as error:
        raise BadQuery(
            f"Release {snapshot.release.id} cannot re-rank: {error}. Or search without."
        ) from error
    scale = snapshot.encoder.similarity_scale
    together = [scale * hit.score + float(match) for hit, match in zip(first, odds, strict=True)]
    order = sorted(range(len(first)), key=lambda n: (-together[n], first[n].rank))
    moved = [replace(first[n], rank=rank, match=float(odds[n])) for rank, n in enumerate(order, start=1)]
    return (*moved, *hits[FIRST:])


def _hits(ordered: Iterable[tuple[str, float]]) -> tuple[Hit, ...]:
    return tuple(Hit(image_id, score, rank) for rank, (image_id, score) in enumerate(ordered, start=1))
