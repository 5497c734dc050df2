"""Which language a query is in: profiles, lingua, scripts, and how many tables are searched."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from app.language.detection import (
    ENOUGH,
    MOST_TABLES,
    UNDETERMINED,
    Reading,
    detect,
    detect_all,
    handicaps,
    readings,
    unfamiliar,
)
from ingest.samples import scenes
from model_updates.language_profiles import LanguageProfile, base_profiles
from model_updates.photo.weights import LANGUAGES as PHOTO_LANGUAGES
from model_updates.surprise import Surprise

TAGS = ("en", "de", "fr", "ru", "ja", "zh")
PROFILES = base_profiles(TAGS)


def first(text: str, learned: tuple[str, ...] = TAGS, **profiles: LanguageProfile) -> str:
    return detect(text, learned, profiles or PROFILES)[0][0]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("two red boats on the beach", "en"),
        ("smiling face", "en"),
        ("zwei rote Boote auf der Wiese bei Nacht", "de"),
        ("Gesicht", "de"),
        ("deux voitures vertes sur la plage", "fr"),
        ("две зелёные машины на пляже", "ru"),
        ("夕暮れの砂浜に緑色の車が二台", "ja"),
        ("红色的苹果", "zh"),
        ("Wi-Fi信号标志", "zh"),
    ],
)
def test_the_language_of_a_caption_is_detected(text: str, language: str) -> None:
    assert first(text) == language


def test_many_texts_are_detected_as_each_alone() -> None:
    texts = ["Boot", "rote Boote", "", "123", "微笑", "two red boats", "Привет", "ใบหน้ายิ้ม", "Boot"]
    for profiles in (PROFILES, {"de": PROFILES["de"]}, None):
        together = detect_all(texts, TAGS, profiles)
        for text, guesses in zip(texts, together, strict=True):
            alone = detect(text, TAGS, profiles)
            assert [tag for tag, _ in guesses] == [tag for tag, _ in alone]
            assert [share for _, share in guesses] == pytest.approx([share for _, share in alone])
    assert detect_all([], TAGS, PROFILES) == []


def test_posteriors_add_up_and_go_from_high_to_low() -> None:
    for text in ("Boot", "taxi", "微笑", "two red boats", "Привет"):
        shares = [share for _, share in detect(text, TAGS, PROFILES)]
        assert sum(shares) == pytest.approx(1.0)
        assert shares == sorted(shares, reverse=True)


def test_a_language_that_lingua_does_not_know_is_found_by_its_profile() -> None:
    quechua = ["kusisqa uya", "asikuq uya", "puka sunqu", "hatun wasi", "yuraq allqu", "qillu inti"]
    profiles = {"en": PROFILES["en"], "qu": LanguageProfile.learned_from(quechua)}

    assert detect("yuraq uya", ("en", "qu"), profiles)[0][0] == "qu"
    assert detect("white face", ("en", "qu"), profiles)[0][0] == "en"


def test_what_the_captions_say_decides_between_two_languages_of_one_script() -> None:
    chinese = [scenes.caption(scene, "zh") for scene in list(scenes.all_scenes())[::400]]
    japanese = [scenes.caption(scene, "ja") for scene in list(scenes.all_scenes())[::400]]
    profiles = {"zh": LanguageProfile.learned_from(chinese), "ja": LanguageProfile.learned_from(japanese)}
    held_out = list(scenes.all_scenes())[7::1000]

    for tag in profiles:
        assert all(first(scenes.caption(s, tag), ("zh", "ja"), **profiles) == tag for s in held_out)


@pytest.mark.parametrize(
    ("words", "both"),
    [
        (
            {
                "pt": ["autocarro", "comboio", "telemóvel", "pequeno-almoço"],
                "pt-BR": ["ônibus", "trem", "celular", "café da manhã"],
            },
            "gato",
        ),
        (
            {"zh": ["红苹果", "笑脸", "猫和鱼", "飞机"], "zh-Hant": ["紅蘋果", "笑臉", "貓和魚", "飛機"]},
            "山",
        ),
    ],
)
@pytest.mark.parametrize("others", [(), ("en", "ja")])
def test_two_tags_of_one_language_are_both_reached(
    words: dict[str, list[str]], both: str, others: tuple[str, ...]
) -> None:
    profiles = {tag: LanguageProfile.learned_from(texts) for tag, texts in words.items()}
    profiles |= {tag: PROFILES[tag] for tag in others}
    learned = (*others, *words)

    for tag, texts in words.items():
        assert first(texts[0], learned, **profiles) == tag
    assert {r.language for r in readings(detect(both, tuple(words), profiles))} == set(words)


def test_kana_is_japanese_whatever_else_is_written() -> None:
    assert first("犬の顔") == "ja"
    assert detect("犬の顔", TAGS, PROFILES)[0][1] == 1.0


@pytest.mark.parametrize("text", ["ใบหน้ายิ้ม", "웃는 얼굴", "γάτα", "ခွေး", "ကြောင်"])
def test_a_script_that_no_learned_language_writes_is_said_to_be_in_none(text: str) -> None:
    assert detect(text, TAGS, PROFILES) == ((UNDETERMINED, 1.0),)
    assert detect(text, ("en",), PROFILES) == ((UNDETERMINED, 1.0),)


@pytest.mark.parametrize(
    ("text", "stranger"),
    [
        ("czarny pies biegnie po mokrej trawie nad brzegiem rzeki", True),
        ("pequeño gato negro durmiendo sobre la mesa junto a la ventana", True),
        ("two red boats on the beach", False),
        ("zwei rote Boote auf der Wiese bei Nacht", False),
        ("a red wool jumper beside an espresso machine", False),
        ("smiling face", False),
        ("2024 🙂", False),
        ("ใบหน้ายิ้ม", False),  # in none for certain, which is said elsewhere
    ],
)
def test_what_no_learned_language_would_write_in_its_letters_may_be_in_none(
    text: str, stranger: bool
) -> None:
    learned = ("en", "de")

    assert unfamiliar(text, detect(text, learned, PROFILES), PROFILES) is stranger


def test_what_is_foreign_to_one_learned_language_is_not_when_another_wrote_it() -> None:
    text = "deux voitures vertes sur la plage"

    assert unfamiliar(text, detect(text, ("en",), PROFILES), PROFILES)
    assert not unfamiliar(text, detect(text, ("en", "fr"), PROFILES), PROFILES)


def test_where_a_language_has_no_measured_profile_nothing_is_called_foreign() -> None:
    text = "czarny pies biegnie po mokrej trawie nad brzegiem rzeki"
    unmeasured = {"en": replace(PROFILES["en"], surprise=Surprise())}
    some = {"en": PROFILES["en"]}

    assert not unfamiliar(text, detect(text, ("en",), unmeasured), unmeasured)
    assert not unfamiliar(text, detect(text, ("en", "cs"), some), some)
    assert unfamiliar(text, detect(text, ("en",), some), some)


def test_without_letters_there_is_nothing_to_detect() -> None:
    assert detect("2024 🙂", TAGS, PROFILES) == (("en", 1.0),)


def test_versions_of_before_there_were_profiles_are_read_by_lingua() -> None:
    assert detect("zwei rote Boote auf der Wiese", TAGS)[0][0] == "de"
    assert detect("две зелёные машины", TAGS)[0][0] == "ru"
    assert detect("zwei rote Boote", ("en",)) == (("en", 1.0),)
    assert detect("ใบหน้ายิ้ม", TAGS) == ((UNDETERMINED, 1.0),)


def test_a_language_without_a_profile_stands_beside_those_with_one() -> None:
    some = {tag: PROFILES[tag] for tag in ("en", "de")}

    assert detect("deux voitures vertes sur la plage", TAGS, some)[0][0] == "fr"
    assert detect("two green cars on the beach", TAGS, some)[0][0] == "en"
    assert detect("две зелёные машины", TAGS, some)[0][0] == "ru"


def test_the_fewest_tables_with_enough_of_the_posterior_are_searched() -> None:
    assert readings([("en", 0.96), ("de", 0.04)]) == (Reading("en", 0.96),)
    assert [r.language for r in readings([("en", 0.6), ("de", 0.36), ("fr", 0.04)])] == ["en", "de"]
    even = [(tag, 0.1) for tag in "abcdefghij"]
    assert len(readings(even)) == MOST_TABLES
    assert 0.5 < ENOUGH < 1


def test_languages_that_share_a_table_are_one_reading() -> None:
    route = {"cs": "cs"}
    guesses = [("cs", 0.4), ("en", 0.3), ("de", 0.28), ("fr", 0.02)]

    chosen = readings(guesses, lambda tag: route.get(tag, ""))

    assert [reading.language for reading in chosen] == ["en", "cs"]
    assert [reading.share for reading in chosen] == pytest.approx([0.6, 0.4])


def test_a_less_likely_language_is_lowered_by_its_odds_over_the_scale() -> None:
    assert handicaps((Reading("en", 0.8), Reading("de", 0.2)), 20.0) == pytest.approx(
        [0.0, math.log(0.25) / 20]
    )


def test_an_own_table_beside_one_that_sixteen_languages_share() -> None:
    own = "hi"
    hindi = [scenes.caption(scene, own) for scene in list(scenes.all_scenes())[::400]]
    profiles = base_profiles(PHOTO_LANGUAGES) | {own: LanguageProfile.learned_from(hindi)}
    learned = (*PHOTO_LANGUAGES, own)

    def tables(text: str) -> list[str]:
        guesses = detect(text, learned, profiles)
        return [
            own if r.language == own else "shared"
            for r in readings(guesses, lambda tag: own if tag == own else "")
        ]

    # Whoever of the sixteen it is, it is one table; only Hindi needs another.
    for text in ("gatto", "hat", "zwei rote Boote", "犬", "ใบหน้ายิ้ม", "ящик", "웃는 얼굴"):
        assert tables(text) == ["shared"]
    assert tables(scenes.caption(next(iter(scenes.all_scenes())), own)) == [own]
