"""Finding captions by words, in scripts with spaces and without."""

import unicodedata
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, literal, or_, select

from ingest.dialect import AnyCase, Likely, WordsFound, escaped
from ingest.schema import captions, images

# Scripts written without spaces between words: the full-text index would see a sentence as one word.
_UNSPACED = (
    *("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"),
    *("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "YI"),
)

_MOST_PIECES = 200  # that are looked for; SQLite reads no condition that is 1,000 deep
_JOINED = captions.join(images, captions.c.image == images.c.seq)


def containing(text: str, limit: int) -> Select[Any] | None:
    """Returns the query for `(image id, language, text)` of captions with all words of `text`; None if empty.

    Any text is safe: nothing in it is query syntax. The last word may be a beginning; scripts without spaces
    are matched as substrings, each piece between spaces by itself.
    """
    text = _clean(text)
    if not text:
        return None
    query = select(images.c.id, captions.c.language, captions.c.text).select_from(_JOINED)
    query = query.where(~captions.c.withdrawn).limit(limit)
    if _needs_substring(text):
        return query.where(_has_all(text)).order_by(captions.c.seq)
    found = WordsFound.of(text.split(), is_any=False)
    return query.join(found, captions.c.seq == found.c.caption).order_by(found.c.rank, captions.c.seq)


def images_captioned(text: str) -> Select[Any] | None:
    """Returns the query for the numbers of images with a caption that `containing` would find; None if empty."""
    text = _clean(text)
    if not text:
        return None
    query = select(captions.c.image).where(~captions.c.withdrawn)
    if _needs_substring(text):
        return query.where(_has_all(text))
    found = WordsFound.of(text.split(), is_any=False)
    return query.join(found, captions.c.seq == found.c.caption)


def like(text: str, limit: int, among: Select[Any] | None = None) -> Select[Any] | None:
    """Returns the query for `(image id, weight)` of the gallery's captions with any word of `text`; None if empty.

    The best comes first. The weight is BM25's (Robertson and Zaragoza, 2009); for scripts without spaces, whose pieces
    between spaces are matched as substrings, it is how many of these are found. `among` is a query for the ids of
    images that may be found; None for all.
    """
    text = _clean(text)
    if not text:
        return None
    if _needs_substring(text):
        has = [_has(piece) for piece in _pieces(text)]
        weight = sum((case((one, 1.0), else_=0.0) for one in has), literal(0.0)).label("weight")
        query = select(images.c.id, weight).select_from(_JOINED).where(or_(*has))
        query = query.order_by(weight.desc(), captions.c.seq)
    else:
        found = WordsFound.of(text.split(), is_any=True)
        query = select(images.c.id, -found.c.rank).select_from(_JOINED)
        query = query.join(found, captions.c.seq == found.c.caption).order_by(found.c.rank, captions.c.seq)
    if among is not None:
        # Else SQLite may take these first, and have the words looked up for each.
        query = query.where(Likely(images.c.id.in_(among)))
    return query.where(images.c.in_gallery, ~captions.c.withdrawn).limit(limit)


def _clean(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\0", " ")).encode("utf-8", "ignore").decode().strip()


def _has_all(text: str) -> ColumnElement[bool]:
    return and_(*map(_has, _pieces(text)))


def _pieces(text: str) -> list[str]:
    """Returns what is between spaces and has a letter or digit, each once; the whole text where nothing has one."""
    said = dict.fromkeys(piece for piece in text.split() if any(map(str.isalnum, piece)))
    return list(said)[:_MOST_PIECES] or [text]


def _has(text: str) -> ColumnElement[bool]:
    return AnyCase(captions.c.text, literal(f"%{escaped(text)}%"))


def _needs_substring(text: str) -> bool:
    if not any(character.isalnum() for character in text):
        return True
    return any(
        unicodedata.name(character, "").startswith(_UNSPACED) for character in text if ord(character) > 0xE00
    )
