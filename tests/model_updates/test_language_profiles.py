"""Letter profiles: their arithmetic by hand, growing, packing, and that they travel with a version."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from model_updates import language_profiles
from model_updates.encoder import Encoder
from model_updates.language_profiles import (
    ALPHABET,
    READ_AT_ONCE,
    LanguageProfile,
    base_profiles,
    from_bytes,
    letters_of,
    table_of,
    taught_profiles,
    to_bytes,
)
from model_updates.opening import open_embedded
from model_updates.version_files import PROFILES
from model_updates.versions import load_version, write_version
from tests.model_updates.tiny import ENGLISH_TEXTS, make_strategy, teach, tiny_encoder, toy_pairs

GERMAN = [pair.text for pair in toy_pairs("de")]


def same(one: LanguageProfile, other: LanguageProfile) -> bool:
    names = ("alphabet", "keys", "counts")
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def test_letters_are_words_in_lower_case_with_spaces_around_them() -> None:
    assert letters_of("Zwei  ROTE Boote, 2024!") == " zwei rote boote "
    assert letters_of("हिन्दी") == " हिन्दी "
    assert letters_of("2024 🙂 …") == ""


def test_the_chances_are_those_computed_by_hand() -> None:
    profile = LanguageProfile.learned_from(["aa"])
    # Read as " aa ": after nothing came a, a and a space (3 letters of 2 types); after a space came a, once.
    a = (2 + 2 / ALPHABET) / 5
    space = (1 + 2 / ALPHABET) / 5
    after_space = (1 + a) / 2
    after_a = (1 + 2 * space) / 4  # after a came a and a space: 2 letters of 2 types
    after_space_a = (0 + 1 * after_a) / 2  # only another a was seen after " a"

    assert profile.log_likelihood(" a") == pytest.approx(math.log(after_space), rel=1e-5)
    assert profile.log_likelihood(" a ") == pytest.approx(math.log(after_space * after_space_a), rel=1e-5)


def test_many_texts_are_read_as_each_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    profile = LanguageProfile.learned_from(GERMAN)
    texts = [*map(letters_of, GERMAN), "", " a ", letters_of("ein яблоко"), letters_of(GERMAN[0])]
    alone = [profile.log_likelihood(text) for text in texts]
    assert profile.log_likelihoods(texts).tolist() == alone
    monkeypatch.setattr(language_profiles, "READ_AT_ONCE", 3)
    assert profile.log_likelihoods(texts).tolist() == alone
    assert profile.log_likelihoods([]).shape == (0,)


def test_profiles_together_read_as_each_alone() -> None:
    said = (["ein roter Kreis", "viele Bäume"] * 9, ["a red circle", "many trees"] * 9, ["красный круг"] * 9)
    profiles = [LanguageProfile.learned_from(texts) for texts in said]
    texts = list(map(letters_of, ["rote Kreise", "a", "круг und Kreis", "xyz"])) * (READ_AT_ONCE // 8)
    alone = [profile.log_likelihoods(texts).tolist() for profile in profiles]
    together = table_of(*profiles)
    assert together.log_likelihoods(texts).tolist() == alone
    assert together.log_likelihoods([]).shape == (3, 0)
    assert table_of().log_likelihoods(["a"]).shape == (0, 1)


def test_a_text_of_the_latest_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(LanguageProfile.learned_from(GERMAN))
    letters = letters_of(GERMAN[0])
    alone = table.of(letters).tolist()
    table.log_likelihoods([letters])
    monkeypatch.setattr(table, "_read", None)
    assert table.of(letters).tolist() == alone


@pytest.mark.parametrize("before", [" ", " a", " ei", " rote", "xyz"])
def test_the_chances_of_all_next_letters_add_up_to_one(before: str) -> None:
    profile = LanguageProfile.learned_from(GERMAN)
    known = [chr(point) for point in profile.alphabet]
    start = f" {before}"

    def chance(letter: str) -> float:
        return math.exp(profile.log_likelihood(start + letter) - profile.log_likelihood(start))

    unseen = (ALPHABET - len(known)) * chance("я")
    assert sum(map(chance, known)) + unseen == pytest.approx(1.0, abs=1e-4)


def test_a_language_finds_its_own_words_likelier_than_another_does() -> None:
    german, english = LanguageProfile.learned_from(GERMAN), LanguageProfile.learned_from(ENGLISH_TEXTS)

    for text in ("roter punkt", "ein blauer balken"):
        assert german.log_likelihood(letters_of(text)) > english.log_likelihood(letters_of(text)) + 5
    for text in ("red circle", "a black dot"):
        assert english.log_likelihood(letters_of(text)) > german.log_likelihood(letters_of(text)) + 5


def test_teaching_in_two_parts_is_teaching_at_once() -> None:
    whole = LanguageProfile.learned_from(GERMAN + ["über große Öfen"])

    assert same(LanguageProfile.learned_from(GERMAN).taught(["über große Öfen"]), whole)
    assert same(LanguageProfile.learned_from(["über große Öfen"]).taught(GERMAN), whole)
    assert same(LanguageProfile.learned_from([]).taught(GERMAN), LanguageProfile.learned_from(GERMAN))


def test_a_profile_that_grows_too_large_keeps_what_is_frequent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language_profiles, "MOST_SEQUENCES", 60)
    small = LanguageProfile.learned_from(GERMAN)
    monkeypatch.undo()
    whole = LanguageProfile.learned_from(GERMAN)

    assert len(small.keys) == 60 < len(whole.keys)
    assert (np.diff(small.keys.astype(np.float64)) > 0).all()
    assert small.counts.min() >= np.sort(whole.counts)[-60]
    assert math.isfinite(small.log_likelihood(" roter kreis "))


def test_packing_loses_nothing_and_gives_the_same_bytes_again() -> None:
    profiles = {"de": LanguageProfile.learned_from(GERMAN), "zh-Hant": LanguageProfile.learned_from(["貓"])}

    packed = to_bytes(profiles)
    opened = from_bytes(packed)

    assert list(opened) == ["de", "zh-Hant"]
    assert all(same(opened[tag], profiles[tag]) for tag in profiles)
    assert to_bytes(opened) == packed


def test_scripts_are_those_that_a_language_writes_and_not_those_it_borrows() -> None:
    assert LanguageProfile.learned_from(["犬の顔", "ネコ", "OK"] * 9).scripts >= {"CJK", "KATAKANA"}
    assert LanguageProfile.learned_from(["笑脸", "红苹果和绿苹果"] * 20 + ["OK"]).scripts == {"CJK"}


def test_a_base_encoder_brings_the_profiles_of_its_languages() -> None:
    found = base_profiles(["en", "zh-TW", "tlh"])

    assert set(found) == {"en", "zh-TW"}
    assert "CJK" in found["zh-TW"].scripts
    assert set(open_embedded().profiles) == {"en"}


def taught_german() -> Encoder:
    encoder = tiny_encoder()
    encoder.profiles = taught_profiles({}, {"en": ENGLISH_TEXTS})
    teach(encoder, make_strategy("language-tables"), toy_pairs("de"))
    return encoder


def test_an_update_learns_the_profile_of_its_language_and_leaves_the_others() -> None:
    encoder = taught_german()

    assert same(encoder.profiles["de"], LanguageProfile.learned_from(GERMAN))
    assert same(encoder.profiles["en"], LanguageProfile.learned_from(ENGLISH_TEXTS))


def test_a_language_taught_with_one_caption_again_and_again_has_a_profile() -> None:
    taught = taught_profiles({}, {"de": ["ein Ding auf Papier"] * 9})
    assert taught["de"].log_likelihood(letters_of("ein Ding")) > taught["de"].log_likelihood(
        letters_of("xyz")
    )


def test_profiles_travel_with_a_copy_and_with_a_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = open_embedded()
    encoder.profiles = taught_profiles(encoder.profiles, {"de": GERMAN})
    copied = encoder.copy()
    copied.profiles = taught_profiles(copied.profiles, {"de": ["mehr"]})

    manifest = write_version(tmp_path / "v", encoder, {})
    opened = load_version(tmp_path / "v").encoder.profiles

    assert PROFILES in manifest["files"]
    assert set(opened) == {"en", "de"}
    assert all(same(opened[tag], encoder.profiles[tag]) for tag in opened)
    assert not same(copied.profiles["de"], encoder.profiles["de"])


def test_a_version_of_before_there_were_profiles_is_read(tmp_path: Path) -> None:
    encoder = open_embedded()
    encoder.profiles = {}
    write_version(tmp_path / "v", encoder, {})

    assert not (tmp_path / "v" / PROFILES).exists()
    assert load_version(tmp_path / "v").encoder.profiles == {}
