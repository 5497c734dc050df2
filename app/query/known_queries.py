"""Queries that everybody may read, by which two releases are compared: canaries and held-out captions."""

from __future__ import annotations

import hashlib

from app.home.releases import ReleaseRecord
from app.home.workspace import Workspace
from app.learning.yardstick import own_trusted
from ingest.pair import Split

MOST_KNOWN = 100
"""Held-out captions and canaries among which those that changed most are looked for."""


def known_queries(
    workspace: Workspace, a: ReleaseRecord, b: ReleaseRecord, *, most: int = MOST_KNOWN
) -> list[str]:
    """Returns queries to compare two releases by: the canaries, and of held-out captions a sample.

    The captions are in languages that either has learned, as many of each as of the others, and stay the same from
    one call to the next. What people asked is not among them: it is nobody else's to read.
    """
    pinned = [pin.query for pin in workspace.catalog.pins()][:most]
    languages = list(dict.fromkeys((*a.manifest.languages, *b.manifest.languages)))
    trusted = own_trusted(workspace, a, b)
    drawn = {
        language: sorted(
            {
                pair.text
                for pair in workspace.catalog.pairs(language=language, split=Split.TEST, chunks=trusted)
            },
            key=_hash,
        )
        for language in languages
    }
    turns = max(map(len, drawn.values()), default=0)
    dealt = [
        drawn[language][turn]
        for turn in range(turns)
        for language in languages
        if turn < len(drawn[language])
    ]
    return list(dict.fromkeys([*pinned, *dealt]))[:most]


def _hash(text: str) -> str:
    return hashlib.sha256(f"comparison {text}".encode()).hexdigest()
