"""The grid of scenes and their pictures."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ingest.samples.scene_backdrop import Placed, compose
from ingest.samples.scene_grid import stable_number
from ingest.samples.scenes import (
    ATTRIBUTES,
    COLOURS,
    COUNTS,
    PLACES,
    STYLES,
    SUBJECTS,
    TIMES,
    Scene,
    all_scenes,
    draw,
    held_out,
    neighbours,
)

BOATS = Scene("boat", "red", 3, "beach", "sunset")


def pixels(scene: Scene, style: str, size: int = 64, seed: int = 0) -> NDArray[np.float64]:
    return np.asarray(draw(scene, style, size=size, seed=seed), dtype=np.float64)


def composed_subjects(scene: Scene, seed: int) -> tuple[Placed, ...]:
    rng = np.random.default_rng(stable_number("composition", scene.identity, seed))
    return compose(scene, rng).subjects


def test_grid_holds_every_combination_once_in_a_fixed_order() -> None:
    scenes = list(all_scenes())
    assert len(scenes) == len(set(scenes)) == 12 * 8 * 3 * 5 * 3
    assert scenes[0] == Scene("house", "red", 1, "meadow", "day")
    assert scenes[-1] == Scene("butterfly", "white", 3, "city", "night")


def test_neighbours_differ_in_exactly_one_attribute_and_are_complete() -> None:
    found = neighbours(BOATS)
    sizes = [len(values) - 1 for values in (SUBJECTS, COLOURS, COUNTS, PLACES, TIMES)]
    assert len(found) == len(set(found)) == sum(sizes) == 26
    for other in found:
        assert sum(getattr(other, name) != getattr(BOATS, name) for name in ATTRIBUTES) == 1


def test_held_out_share_is_about_15_percent_and_touches_every_value() -> None:
    kept_back = [scene for scene in all_scenes() if held_out(scene)]
    assert 0.13 < len(kept_back) / 4320 < 0.17
    for name, values in zip(ATTRIBUTES, (SUBJECTS, COLOURS, COUNTS, PLACES, TIMES), strict=True):
        assert {getattr(scene, name) for scene in kept_back} == set(values)


def test_held_out_never_changes_between_releases() -> None:
    bits = "".join("01"[held_out(scene)] for scene in all_scenes())
    # A shipped encoder's held-out scenes must stay held out: change this only with the encoder.
    assert hashlib.sha256(bits.encode()).hexdigest()[:16] == "6a9c98c785bee8b9"


@pytest.mark.parametrize("style", STYLES)
def test_picture_is_the_same_for_the_same_arguments_and_differs_by_seed(style: str) -> None:
    first = draw(BOATS, style, size=64, seed=3)
    assert (first.mode, first.size) == ("RGB", (64, 64))
    assert first.tobytes() == draw(BOATS, style, size=64, seed=3).tobytes()
    assert first.tobytes() != draw(BOATS, style, size=64, seed=4).tobytes()


def test_picture_is_the_same_in_another_process() -> None:
    program = (
        "import hashlib; from ingest.samples.scenes import *; "
        "s = Scene('boat', 'red', 3, 'beach', 'sunset'); "
        "print(hashlib.sha256(b''.join(draw(s, x, size=64).tobytes() for x in STYLES)).hexdigest())"
    )
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    here = hashlib.sha256(b"".join(draw(BOATS, style, size=64).tobytes() for style in STYLES)).hexdigest()
    assert done.stdout.strip() == here


@pytest.mark.parametrize("size", [16, 65, 96, 224])
def test_picture_has_the_size_asked_for(size: int) -> None:
    assert draw(BOATS, "ink", size=size).size == (size, size)


@pytest.mark.parametrize("style", STYLES)
def test_every_subject_in_every_place_and_time_draws(style: str) -> None:
    seen = set()
    for step, subject in enumerate(SUBJECTS):
        for place in PLACES:
            scene = Scene(subject, COLOURS[step % 8], COUNTS[step % 3], place, TIMES[step % 3])
            seen.add(draw(scene, style, size=32).tobytes())
    assert len(seen) == len(SUBJECTS) * len(PLACES)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("time", TIMES)
def test_subject_colour_can_be_told_at_every_hour(style: str, time: str) -> None:
    """The middle of a balloon is nearest to its own colour's direction among the eight."""
    reference = {colour: _balloon_middle(colour, style, "day", seed=1) for colour in COLOURS}
    for colour in COLOURS:
        found = _balloon_middle(colour, style, time, seed=2)
        nearest = min(COLOURS, key=lambda name: float(np.abs(reference[name] - found).sum()))
        assert nearest == colour


def _balloon_middle(colour: str, style: str, time: str, seed: int) -> NDArray[np.float64]:
    scene = Scene("balloon", colour, 1, "meadow", time)
    (placed,) = composed_subjects(scene, seed)
    picture = pixels(scene, style, 128, seed)
    x, y = placed.left + 0.5 * placed.width, placed.top + 0.4 * placed.width
    reach = 0.06 * placed.width
    rows = slice(round((y - reach) * 128), round((y + reach) * 128))
    columns = slice(round((x - reach) * 128), round((x + reach) * 128))
    mean: NDArray[np.float64] = picture[rows, columns].mean(axis=(0, 1))
    return mean


@pytest.mark.parametrize("style", ["gouache", "flat"])
def test_day_is_brighter_than_sunset_and_sunset_than_night(style: str) -> None:
    for place in PLACES:
        day, sunset, night = (pixels(Scene("cat", "blue", 1, place, time), style).mean() for time in TIMES)
        assert day > sunset > night


def test_ink_lies_on_light_paper_and_chalk_on_a_dark_board() -> None:
    scene = Scene("car", "yellow", 2, "city", "day")
    assert pixels(scene, "ink")[:20].mean() > 180
    assert pixels(scene, "chalk")[:20].mean() < 110


@pytest.mark.parametrize("count", COUNTS)
def test_subjects_are_counted_whole_inside_the_picture_and_large(count: int) -> None:
    for seed in range(20):
        placed = composed_subjects(Scene("house", "red", count, "city", "day"), seed)
        assert len(placed) == count
        for one in placed:
            assert 0.25 <= one.width <= 0.55
            assert one.left >= 0.0
            assert one.left + one.width <= 1.0
            assert 0.0 <= one.top <= one.ground <= 1.0


def test_composition_does_not_depend_on_style() -> None:
    """Otherwise a new drawing style would bring new layouts with it."""
    scene = Scene("balloon", "white", 1, "meadow", "night")
    (placed,) = composed_subjects(scene, 5)
    middle = round((placed.top + 0.35 * placed.width) * 64), round((placed.left + 0.5 * placed.width) * 64)
    for style in STYLES:
        assert pixels(scene, style, 64, 5)[middle].min() > 130


def test_unknown_style_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'oil'; choose one of gouache, flat, ink, chalk"):
        draw(BOATS, "oil")


def test_too_small_a_picture_is_refused() -> None:
    with pytest.raises(ValueError, match="8 pixels"):
        draw(BOATS, "flat", size=8)
