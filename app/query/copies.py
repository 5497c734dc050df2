"""Near-copies folded: of pictures of one thing only the best hit is shown, and the others with it.

Which pictures those are was found out when they were taken in (`ingest.copies`), by laying them over each other, or
was stated by who uploaded them; a cosine could not tell a copy from a look-alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.query.ranking import Hit


def folded(hits: Sequence[Hit], groups: Mapping[str, str]) -> list[Hit]:
    """Returns the first hit of each group, with the ids of the later ones.

    `hits` are best first; `groups` has by picture the name of its group.
    """
    first: dict[str, Hit] = {}
    copies: dict[str, list[str]] = {}
    for hit in hits:
        group = groups[hit.id]
        if group in first:
            copies.setdefault(group, []).append(hit.id)
        else:
            first[group] = hit
    return [
        replace(hit, copies=tuple(copies[group])) if group in copies else hit for group, hit in first.items()
    ]
