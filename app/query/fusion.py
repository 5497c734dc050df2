"""Hybrid search: what the vectors find and what the captions say, fused by rank.

Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009): each list gives a picture 1 / (60 + rank), and the
sums decide. Ranks need no common scale, which cosines and BM25 do not have.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

CONSTANT = 60  # as in the paper
DEPTH = 1000
"""How deep each list is fused: always the same, for a rank that only a deeper list knows would move other pages."""
WORTH = 0.5  # of the best caption's BM25; below it, a caption shares only common words with the query


def caption_ranks(found: Sequence[tuple[str, float]], allowed: Collection[str]) -> list[str]:
    """Returns the pictures whose captions are about as near to the words as the best one's, best first.

    `found` has pictures with their caption's BM25, best first.
    """
    kept = [(image_id, weight) for image_id, weight in found if image_id in allowed]
    if not kept:
        return []
    least = WORTH * kept[0][1]
    return [image_id for image_id, weight in kept if weight >= least][:DEPTH]


def fused(lists: Mapping[str, Sequence[str]]) -> list[tuple[str, float, tuple[str, ...]]]:
    """Returns (picture, fused score, names of the lists that have it), best first.

    `lists` has by name pictures in order, best first.
    """
    scores: dict[str, float] = {}
    by: dict[str, list[str]] = {}
    for name, ordered in lists.items():
        for rank, image_id in enumerate(ordered, start=1):
            scores[image_id] = scores.get(image_id, 0.0) + 1 / (CONSTANT + rank)
            by.setdefault(image_id, []).append(name)
    best = sorted(scores, key=lambda image_id: (-scores[image_id], image_id))
    return [(image_id, scores[image_id], tuple(by[image_id])) for image_id in best]
