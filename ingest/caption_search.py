"""Finding captions by words, in scripts with spaces and without."""

import unicodedata
from typing import Any

from sqlalchemy import ColumnElement, Select, literal, select

from ingest.dialect import AnyCase, WordsFound, escaped
from ingest.schema import captions, images

# Scripts written without spaces between words: the full-text index would see a sentence as one word.
_UNSPACED = (
    *("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"),
    *("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "YI"),
)

_JOINED = captions.join(images, captions.c.image == images.c.seq)


def containing(text: str, limit: int) -> Select[Any] | None:
    """Returns the query for `(image id, language, text)` of captions with all words of `text`; None if empty.

    Any text is safe: nothing in it is query syntax. The last word may be a beginning; scripts without spaces
    are matched as substrings.
    """
    text = _clean(text)
    if not text:
        return None
    query = select(images.c.id, captions.c.language, captions.c.text).select_from(_JOINED)
    query = query.where(~captions.c.withdrawn).limit(limit)
    if _needs_substring(text):
        return query.where(_has(text)).order_by(captions.c.seq)
    found = WordsFound.of(text.split(), is_any=False)
    return query.join(found, captions.c.seq == found.c.caption).order_by(found.c.rank, captions.c.seq)


def images_captioned(text: str) -> Select[Any] | None:
    """Returns the query for the numbers of images with a caption that `containing` would find; None if empty."""
    text = _clean(text)
    if not text:
        return None
    query = select(captions.c.image).where(~captions.c.withdrawn)
    if _needs_substring(text):
        return query.where(_has(text))
    found = WordsFound.of(text.split(), is_any=False)
    return query.join(found, captions.c.seq == found.c.caption)


def like(text: str, limit: int) -> Select[Any] | None:
    """Returns the query for `(image id, weight)` of captions with any word of `text`, best first; None if empty.

    The weight is BM25's (Robertson and Zaragoza, 2009), 1 for scripts without spaces, which are matched as substrings.
    """
    text = _clean(text)
    if not text:
        return None
    if _needs_substring(text):
        query = select(images.c.id, literal(1.0)).select_from(_JOINED).where(_has(text))
        return query.where(~captions.c.withdrawn).order_by(captions.c.seq).limit(limit)
    found = WordsFound.of(text.split(), is_any=True)
    query = select(images.c.id, -found.c.rank).select_from(_JOINED).where(~captions.c.withdrawn)
    query = query.join(found, captions.c.seq == found.c.caption)
    return query.order_by(found.c.rank, captions.c.seq).limit(limit)


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\0", " ")).encode("utf-8", "ignore").decode().strip()


def _has(text: str) -> ColumnElement[bool]:
    return AnyCase(captions.c.text, literal(f"%{escaped(text)}%"))


def _needs_substring(text: str) -> bool:
    if not any(character.isalnum() for character in text):
        return True
    return any(
        unicodedata.name(character, "").startswith(_UNSPACED) for character in text if ord(character) > 0xE00
    )
