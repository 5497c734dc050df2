"""Colours of drawn scenes: subjects, places, skies, and how the time of day tints them (RGB, 0-255)."""

import json
from pathlib import Path
from typing import Any

RGB = tuple[int, int, int]
Light = tuple[float, float, float]
_PALETTE: dict[str, dict[str, Any]] = json.loads(
    Path(__file__).with_name("scene_palette.json").read_text(encoding="utf-8")
)


def _colours(table: str) -> dict[str, RGB]:
    return {name: (red, green, blue) for name, (red, green, blue) in _PALETTE[table].items()}


SUBJECT_COLOURS: dict[str, RGB] = _colours("subjects")
TONES: dict[str, RGB] = _colours("tones")
"""Day colours of everything that does not follow the subject."""
SKIES: dict[str, list[RGB]] = {
    time: [(red, green, blue) for red, green, blue in stops] for time, stops in _PALETTE["skies"].items()
}
"""By time of day, from the top of the picture to the horizon."""
PLACE_LIGHT: dict[str, Light] = _PALETTE["place light"]
# Subjects keep far more of their colour than the place does: a red boat at night is still a red boat.
SUBJECT_LIGHT: dict[str, Light] = _PALETTE["subject light"]
# These shine by themselves, or are lit from within at night.
_SHINING = frozenset({"sun", "moon", "star", "dusk cloud"})


def mix(first: RGB, second: RGB, share: float) -> RGB:
    """``first`` with ``share`` of ``second`` in it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def tint(colour: RGB, light: Light) -> RGB:
    """The colour under a light (multiplied channel by channel)."""
    red, green, blue = (round(a * b) for a, b in zip(colour, light, strict=True))
    return red, green, blue


def place_tones(time: str) -> dict[str, RGB]:
    """All tones of the backdrop at a time of day."""
    tones = {name: rgb if name in _SHINING else tint(rgb, PLACE_LIGHT[time]) for name, rgb in TONES.items()}
    if time == "night":
        tones |= {"window": (252, 214, 128), "flake": (200, 210, 236)}
    if time == "sunset":
        tones |= {"sun": (255, 240, 186), "window": (255, 216, 150), "sea": (214, 142, 140)}
    return tones


def subject_tones(colour: str, time: str) -> dict[str, RGB]:
    """Tones of a subject at a time of day: the fixed ones plus ``main``, ``light``, ``dark``, ``edge``."""
    main = SUBJECT_COLOURS[colour]
    light = mix(main, (255, 255, 255), 0.34)
    dark = mix(main, (30, 20, 50), 0.26)
    if colour == "white":
        light, dark = (255, 255, 255), (206, 210, 222)
    own = {**TONES, "main": main, "light": light, "dark": dark, "edge": mix(main, (40, 30, 50), 0.55)}
    tones = {name: tint(rgb, SUBJECT_LIGHT[time]) for name, rgb in own.items()}
    if time == "night":
        tones |= {"glass": (255, 226, 150), "lamp": (255, 244, 190)}
    return tones
