"""Sample chunks are ordinary uploads."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from ingest.samples.chunks import COLUMNS, write_chunk, write_emoji_chunk
from ingest.samples.emoji import colour_emoji_font, emoji_names, selection
from ingest.samples.scenes import STYLES, VARIANTS, Scene, all_scenes, caption

SCENES = [
    (scene, STYLES[number % 4], number) for number, scene in enumerate(list(all_scenes())[::540])
]  # 8 scenes, two of each style


def rows_of(path: Path) -> list[dict[str, str]]:
    with zipfile.ZipFile(path) as archive:
        return list(csv.DictReader(io.StringIO(archive.read("captions.csv").decode())))


def captions_of(scene: Scene, language: str) -> set[str]:
    return {caption(scene, language, variant=variant) for variant in range(VARIANTS)}


@pytest.fixture(scope="module")
def chunk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("chunk") / "sample.zip"
    write_chunk(path, scenes=SCENES, languages=["en", "ja"])
    return path


def test_same_arguments_give_the_same_bytes(chunk: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.zip"
    write_chunk(again, scenes=SCENES, languages=["en", "ja"])
    assert again.read_bytes() == chunk.read_bytes()


def test_every_picture_has_one_true_caption_in_each_language(chunk: Path) -> None:
    rows = rows_of(chunk)
    assert tuple(rows[0]) == COLUMNS
    assert len(rows) == 2 * len(SCENES)
    by_name = {scene.identity: scene for scene, _, _ in SCENES}
    for row in rows:
        assert row["caption"] in captions_of(by_name[row["group"]], row["language"])


def test_pictures_are_256_pixels_and_all_listed(chunk: Path) -> None:
    with zipfile.ZipFile(chunk) as archive:
        listed = {row["image"] for row in rows_of(chunk)}
        assert listed == {name for name in archive.namelist() if name.startswith("images/")}
        for name in listed:
            with Image.open(archive.open(name)) as picture:
                assert picture.size == (256, 256)


def test_painted_styles_are_one_domain_and_the_others_their_own(chunk: Path) -> None:
    domains = {row["image"].rsplit("-", 2)[1]: row["domain"] for row in rows_of(chunk)}
    assert domains == {"gouache": "scenes", "flat": "scenes", "ink": "ink", "chalk": "chalk"}


def test_pictures_of_one_scene_share_a_group(tmp_path: Path) -> None:
    path = tmp_path / "group.zip"
    scene = Scene("cup", "blue", 1, "city", "day")
    write_chunk(path, scenes=[(scene, "flat", 0), (scene, "ink", 1)], languages=["de"])
    assert len({row["group"] for row in rows_of(path)}) == 1


def test_shuffled_captions_are_all_wrong_but_keep_their_group(tmp_path: Path) -> None:
    path = tmp_path / "shuffled.zip"
    write_chunk(path, scenes=SCENES, languages=["de"], shuffle_captions=True)
    by_name = {scene.identity: scene for scene, _, _ in SCENES}
    rows = rows_of(path)
    assert {row["group"] for row in rows} == set(by_name)
    for row in rows:
        assert row["group"] in row["image"]
        assert row["caption"] not in captions_of(by_name[row["group"]], "de")


def test_an_empty_or_repeated_list_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got 0 scenes and 1 languages"):
        write_chunk(tmp_path / "x.zip", scenes=[], languages=["en"])
    with pytest.raises(ValueError, match="listed twice"):
        write_chunk(tmp_path / "x.zip", scenes=[SCENES[0], SCENES[0]], languages=["en"])
    assert not list(tmp_path.iterdir())


def test_an_unknown_language_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'tlh'"):
        write_chunk(tmp_path / "x.zip", scenes=SCENES[:1], languages=["tlh"])
    assert not list(tmp_path.iterdir())


def test_emoji_become_a_chunk_of_named_pictures_for_training(tmp_path: Path) -> None:
    font = colour_emoji_font()
    if font is None:
        pytest.skip("no colour emoji font on this machine; install fonts-noto-color-emoji")
    path = tmp_path / "emoji.zip"
    write_emoji_chunk(path, font, "de")
    rows = rows_of(path)
    assert [row["group"] for row in rows] == list(selection())
    assert [row["caption"] for row in rows] == [emoji_names("de")[character] for character in selection()]
    assert {(row["language"], row["domain"], row["split"]) for row in rows} == {("de", "emoji", "train")}
    with zipfile.ZipFile(path) as archive:
        assert {row["image"] for row in rows} == set(archive.namelist()) - {"captions.csv"}
