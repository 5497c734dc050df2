"""Samples that hardly change when what they are drawn from does."""

import hashlib
from collections.abc import Iterable


def sampled(ids: Iterable[str], count: int) -> list[str]:
    """Returns up to so many ids with the lowest hashes: a sample that hardly changes when ids come or go."""
    return sorted(ids, key=by_hash)[: max(0, count)]


def by_hash(text: str) -> str:
    """Returns what puts texts into an order that has nothing to do with them."""
    # Of its own: the splits follow from another hash of the same ids.
    return hashlib.sha256(f"yardstick {text}".encode()).hexdigest()
