"""Captions of scenes: expected sentences written by hand, language by language."""

from __future__ import annotations

import unicodedata
from itertools import product

import pytest

from ingest.samples.scene_words import WORDS
from ingest.samples.scenes import (
    COLOURS,
    COUNTS,
    LANGUAGES,
    PLACES,
    SUBJECTS,
    TIMES,
    VARIANTS,
    Scene,
    all_scenes,
    caption,
    partial_caption,
)

BOATS = Scene("boat", "red", 3, "beach", "sunset")
CATS = Scene("cat", "yellow", 2, "snow", "night")
TREE = Scene("tree", "orange", 1, "meadow", "day")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("variant", range(VARIANTS))
def test_distinct_scenes_have_distinct_captions(language: str, variant: int) -> None:
    texts = {caption(scene, language, variant=variant) for scene in all_scenes()}
    assert len(texts) == 4320


@pytest.mark.parametrize("language", LANGUAGES)
def test_captions_are_clean_text(language: str) -> None:
    for scene, variant in product([BOATS, CATS, TREE], range(VARIANTS)):
        text = caption(scene, language, variant=variant)
        assert text == unicodedata.normalize("NFC", text).strip()
        assert "  " not in text
        assert "{" not in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_variants_of_one_scene_differ(language: str) -> None:
    assert len({caption(TREE, language, variant=variant) for variant in range(VARIANTS)}) == VARIANTS


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_word_table_is_complete_and_has_even_rows(language: str) -> None:
    words = WORDS[language]
    assert tuple(words.nouns) == SUBJECTS
    assert len({len(forms) for forms in words.nouns.values()}) == 1
    assert (tuple(words.places), tuple(words.times)) == (PLACES, TIMES)
    assert len(words.sentences) == VARIANTS
    if language != "en":
        assert tuple(words.colours) == COLOURS
        assert len({len(forms) for forms in words.colours.values()}) == 1
    assert all(form for forms in [*words.nouns.values(), *words.colours.values()] for form in forms)


@pytest.mark.parametrize(
    ("scene", "language", "variant", "expected"),
    [
        (BOATS, "en", 0, "three red boats on the beach at sunset"),
        (CATS, "en", 1, "At night, two yellow cats in the snow"),
        (TREE, "en", 2, "There is an orange tree in a meadow by day."),
        (BOATS, "de", 0, "drei rote Boote am Strand bei Sonnenuntergang"),
        (CATS, "de", 1, "Bei Nacht im Schnee: zwei gelbe Katzen"),
        (TREE, "de", 2, "Auf der Wiese ist bei Tag ein orangefarbener Baum zu sehen."),
        (BOATS, "fr", 0, "trois bateaux rouges sur la plage, au coucher du soleil"),
        (CATS, "fr", 1, "La nuit, deux chats jaunes dans la neige"),
        (TREE, "fr", 2, "Dans un pré, en plein jour, on voit un arbre orange."),
        (BOATS, "ru", 0, "три красные лодки на пляже на закате"),
        (CATS, "ru", 1, "Ночью на снегу — два жёлтых кота"),
        (TREE, "ru", 2, "На лугу днём видно одно оранжевое дерево."),
        (BOATS, "hi", 0, "सूर्यास्त के समय समुद्र तट पर तीन लाल नावें"),
        (CATS, "hi", 1, "बर्फ़ में दो पीली बिल्लियाँ, रात में"),
        (TREE, "hi", 2, "घास के मैदान में दिन में एक नारंगी पेड़ दिख रहा है।"),
        (BOATS, "ja", 0, "夕暮れの砂浜に赤い船が三隻"),
        (CATS, "ja", 1, "夜の雪原にいる二匹の黄色い猫"),
        (TREE, "ja", 2, "昼の草原にオレンジ色の木が一本あります。"),
        (BOATS, "ar", 0, "ثلاثة قوارب حمراء على الشاطئ عند الغروب"),
        (CATS, "ar", 1, "ليلًا، قطتان صفراوان في الثلج"),
        (TREE, "ar", 2, "هناك شجرة برتقالية في المرج نهارًا."),
        (BOATS, "zh", 0, "日落时的海滩上有三条红色的小船"),
        (CATS, "zh", 1, "夜晚，两只黄色的猫在雪地里"),
        (TREE, "zh", 2, "白天，草地上可以看到一棵橙色的树。"),
    ],
)
def test_whole_caption_reads_as_a_native_would_write_it(
    scene: Scene, language: str, variant: int, expected: str
) -> None:
    assert caption(scene, language, variant=variant) == unicodedata.normalize("NFC", expected)


@pytest.mark.parametrize(
    ("language", "subject", "colour", "count", "expected"),
    [
        ("en", "umbrella", "red", 1, "a red umbrella"),
        ("en", "fish", "blue", 2, "two blue fish"),
        ("en", "butterfly", "orange", 1, "an orange butterfly"),
        ("de", "house", "white", 1, "ein weißes Haus"),
        ("de", "cup", "green", 1, "eine grüne Tasse"),
        ("de", "bird", "blue", 1, "ein blauer Vogel"),
        ("de", "bird", "purple", 2, "zwei violette Vögel"),
        ("de", "butterfly", "pink", 3, "drei rosafarbene Schmetterlinge"),
        ("fr", "flower", "white", 1, "une fleur blanche"),
        ("fr", "flower", "purple", 3, "trois fleurs violettes"),
        ("fr", "car", "orange", 2, "deux voitures orange"),
        ("fr", "bird", "green", 2, "deux oiseaux verts"),
        ("ru", "cat", "red", 1, "один красный кот"),
        ("ru", "cat", "red", 2, "два красных кота"),
        ("ru", "cup", "blue", 1, "одна синяя чашка"),
        ("ru", "cup", "blue", 2, "две синие чашки"),
        ("ru", "tree", "blue", 1, "одно синее дерево"),
        ("ru", "tree", "white", 3, "три белых дерева"),
        ("ru", "flower", "pink", 2, "два розовых цветка"),
        ("hi", "umbrella", "yellow", 1, "एक पीला छाता"),
        ("hi", "umbrella", "yellow", 3, "तीन पीले छाते"),
        ("hi", "fish", "green", 1, "एक हरी मछली"),
        ("hi", "butterfly", "blue", 2, "दो नीली तितलियाँ"),
        ("hi", "balloon", "pink", 2, "दो गुलाबी गुब्बारे"),
        ("ja", "house", "white", 3, "三軒の白い家"),
        ("ja", "bird", "green", 2, "二羽の緑色の鳥"),
        ("ja", "car", "purple", 1, "一台の紫色の車"),
        ("ar", "car", "blue", 1, "سيارة زرقاء"),
        ("ar", "car", "blue", 2, "سيارتان زرقاوان"),
        ("ar", "car", "blue", 3, "ثلاث سيارات زرقاء"),
        ("ar", "house", "white", 2, "بيتان أبيضان"),
        ("ar", "house", "pink", 3, "ثلاثة بيوت وردية"),
        ("ar", "butterfly", "purple", 2, "فراشتان بنفسجيتان"),
        ("zh", "umbrella", "pink", 2, "两把粉色的雨伞"),
        ("zh", "fish", "orange", 1, "一条橙色的鱼"),
        ("zh", "car", "white", 3, "三辆白色的汽车"),
    ],
)
def test_noun_phrase_agrees(language: str, subject: str, colour: str, count: int, expected: str) -> None:
    scene = Scene(subject, colour, count, "city", "day")
    found = partial_caption(scene, language, {"subject", "colour", "count"})
    assert found == unicodedata.normalize("NFC", expected)


@pytest.mark.parametrize("count", COUNTS)
def test_german_articles_and_endings_follow_the_gender(count: int) -> None:
    for subject in SUBJECTS:
        gender, singular, plural = WORDS["de"].nouns[subject]
        phrase = partial_caption(
            Scene(subject, "red", count, "city", "day"), "de", ["subject", "colour", "count"]
        )
        if count == 1:
            ending = {"m": "ein roter", "f": "eine rote", "n": "ein rotes"}[gender]
            assert phrase == f"{ending} {singular}"
        else:
            assert phrase == f"{'zwei' if count == 2 else 'drei'} rote {plural}"


@pytest.mark.parametrize(
    ("language", "keep", "expected"),
    [
        ("en", {"subject", "colour"}, "red boats"),
        ("en", {"subject", "count", "place"}, "three boats on the beach"),
        ("en", {"place", "time"}, "on the beach at sunset"),
        ("de", {"subject", "colour", "count"}, "drei rote Boote"),
        ("fr", {"subject", "colour"}, "des bateaux rouges"),
        ("ru", {"subject", "colour"}, "красные лодки"),
        ("hi", {"subject", "place"}, "समुद्र तट पर नावें"),
        ("ja", {"subject", "colour", "place"}, "砂浜の赤い船"),
        ("ar", {"subject", "time"}, "قوارب عند الغروب"),
        ("zh", {"subject", "colour", "place"}, "海滩上的红色的小船"),
    ],
)
def test_partial_caption_names_only_what_is_kept(language: str, keep: set[str], expected: str) -> None:
    assert partial_caption(BOATS, language, keep) == expected


def test_partial_caption_refuses_a_colour_without_its_subject() -> None:
    with pytest.raises(ValueError, match="keep the subject"):
        partial_caption(BOATS, "en", {"colour"})


@pytest.mark.parametrize("keep", [set(), {"subject", "shape"}])
def test_partial_caption_refuses_unknown_or_no_attributes(keep: set[str]) -> None:
    with pytest.raises(ValueError, match="keep some of subject, colour, count, place, time"):
        partial_caption(BOATS, "en", keep)


def test_unknown_language_and_variant_are_refused() -> None:
    with pytest.raises(ValueError, match="'tlh'; choose one of en, de"):
        caption(BOATS, "tlh")
    with pytest.raises(ValueError, match="variants 0 to 2; 3"):
        caption(BOATS, "en", variant=3)
