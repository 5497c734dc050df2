"""A person's word on a release, as the screens say it."""

from __future__ import annotations

from app.ui.wording import escaped, moment
from app.ui.words import ENGLISH, Words
from ingest.release_words import ReleaseWord

_SAID = {"kept": "Kept", "rejected": "Rejected", "pinned": "Pinned", "unpinned": "Unpinned"}
_NOTE = "\ue000"  # stands for a person's note while the sentence around it is put into another language


def release_word_line(word: ReleaseWord, say: Words = ENGLISH) -> str:
    """Returns what somebody said of a release, with when and why: "Rejected by ada, 2026-11-21 10:00: too slow"."""
    why = f": {_NOTE}" if word.why else ""
    said = say.said(escaped(f"{_SAID.get(word.said, word.said)} by {word.by}, {moment(word.created)}{why}."))
    return said.replace(_NOTE, escaped(word.why.rstrip(".")))
