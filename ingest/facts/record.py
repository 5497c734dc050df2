"""The record of what a picture's file says of it, and how what is written there is made fit to be kept."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ingest.captions import normalise_caption, normalise_language
from ingest.errors import BadCaption, UnknownLanguage
from ingest.limits import DEFAULT_LIMITS

_MOST_CAPTIONS, _MOST_KEYWORDS, _LONGEST_WORD = 64, 100, 100
_FIRST_PHOTOGRAPH = 1826
# Of EXIF, IPTC and XMP: 2019:07:04 12:33:21, 20190704T123321, 2019-07-04T12:33:21.25+02:00; or the day alone.
_MOMENT = re.compile(
    r"(\d{4})[:-]?(\d\d)[:-]?(\d\d)(?:[T ](\d\d):?(\d\d)(?::?(\d\d)(?:[.,]\d+)?)?)?\s*(Z|[+-]\d\d:?\d\d)?"
)
# What cameras and programs write where a person would describe the picture; the short codes are Huawei's.
_NOBODYS = re.compile(
    r"(?:olympus|sony|samsung|minolta|konica|kodak|casio|pentax|polaroid|vivitar|panasonic)?\W*"
    r"(?:digital (?:still )?camera|dsc|exif[_ ]jpeg[_ ]picture|jpeg|image|picture|photo|untitled|default|screenshot"
    r"|camera|none|null|n/?a|test)"
    r"|<.*>"  # <Digimax S500 / Kenox S500>
    r"|(?:(?:cof|cof_vivid|dav|edf|fbt|hdr|mde|nor|ozedf|oznor|oznorwo|ptr|rbt|rhdr|sdr|smart|vhdr)\W*)+"
    r"|\S*\.(?:jpe?g|heic|tiff?|png|dng)"
    r"|\W*(?:img|dsc[nf_]?|dji|pano|pxl|mvimg|burst|p)?[\W_\d]*",
    re.IGNORECASE,
)
_COMPANY = re.compile(
    r"(?:,?\s+|^)(?:corporation|corp\.?|co\.,?\s*ltd\.?|company|inc\.?|ltd\.?|gmbh|ag|imaging(?=\s)|optical(?=\s)"
    r"|electric(?=\s)|computer(?=\s)|camera(?=\s+ag))(?=[\s,.]|$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class WrittenCaption:
    """A text about the picture that its file holds."""

    text: str  # clean, on one line
    source: str  # where it stood: XMP description, XMP title, IPTC caption, IPTC title, EXIF description
    language: str | None = None  # BCP-47, as it is stated there; most state none


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """What a file says of its picture; what it does not say, or says impossibly, is None or empty."""

    # local time as ISO 8601: 2019-07-04T12:33:21, with +02:00 where it is stated, or a day alone
    taken: str | None = None
    camera: str | None = None  # maker and model
    latitude: float | None = None  # in degrees, north and east positive; both or none
    longitude: float | None = None
    captions: tuple[WrittenCaption, ...] = ()  # each text once
    keywords: tuple[str, ...] = ()


def together(*facts: PictureFacts) -> PictureFacts:
    """Returns as one what several places say: of each fact the first that is stated, of texts all, each once."""
    captions: dict[str, WrittenCaption] = {}
    for one in (caption for each in facts for caption in each.captions):
        known = captions.setdefault(one.text, one)
        if known.language is None and one.language is not None:
            captions[one.text] = replace(known, language=one.language)
    places = (one for one in facts if one.latitude is not None and one.longitude is not None)
    place = next(places, PictureFacts())
    return PictureFacts(
        taken=next((one.taken for one in facts if one.taken), None),
        camera=next((one.camera for one in facts if one.camera), None),
        latitude=place.latitude,
        longitude=place.longitude,
        captions=tuple(captions.values())[:_MOST_CAPTIONS],
        keywords=words_of(word for one in facts for word in one.keywords),
    )


def facts_from(said: Mapping[str, Any]) -> PictureFacts:
    """Returns the facts that a process of less trust has read from a file, cleaned as if they were read here.

    Raises:
        LookupError, TypeError, ValueError, ArithmeticError: they are none.
    """
    texts = [
        (str(one["text"]), str(one["source"])[:_LONGEST_WORD], one["language"]) for one in said["captions"]
    ]
    captions = (caption_of(text, source, tag and str(tag)[:_LONGEST_WORD]) for text, source, tag in texts)
    place = (None if said[name] is None else float(said[name]) for name in ("latitude", "longitude"))
    latitude, longitude = position(*place)
    return together(
        PictureFacts(
            taken=moment(said["taken"]),
            camera=camera_name("", said["camera"]),
            latitude=latitude,
            longitude=longitude,
            captions=tuple(one for one in captions if one is not None),
            keywords=tuple(map(str, said["keywords"])),
        )
    )


def caption_of(text: object, source: str, language: str | None = None) -> WrittenCaption | None:
    """Returns a text as a caption, None when nobody wrote it about the picture."""
    if not isinstance(text, str):
        return None
    try:
        clean = normalise_caption(text.strip(" \0\t\r\n")[: DEFAULT_LIMITS.caption_characters]).text
    except BadCaption:
        return None
    if len(clean) <= _LONGEST_WORD and _NOBODYS.fullmatch(clean):
        return None
    return WrittenCaption(clean, source, _language(language))


def words_of(texts: Iterable[object]) -> tuple[str, ...]:
    """Returns keywords, each once, however it is spelt."""
    words: dict[str, str] = {}
    for text in texts:
        word = " ".join(str(text).replace("\0", " ").split())[:_LONGEST_WORD]
        if word.isprintable() and any(map(str.isalnum, word)):
            words.setdefault(word.casefold(), word)
    return tuple(words.values())[:_MOST_KEYWORDS]


def moment(text: object, offset: object = None) -> str | None:
    """Returns a moment as ISO 8601, with the offset that it has or that is stated beside it; no zone is guessed."""
    found = _MOMENT.fullmatch(text.strip(" \0")) if isinstance(text, str) else None
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    try:
        when = datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - local time: no zone is known
    except ValueError:
        return None
    if year < _FIRST_PHOTOGRAPH:
        return None
    if found[4] is None:
        return when.date().isoformat()
    zone = found[7] or (offset.strip(" \0") if isinstance(offset, str) else "")
    zone = "+00:00" if zone == "Z" else zone
    known = re.fullmatch(r"([+-])([01]\d):?([0-5]\d)", zone)
    return when.isoformat() + (f"{known[1]}{known[2]}:{known[3]}" if known else "")


def camera_name(maker: object, model: object) -> str | None:
    """Returns maker and model, the maker once and without its company's form."""
    maker, model = (
        " ".join(str(one or "")[:_LONGEST_WORD].replace("\0", " ").split()) for one in (maker, model)
    )
    maker = _COMPANY.sub("", maker).strip(" ,.")
    first = maker.split(" ")[0].casefold()
    is_named = bool(first) and model.casefold().startswith(first)
    name = " ".join(filter(None, ("" if is_named else maker, model)))[:_LONGEST_WORD].strip()
    return name if name.isprintable() and any(map(str.isalnum, name)) else None


def position(latitude: float | None, longitude: float | None) -> tuple[float | None, float | None]:
    """Returns the two, or None for both when one is missing or impossible, or both are exactly zero."""
    if latitude is None or longitude is None or not (abs(latitude) <= 90 and abs(longitude) <= 180):
        return None, None
    if latitude == longitude == 0:  # what a receiver without a fix writes; it lies in the sea
        return None, None
    return round(latitude, 6), round(longitude, 6)


def _language(tag: str | None) -> str | None:
    if not tag or tag.casefold() == "x-default":
        return None
    try:
        return normalise_language(tag)
    except UnknownLanguage:
        return None
