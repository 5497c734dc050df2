"""Emoji samples: names always, pictures when the machine has a colour emoji font."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ingest.samples.emoji import LANGUAGES, colour_emoji_font, draw_emoji, emoji_names, selection


@pytest.fixture
def font() -> Path:
    found = colour_emoji_font()
    if found is None:
        pytest.skip("no colour emoji font on this machine; install fonts-noto-color-emoji")
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_selected_emoji_has_its_own_name(language: str) -> None:
    names = emoji_names(language)
    chosen = [names[character] for character in selection()]
    assert len(set(chosen)) == len(chosen)
    assert not any(":" in name or "_" in name or name != name.strip() for name in names.values())


def test_names_are_the_ones_people_use() -> None:
    assert emoji_names("en")["🍎"] == "red apple"
    assert emoji_names("de")["🍎"] == "roter apfel"
    assert emoji_names("ja")["🐝"] == "ミツバチ"


def test_unknown_language_is_refused() -> None:
    with pytest.raises(ValueError, match="'tlh'; choose one of en, de"):
        emoji_names("tlh")


def test_selection_is_about_200_without_people_flags_or_skin_tones() -> None:
    chosen = selection()
    assert 180 <= len(chosen) <= 240
    assert len(set(chosen)) == len(chosen)
    for character in chosen:
        assert not any(0x1F3FB <= ord(part) <= 0x1F3FF for part in character)
        assert not any(0x1F1E6 <= ord(part) <= 0x1F1FF for part in character)
        assert "\u200d" not in character


def test_emoji_is_drawn_in_colour_on_white(font: Path) -> None:
    picture = draw_emoji("🍎", font, 64)
    assert (picture.mode, picture.size) == ("RGB", (64, 64))
    values = np.asarray(picture, dtype=np.int64)
    assert (values[0, 0] == 255).all()
    red, green, _ = values[32, 32]
    assert red > green + 40


def test_every_selected_emoji_has_its_own_picture(font: Path) -> None:
    pictures = {draw_emoji(character, font, 24).tobytes() for character in selection()}
    assert len(pictures) == len(selection())


def test_emoji_picture_is_the_same_each_time(font: Path) -> None:
    assert draw_emoji("🐙", font, 48).tobytes() == draw_emoji("🐙", font, 48).tobytes()


def test_a_character_without_picture_is_refused(font: Path) -> None:
    with pytest.raises(ValueError, match="no picture"):
        draw_emoji(" ", font, 32)


def test_a_file_that_is_no_font_is_refused(tmp_path: Path) -> None:
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"no font")
    with pytest.raises(ValueError, match="install fonts-noto-color-emoji"):
        draw_emoji("🍎", broken, 32)
