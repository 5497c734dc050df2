"""Caption text in, clean NFC text out; language tags in, canonical BCP-47 out."""

import difflib
import unicodedata
from dataclasses import dataclass
from functools import lru_cache

from ingest.errors import BadCaption, UnknownLanguage
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.sentence import phrase

UNDETERMINED = "und"

REGAINED = "letters that had been read in a wrong encoding were repaired"
"""The note of such a caption."""
_OLDER = ("sloppy-windows-1252", "latin-1", "sloppy-windows-1250", "sloppy-windows-1251")

_ZWNJ, _ZWJ = "\u200c", "\u200d"
# Format characters that are visible signs of their script (Arabic number marks and the like).
_VISIBLE_FORMAT = frozenset(
    map(chr, (*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD))
)
# Letters and symbols that show nothing: Hangul fillers, the blank Braille cell, replacement characters.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\ufffc\ufffd")
# Scripts in which a joiner inside a word changes what is written: Arabic to Arabic Extended-A, the scripts of
# India, Myanmar, Khmer and Mongolian, and Arabic presentation forms.
_JOINING = ((0x0600, 0x08FF), (0x0900, 0x0DFF), (0x1000, 0x109F), (0x1780, 0x18AF), (0xFB50, 0xFEFC))

_NAMES = {
    "afrikaans": "af", "albanian": "sq", "amharic": "am", "arabic": "ar", "armenian": "hy",
    "basque": "eu", "bengali": "bn", "bulgarian": "bg", "catalan": "ca", "chinese": "zh",
    "croatian": "hr", "czech": "cs", "danish": "da", "dutch": "nl", "english": "en", "estonian": "et",
    "farsi": "fa", "filipino": "fil", "finnish": "fi", "french": "fr", "galician": "gl",
    "georgian": "ka", "german": "de", "greek": "el", "hebrew": "he", "hindi": "hi", "hungarian": "hu",
    "icelandic": "is", "indonesian": "id", "irish": "ga", "italian": "it", "japanese": "ja", "jp": "ja",
    "kazakh": "kk", "korean": "ko", "kr": "ko", "latin": "la", "latvian": "lv", "lithuanian": "lt",
    "malay": "ms", "mandarin": "zh", "mongolian": "mn", "norwegian": "no", "persian": "fa",
    "polish": "pl", "portuguese": "pt", "punjabi": "pa", "romanian": "ro", "russian": "ru",
    "serbian": "sr", "slovak": "sk", "slovenian": "sl", "spanish": "es", "swahili": "sw",
    "swedish": "sv", "tamil": "ta", "telugu": "te", "thai": "th", "turkish": "tr", "ukrainian": "uk",
    "urdu": "ur", "vietnamese": "vi", "welsh": "cy", "yoruba": "yo", "zulu": "zu", "deutsch": "de",
    "francais": "fr", "espanol": "es", "italiano": "it", "portugues": "pt",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class CleanCaption:
    """A caption as it is stored (`text`), as it came (`raw`), and what was changed in between."""

    text: str
    raw: str
    notes: tuple[str, ...]


def normalise_caption(raw: str, limits: Limits = DEFAULT_LIMITS) -> CleanCaption:
    """Returns the caption as NFC text without control, direction or invisible characters, on one line.

    Lengths are checked before anything else: normalising hostile text first can be slow or multiply it.

    Raises:
        BadCaption: too long, not valid text, or nothing visible left.
    """
    if len(raw) > limits.caption_characters:
        raise BadCaption(
            "caption_too_long",
            phrase(
                "The caption has {count} characters; the limit is {most}.",
                count=f"{len(raw):,}",
                most=f"{limits.caption_characters:,}",
            ),
        )
    try:
        size = len(raw.encode())
    except UnicodeEncodeError:  # a lone surrogate
        raise BadCaption(
            "caption_not_text", "The caption is not valid text: save the file as UTF-8."
        ) from None
    if size > limits.caption_bytes:
        raise BadCaption(
            "caption_too_long",
            phrase("The caption is longer than {count} bytes.", count=f"{limits.caption_bytes:,}"),
        )
    notes: list[str] = []
    text = _cleaned(raw, notes)
    if not any(_is_visible(character) for character in text):
        raise BadCaption("caption_empty", phrase("The caption is empty or has only spaces and punctuation."))
    return CleanCaption(text, raw, tuple(dict.fromkeys(notes)))


def _cleaned(text: str, notes: list[str]) -> str:
    while meant := regained_text(text):  # some were read wrongly more than once
        notes.append(REGAINED)
        text = meant
    text = _stripped(unicodedata.normalize("NFC", text), notes)
    text = " ".join(unicodedata.normalize("NFC", text).split())
    return _cleaned(text, notes) if regained_text(text) else text


def regained_text(text: str) -> str:
    """Returns what UTF-8 said before it was read in an older encoding, as in "cafÃ©"; "" of a text that was read well.

    Such letters are valid UTF-8 once they are bytes again, which no sentence that somebody meant is (docs/log.md,
    2026-11-25).
    """
    if text.isascii():
        return ""
    import ftfy.bad_codecs  # noqa: F401 - knows these encodings as browsers read them, without gaps

    for encoding in _OLDER:
        try:
            meant = text.encode(encoding).decode("utf-8")
        except UnicodeError:
            continue
        if meant != text:
            return meant
    return ""


@lru_cache(maxsize=4096)
def normalise_language(tag: str) -> str:
    """Returns a BCP-47 tag in canonical form: `pt_br` becomes `pt-BR`, `deu` becomes `de`, `cmn` `zh`.

    Raises:
        UnknownLanguage: not a valid tag; the sentence names the nearest one.
    """
    import langcodes  # its tables take longer to load than most of what a search does

    asked = tag.strip()
    if not asked or asked.lower() == UNDETERMINED:
        return UNDETERMINED
    try:
        canonical = str(langcodes.standardize_tag(asked, macro=True)) if len(asked) <= 35 else ""
    except ValueError:
        canonical = ""
    has_language = canonical and not canonical.startswith("x-")
    if not has_language or not langcodes.tag_is_valid(canonical):
        raise UnknownLanguage(
            f"{asked[:40]!r} is not a language tag.{_suggestion(asked)} "
            "Use a BCP-47 tag such as 'en', 'de' or 'pt-BR'."
        )
    return canonical


def _stripped(text: str, notes: list[str]) -> str:
    if text.isprintable():  # all that is removed below is unprintable; most captions end here
        return text
    kept: list[str] = []
    removed: set[str] = set()
    for position, character in enumerate(text):
        category = unicodedata.category(character)
        if character in "\t\n\r\v\f\x85" or category in ("Zl", "Zp"):
            kept.append(" ")
        elif category == "Cc":
            removed.add("control characters were removed")
        elif character in (_ZWJ, _ZWNJ):
            following = text[position + 1] if position + 1 < len(text) else ""
            if _joins(kept[-1] if kept else "", character, following):
                kept.append(character)
            else:
                removed.add("invisible characters were removed")
        elif (category == "Cf" and character not in _VISIBLE_FORMAT) or _is_noncharacter(character):
            removed.add("invisible characters were removed")
        else:
            kept.append(character)
    notes.extend(sorted(removed))
    return "".join(kept)


def _joins(before: str, joiner: str, after: str) -> bool:
    if not before:
        return False
    if joiner == _ZWJ and after and _is_pictograph(after):
        return _is_pictograph(before) or before == "\ufe0f" or "\U0001f3fb" <= before <= "\U0001f3ff"
    if not _is_joining_letter(before):
        return False
    # A virama may carry a joiner at the end of a word; every other letter needs one to join to.
    return unicodedata.combining(before) == 9 or (after != "" and _is_joining_letter(after))


def _is_joining_letter(character: str) -> bool:
    point = ord(character)
    in_script = any(first <= point <= last for first, last in _JOINING)
    return in_script and unicodedata.category(character)[0] in "LM"


def _is_pictograph(character: str) -> bool:
    return unicodedata.category(character) == "So"


def _is_noncharacter(character: str) -> bool:
    point = ord(character)
    return (point & 0xFFFE) == 0xFFFE or 0xFDD0 <= point <= 0xFDEF


def _is_visible(character: str) -> bool:
    category = unicodedata.category(character)
    return (category[0] in "LN" or category in ("So", "Co")) and character not in _BLANK


def _suggestion(asked: str) -> str:
    word = unicodedata.normalize("NFD", asked.lower()).encode("ascii", "ignore").decode()
    names = difflib.get_close_matches(word, list(_NAMES), n=1, cutoff=0.75)
    if names:
        return f" Did you mean '{_NAMES[names[0]]}'?"
    first = word.replace("_", "-").split("-")[0]
    codes = sorted(set(_NAMES.values()))
    tags = difflib.get_close_matches(first, codes, n=1, cutoff=0.5)
    return f" Did you mean '{tags[0]}'?" if tags else ""
