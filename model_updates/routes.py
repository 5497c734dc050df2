"""Routes: what reads an input. A text's route is its language, a picture's its domain.

A picture that nobody taught may read a route *quietly*: its vector is that of the route, turned towards a direction
which no text has, until its likeness to every text is a share of what it was.
"""

import hashlib
from collections.abc import Sequence

BASE = ""
"""The route of a picture whose domain has no insert."""
_QUIETLY = "~"

Route = str | Sequence[str]
"""One language or domain for all rows, or one for each."""


def quiet(route: str, share: float) -> str:
    """Returns the route on which pictures have a share, in (0, 1], of the likeness to texts that `route` gives them."""
    return route if share == 1 else f"{route}{_QUIETLY}{round(100 * share)}"


def loudness(route: str) -> tuple[str, float]:
    """Returns what a route reads, and the share of its likeness to texts; the inverse of `quiet`."""
    name, _, percent = route.partition(_QUIETLY)
    return name, int(percent or 100) / 100


def extended(fingerprint: str, digests: Sequence[str]) -> str:
    """Returns a fingerprint with the digests of inserts hashed into it; the same one when there are none."""
    if not digests:
        return fingerprint
    return hashlib.sha256("|".join([fingerprint, *digests]).encode()).hexdigest()
