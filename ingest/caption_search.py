"""Finding captions by words, in scripts with spaces and without."""

import unicodedata
from typing import Any

from sqlalchemy import ColumnElement, Select, column, literal, literal_column, select, table

from ingest.schema import captions, images

# Scripts written without spaces between words: the full-text index would see a sentence as one word.
_UNSPACED = (
    *("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"),
    *("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "YI"),
)

_FULL_TEXT: Any = table("captions_text", column("rowid"), column("text"))
_MATCHING: ColumnElement[Any] = literal_column("captions_text")
_ROW: ColumnElement[Any] = literal_column("captions_text.rowid")
_RANK: ColumnElement[Any] = literal_column("captions_text.rank")
_JOINED = captions.join(images, captions.c.image == images.c.seq)


def containing(text: str, limit: int) -> Select[Any] | None:
    """Returns the query for `(image id, language, text)` of captions with all words of `text`; None if empty.

    Any text is safe: nothing in it is query syntax. The last word may be a beginning; scripts without spaces
    are matched as substrings.
    """
    query = _all_words(select(images.c.id, captions.c.language, captions.c.text).select_from(_JOINED), text)
    if query is None:
        return None
    order = [captions.c.seq] if _needs_substring(_clean(text)) else [_RANK, captions.c.seq]
    return query.order_by(*order).limit(limit)


def images_captioned(text: str) -> Select[Any] | None:
    """Returns the query for the numbers of images with a caption that `containing` would find; None if empty."""
    return _all_words(select(captions.c.image), text)


def like(text: str, limit: int) -> Select[Any] | None:
    """Returns the query for `(image id, weight)` of captions with any word of `text`, best first; None if empty.

    The weight is BM25's (Robertson and Zaragoza, 2009), 1 for scripts without spaces, which are matched as substrings.
    """
    text = _clean(text)
    if not text:
        return None
    if _needs_substring(text):
        found = select(images.c.id, literal(1.0)).select_from(_JOINED).where(_has(text))
        return found.where(~captions.c.withdrawn).order_by(captions.c.seq).limit(limit)
    # SQLite's rank is BM25 below zero.
    found = _matching(select(images.c.id, -_RANK).select_from(_JOINED), " OR ".join(_quoted(text)))
    return found.order_by(_RANK, captions.c.seq).limit(limit)


def _all_words(query: Select[Any], text: str) -> Select[Any] | None:
    text = _clean(text)
    if not text:
        return None
    if _needs_substring(text):
        return query.where(_has(text), ~captions.c.withdrawn)
    return _matching(query, " ".join(_quoted(text)) + "*")


def _matching(query: Select[Any], terms: str) -> Select[Any]:
    joined = query.join(_FULL_TEXT, captions.c.seq == _ROW)
    return joined.where(_MATCHING.op("MATCH")(terms), ~captions.c.withdrawn)


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\0", " ")).encode("utf-8", "ignore").decode().strip()


def _quoted(text: str) -> list[str]:
    return ['"' + word.replace('"', '""') + '"' for word in text.split()]


def _has(text: str) -> ColumnElement[bool]:
    return captions.c.text.contains(text, autoescape=True)


def _needs_substring(text: str) -> bool:
    if not any(character.isalnum() for character in text):
        return True
    return any(
        unicodedata.name(character, "").startswith(_UNSPACED) for character in text if ord(character) > 0xE00
    )
