"""Finding captions by words, in scripts with spaces and without."""

from __future__ import annotations

import unicodedata
from typing import Any

from sqlalchemy import ColumnElement, Select, column, literal_column, select, table

from ingest.schema import captions, images

# Scripts written without spaces between words: the full-text index would see a sentence as one word.
_UNSPACED = (
    "CJK",
    "HIRAGANA",
    "KATAKANA",
    "HANGUL",
    "BOPOMOFO",
    "THAI",
    "LAO",
    "KHMER",
    "MYANMAR",
    "TIBETAN",
    "YI",
)


def containing(text: str, limit: int) -> Select[Any] | None:
    """Returns the query for `(image id, language, text)` of captions with all words of `text`; None if empty.

    Any text is safe: nothing in it is query syntax. The last word may be a beginning; scripts without spaces
    are matched as substrings.
    """
    text = unicodedata.normalize("NFC", text.replace("\0", " ")).encode("utf-8", "ignore").decode().strip()
    if not text:
        return None
    query = (
        select(images.c.id, captions.c.language, captions.c.text)
        .select_from(captions.join(images, captions.c.image == images.c.seq))
        .where(~captions.c.withdrawn)
        .limit(limit)
    )
    if _needs_substring(text):
        return query.where(captions.c.text.contains(text, autoescape=True)).order_by(captions.c.seq)
    words = " ".join('"' + word.replace('"', '""') + '"' for word in text.split())
    matching: ColumnElement[Any] = literal_column("captions_text")
    full_text: Any = table("captions_text", column("rowid"), column("text"))
    return (
        query.join(full_text, literal_column("captions_text.rowid") == captions.c.seq)
        .where(matching.op("MATCH")(words + "*"))
        .order_by(literal_column("captions_text.rank"), captions.c.seq)
    )


def _needs_substring(text: str) -> bool:
    if not any(character.isalnum() for character in text):
        return True
    return any(
        unicodedata.name(character, "").startswith(_UNSPACED) for character in text if ord(character) > 0xE00
    )
