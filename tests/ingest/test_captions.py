from __future__ import annotations

import unicodedata

import ftfy.bad_codecs  # noqa: F401 - names an encoding as browsers read it
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.captions import REGAINED, normalise_caption, normalise_language, regained_text
from ingest.errors import BadCaption, UnknownLanguage

_TEXT = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from("\u200c\u200d\u202e\u0301\u0915\u094d\u0627\u061c \t"),
    ),
    max_size=40,
)


@given(_TEXT)
def test_cleaning_a_clean_caption_changes_nothing(raw: str) -> None:
    try:
        once = normalise_caption(raw).text
    except BadCaption:
        return
    twice = normalise_caption(once)
    assert twice.text == once
    assert twice.notes == ()
    assert unicodedata.is_normalized("NFC", once)
    assert not any(unicodedata.category(character) == "Cc" for character in once)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("  a \t red\r\n boat ", "a red boat"),
        ("cafe\u0301", "caf\u00e9"),
        ("a\0b\x07c", "abc"),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("ze\u200bro w\u2060idth \ufeffsoft\u00adhyphen", "zero width softhyphen"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("ca\u200dt", "cat"),
        (
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
            "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        ),
        ("\u0915\u094d\u200d\u0937", "\u0915\u094d\u200d\u0937"),
        ("\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f468\u200d\U0001f469\u200d\U0001f467"),
        ("\U0001f408", "\U0001f408"),
        ("=cmd|' /C calc'!A0", "=cmd|' /C calc'!A0"),
        ("<script>alert(1)</script>", "<script>alert(1)</script>"),
        ("x" * 2000, "x" * 2000),
    ],
)
def test_captions_are_cleaned_as_their_script_needs(raw: str, text: str) -> None:
    assert normalise_caption(raw).text == text


def test_what_was_removed_is_noted_and_the_raw_text_kept() -> None:
    cleaned = normalise_caption("a\0\u202eb")
    assert cleaned.raw == "a\0\u202eb"
    assert cleaned.notes == ("control characters were removed", "invisible characters were removed")


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", "caption_empty"),
        ("   \n", "caption_empty"),
        ("\u3164\u3164", "caption_empty"),
        ("...!?", "caption_empty"),
        ("\u200b\u200d", "caption_empty"),
        ("\u0301", "caption_empty"),
        ("x" * 2001, "caption_too_long"),
        ("x" * 1_000_000, "caption_too_long"),
        ("a" + "\u0301" * 100_000, "caption_too_long"),
        ("\ufdfa" * 100_000, "caption_too_long"),
        ("\U0001f600" * 2000 + "", "ok"),
        ("ok \ud800", "caption_not_text"),
    ],
    ids=range(12),
)
def test_unusable_captions_are_refused_with_a_code(raw: str, code: str) -> None:
    if code == "ok":
        assert normalise_caption(raw).text == raw
        return
    with pytest.raises(BadCaption) as caught:
        normalise_caption(raw)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("tag", "canonical"),
    [
        ("de", "de"),
        ("DE", "de"),
        ("deu", "de"),
        ("pt_br", "pt-BR"),
        ("zh-hant", "zh-Hant"),
        ("cmn", "zh"),
        (" ja ", "ja"),
    ],
)
def test_language_tags_become_canonical(tag: str, canonical: str) -> None:
    assert normalise_language(tag) == canonical
    assert normalise_language(canonical) == canonical


@pytest.mark.parametrize("tag", ["", "und", "UND"])
def test_no_language_is_und(tag: str) -> None:
    assert normalise_language(tag) == "und"


@pytest.mark.parametrize(
    ("tag", "nearest"),
    [
        ("german", "'de'"),
        ("Englsh", "'en'"),
        ("jp", "'ja'"),
        ("fran\u00e7ais", "'fr'"),
        ("xx", "BCP-47"),
        ("x-klingon", "BCP-47"),
        ("a" * 5000, "BCP-47"),
    ],
    ids=range(7),
)
def test_an_unknown_tag_is_refused_with_the_nearest_one(tag: str, nearest: str) -> None:
    with pytest.raises(UnknownLanguage, match="not a language tag") as caught:
        normalise_language(tag)
    assert nearest in str(caught.value)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    ("meant", "encoding"),
    [
        ("ein Café für große Hunde", "cp1252"),
        ("ein Café für große Hunde", "cp1250"),
        ("ein Café für große Hunde", "cp1251"),
        ("две собаки у моря", "cp1251"),
        ("две собаки у моря", "latin-1"),
        ("二匹の犬", "latin-1"),
        ("zwei Hunde 🐕", "sloppy-windows-1252"),
    ],
)
def test_letters_that_were_read_in_a_wrong_encoding_are_repaired(meant: str, encoding: str) -> None:
    garbled = meant.encode().decode(encoding)
    cleaned = normalise_caption(garbled)
    assert cleaned.text == meant
    assert cleaned.raw == garbled
    assert REGAINED in cleaned.notes


@pytest.mark.parametrize(
    "meant",
    [
        "Ã and Â are letters of Portuguese",
        "São Tomé",
        "naïve café",
        "Ελλάδα",
        "à",
        "¿Qué?",
        "Привет",
        "größer",
        "½ Â°",
    ],
)
def test_letters_that_were_read_well_are_left_as_they_are(meant: str) -> None:
    assert regained_text(meant) == ""
