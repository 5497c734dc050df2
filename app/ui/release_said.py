"""A person's word on a release, as the screens say it."""

from __future__ import annotations

from app.ui.wording import escaped, moment
from ingest.release_words import ReleaseWord

_SAID = {"kept": "Kept", "rejected": "Rejected", "pinned": "Pinned", "unpinned": "Unpinned"}


def release_word_line(word: ReleaseWord) -> str:
    """Returns what somebody said of a release, with when and why: "Rejected by ada, 2026-11-21 10:00: too slow"."""
    why = f": {word.why.rstrip('.')}" if word.why else ""
    return escaped(f"{_SAID.get(word.said, word.said)} by {word.by}, {moment(word.created)}{why}.")
