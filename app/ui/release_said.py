"""A person's word on a release, as the screens say it."""

from __future__ import annotations

from app.ui.wording import escaped, moment
from app.ui.words import ENGLISH, Words
from ingest.release_words import ReleaseWord
from ingest.sentence import template

_SAID = {
    "kept": template("Kept by {name}, {time}"),
    "rejected": template("Rejected by {name}, {time}"),
    "pinned": template("Pinned by {name}, {time}"),
    "unpinned": template("Unpinned by {name}, {time}"),
}


def release_word_line(word: ReleaseWord, say: Words = ENGLISH) -> str:
    """Returns what somebody said of a release, with when and why: "Rejected by ada, 2026-11-21 10:00: too slow"."""
    said = say(_SAID[word.said], name=word.by, time=moment(word.created))
    note = f": {word.why.rstrip('.')}" if word.why else ""
    return escaped(f"{said}{note}.")
