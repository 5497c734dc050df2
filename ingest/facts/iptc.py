"""IPTC's older records (IIM), which JPEG and TIFF files carry."""

from PIL import Image, ImageFile
from PIL.IptcImagePlugin import getiptcinfo

from ingest.facts.record import PictureFacts, caption_of, moment, words_of

_CHARSET, _UTF8 = (1, 90), b"\x1b%G"
_TITLE, _KEYWORDS, _DATE, _TIME, _CAPTION = (2, 5), (2, 25), (2, 55), (2, 60), (2, 120)


def iptc_facts(image: Image.Image) -> PictureFacts:
    """Returns what the IPTC records of an opened picture say."""
    records = (getiptcinfo(image) if isinstance(image, ImageFile.ImageFile) else None) or {}
    is_utf8 = _UTF8 in _values(records.get(_CHARSET))

    def texts(record: tuple[int, int]) -> list[str]:
        return [_decoded(value, is_utf8=is_utf8) for value in _values(records.get(record))]

    captions = [
        caption_of(text, source)
        for source, record in (("IPTC caption", _CAPTION), ("IPTC title", _TITLE))
        for text in texts(record)
    ]
    day, time = ("".join(texts(record)[:1]) for record in (_DATE, _TIME))
    return PictureFacts(
        taken=moment(f"{day}T{time}") or moment(day),
        captions=tuple(one for one in captions if one is not None),
        keywords=words_of(texts(_KEYWORDS)),
    )


def _values(found: bytes | list[bytes] | None) -> list[bytes]:
    return [] if found is None else [found] if isinstance(found, bytes) else found


def _decoded(value: bytes, *, is_utf8: bool) -> str:
    """Returns a text; many programs write UTF-8 without saying so, older ones Latin."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("utf-8" if is_utf8 else "cp1252", "replace")
