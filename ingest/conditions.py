"""What a filter may ask of a picture, as conditions on rows of `images`: its dates, its texts, where it was seen."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any

from sqlalchemy import (
    ColumnElement,
    and_,
    case,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
)

from ingest.caption_search import images_captioned
from ingest.dialect import AnyCase, entries_of, escaped
from ingest.errors import BadOption
from ingest.readers.names import text_of
from ingest.schema import captions, chunk_images, chunks, images
from ingest.sentence import phrase
from ingest.sources import sources

Condition = ColumnElement[bool]
Build = Callable[[str, str, str | None, str | None], Condition]
"""Makes a condition of what stands behind a field's dot, an operator, and the ends of a range; one value is both."""
Seen = Callable[[Condition], Condition]
"""Makes of a condition on a row of `sources` that a picture was seen so, at a place that is still there."""

_NONE = "none"
# As it is kept: a beginning of it is meant with all that may follow.
_DATE = re.compile(r"(?P<year>[0-9]{4})(-(?P<month>[0-9]{2})(-(?P<day>[0-9]{2})(T[0-9:.+Z-]*)?)?)?")
_AFTER = "~"  # sorts behind all that may follow the beginning of a date
_COMPARE = {">=": ge, ">": gt, "<=": le, "<": lt}


def _ordered(column: Any, operator: str, low: Any, high: Any, after: Callable[[Any], Any]) -> Condition:
    """Compares by order; `after` returns what lies behind everything that a value means."""
    if operator == "=":
        return and_(*_bounds(column, low, high, after))
    limit = after(low) if operator in {">", "<="} else low
    compared: Condition = _COMPARE[operator](column, limit)
    return compared


def _bounds(column: Any, low: Any, high: Any, after: Callable[[Any], Any]) -> list[Condition]:
    lower = [] if low is None else [column >= low]
    return lower + ([] if high is None else [column <= after(high)])


def _is_date(said: str) -> bool:
    found = _DATE.fullmatch(said)
    if found is None:
        return False
    try:
        date(int(found["year"]), int(found["month"] or 1), int(found["day"] or 1))
    except ValueError:
        return False
    return True


def _day(column: Any) -> Build:
    def build(_: str, operator: str, low: str | None, high: str | None) -> Condition:
        if low == high == _NONE:
            return column == ""  # type: ignore[no-any-return]
        _refuse_contains(operator)
        for one in (low, high):
            if one is not None and not _is_date(one):
                raise BadOption(
                    phrase(
                        "A date is written like 2024, 2024-07 or 2024-07-31; found {found}.",
                        found=repr(one[:40]),
                    )
                )
        return and_(column != "", _ordered(column, operator, low, high, lambda one: one + _AFTER))

    return build


def _number(column: Any) -> Build:
    def build(_: str, operator: str, low: str | None, high: str | None) -> Condition:
        _refuse_contains(operator)
        values = [None if one is None else _as_number(one) for one in (low, high)]
        if any(one is not None and value is None for one, value in zip((low, high), values, strict=True)):
            raise BadOption(phrase("{found} is no number.", found=repr(low if values[0] is None else high)))
        return _ordered(column, operator, values[0], values[1], lambda one: one)

    return build


def _text(column: Any) -> Build:
    def build(_: str, operator: str, low: str | None, high: str | None) -> Condition:
        if low == high == _NONE:
            return column == ""  # type: ignore[no-any-return]
        return _compared(column, operator, low, high)

    return build


def _compared(column: Any, operator: str, low: str | None, high: str | None) -> Condition:
    if operator == "~":
        return _contains(column, low or "")
    if operator == "=" and low == high:
        return func.lower(column) == func.lower(low)
    return _ordered(column, operator, low, high, lambda one: one + chr(0x10FFFF))


def _contains(column: Any, text: str) -> Condition:
    return AnyCase(column, literal(f"%{escaped(text)}%"))


def one_by_one(condition: Condition) -> Condition:
    """Asks it of each picture, so that the first ones are found soon."""
    return exists().where(sources.c.image_id == images.c.id, sources.c.gone == "", condition)


def at_once(condition: Condition) -> Condition:
    """Asks it of all places in one go: a tenth of the time for each picture, but all of it before the first one."""
    return images.c.id.in_(select(sources.c.image_id).where(sources.c.gone == "", condition))


def _folder(seen: Seen, _: str, operator: str, low: str | None, high: str | None) -> Condition:
    if operator == "~":
        return seen(_contains(sources.c.place, low or ""))
    _require_one(operator, low, high, "folder")
    name = escaped(text_of((low or "").rstrip("/")))
    begins = name if name.startswith("/") else f"%/{name}"
    return seen(AnyCase(sources.c.place, literal(f"{begins}/%")))


def _file(seen: Seen, _: str, operator: str, low: str | None, high: str | None) -> Condition:
    whole = case((sources.c.name == "", sources.c.place), else_=sources.c.name)
    if operator == "~":
        return seen(_contains(whole, low or ""))
    _require_one(operator, low, high, "file")
    name = text_of(low or "")
    return seen(or_(whole == name, AnyCase(whole, literal(f"%/{escaped(name)}"))))


def _key(seen: Seen, _: str, operator: str, low: str | None, high: str | None) -> Condition:
    if low == high == _NONE:
        return not_(seen(sources.c.key != ""))
    return seen(and_(sources.c.key != "", _compared(sources.c.key, operator, low, high)))


def _meta(seen: Seen, name: str, operator: str, low: str | None, high: str | None) -> Condition:
    entry = entries_of(sources.c.fields)
    is_field = func.lower(entry.c.key) == func.lower(name)
    inside = select(1).select_from(entry)
    if low == high == _NONE:
        return not_(seen(exists(inside.where(is_field))))
    numbers = [None if one is None else _as_number(one) for one in (low, high)]
    compared = _compared(entry.c.value, operator, low, high)
    if operator != "~" and [one is None for one in numbers] == [one is None for one in (low, high)]:
        compared = _ordered(entry.c.number, operator, numbers[0], numbers[1], lambda one: one)
    return seen(exists(inside.where(is_field, compared)))


def _language(_: str, operator: str, low: str | None, high: str | None) -> Condition:
    said = select(captions.c.image).where(~captions.c.withdrawn)
    if low == high == _NONE:
        return images.c.seq.not_in(said)
    _require_one(operator, low, high, "language")
    return images.c.seq.in_(said.where(func.lower(captions.c.language) == func.lower(low)))


def _caption(_: str, operator: str, low: str | None, high: str | None) -> Condition:
    if low == high == _NONE:
        return images.c.seq.not_in(select(captions.c.image).where(~captions.c.withdrawn))
    if operator != "~":
        _require_one(operator, low, high, "caption")
        said = select(captions.c.image).where(
            ~captions.c.withdrawn, func.lower(captions.c.text) == func.lower(low)
        )
        return images.c.seq.in_(said)
    found = images_captioned(low or "")
    return images.c.seq.in_(found) if found is not None else images.c.seq.is_(None)


def _added(_: str, operator: str, low: str | None, high: str | None) -> Condition:
    came = _day(chunks.c.created)("", operator, low, high)
    return images.c.chunk.in_(select(chunks.c.seq).where(came))


def _chunk(_: str, operator: str, low: str | None, high: str | None) -> Condition:
    of_chunk = select(chunk_images.c.image).join(chunks, chunk_images.c.chunk == chunks.c.seq)
    if operator == "~":
        return images.c.seq.in_(of_chunk.where(_contains(chunks.c.name, low or "")))
    _require_one(operator, low, high, "chunk")
    is_begun = AnyCase(chunks.c.id, literal(f"{escaped(low or '')}%"))
    return images.c.seq.in_(of_chunk.where(or_(chunks.c.name == low, is_begun)))


def _require_one(operator: str, low: str | None, high: str | None, field: str) -> None:
    if operator != "=" or low is None or low != high:
        raise BadOption(phrase("{field} is compared by = or ~ with one value.", field=field))


def _refuse_contains(operator: str) -> None:
    if operator == "~":
        raise BadOption(phrase("~ is for texts; dates and numbers have =, <, <=, > and >=."))


def _as_number(text: str) -> float | None:
    """Returns the number that a text is; None for words, which "nan" and "infinity" are, too, and what is too large."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) else None


FIELDS: dict[str, Build] = {
    "taken": _day(images.c.taken),
    "added": _added,
    "camera": _text(images.c.camera),
    "domain": _text(images.c.domain),
    "format": _text(images.c.format),
    "width": _number(images.c.width),
    "height": _number(images.c.height),
    "language": _language,
    "caption": _caption,
    "chunk": _chunk,
}
OF_PLACES: dict[str, Callable[[Seen, str, str, str | None, str | None], Condition]] = {
    "folder": _folder,
    "file": _file,
    "key": _key,
    "meta": _meta,
}
"""Fields that say where pictures lie, or what their owner says of them."""
