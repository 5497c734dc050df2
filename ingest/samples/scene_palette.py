"""Colours of drawn scenes: subjects, places, skies, and how the time of day tints them (RGB, 0-255)."""

from __future__ import annotations

RGB = tuple[int, int, int]

SUBJECT_COLOURS: dict[str, RGB] = {
    "red": (218, 36, 40),
    "orange": (252, 126, 14),
    "yellow": (255, 216, 28),
    "green": (22, 142, 62),
    "blue": (34, 88, 212),
    "purple": (124, 54, 172),
    "pink": (255, 130, 186),
    "white": (252, 251, 246),
}
# Day colours of everything that does not follow the subject.
TONES: dict[str, RGB] = {
    "wood": (124, 82, 52),
    "glass": (196, 226, 238),
    "lamp": (255, 240, 180),
    "cream": (250, 246, 232),
    "ink": (46, 42, 50),
    "beak": (238, 168, 52),
    "nose": (214, 120, 128),
    "leaf": (78, 134, 62),
    "core": (196, 128, 44),
    "coffee": (110, 70, 46),
    "steam": (244, 244, 244),
    "string": (90, 84, 88),
    "sun": (255, 236, 150),
    "moon": (250, 244, 214),
    "star": (250, 246, 226),
    "cloud": (252, 253, 255),
    "dusk cloud": (250, 190, 168),
    "far hill": (150, 190, 140),
    "near hill": (140, 186, 108),
    "bush": (98, 150, 88),
    "grass": (164, 202, 104),
    "blade": (128, 174, 80),
    "daisy": (254, 250, 230),
    "sea": (92, 182, 196),
    "foam": (236, 248, 246),
    "sand": (242, 222, 178),
    "pebble": (206, 184, 146),
    "palm": (88, 142, 84),
    "mountain": (164, 182, 208),
    "peak": (244, 248, 254),
    "snow shade": (204, 218, 238),
    "snow": (228, 236, 247),
    "flake": (255, 255, 255),
    "pine": (84, 122, 116),
    "mesa": (178, 112, 92),
    "far dune": (216, 168, 122),
    "dune": (212, 172, 124),
    "ripple": (188, 146, 102),
    "cactus": (104, 138, 96),
    "far block": (176, 186, 204),
    "block": (130, 138, 160),
    "window": (222, 230, 236),
    "dark window": (104, 112, 134),
    "kerb": (196, 196, 200),
    "street": (152, 156, 166),
    "lane": (224, 222, 212),
}
# From the top of the picture to the horizon.
SKIES: dict[str, tuple[RGB, RGB, RGB]] = {
    "day": ((118, 186, 234), (172, 216, 244), (228, 243, 248)),
    "sunset": ((126, 98, 162), (238, 146, 124), (255, 214, 152)),
    "night": ((16, 22, 58), (30, 42, 92), (62, 78, 134)),
}
PLACE_LIGHT: dict[str, tuple[float, float, float]] = {
    "day": (1.0, 1.0, 1.0),
    "sunset": (0.98, 0.78, 0.74),
    "night": (0.36, 0.43, 0.64),
}
# Subjects keep far more of their colour than the place does: a red boat at night is still a red boat.
SUBJECT_LIGHT: dict[str, tuple[float, float, float]] = {
    "day": (1.0, 1.0, 1.0),
    "sunset": (1.0, 0.93, 0.90),
    "night": (0.90, 0.91, 0.98),
}
# These shine by themselves, or are lit from within at night.
_SHINING = frozenset({"sun", "moon", "star", "dusk cloud"})


def mix(first: RGB, second: RGB, share: float) -> RGB:
    """``first`` with ``share`` of ``second`` in it."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(first, second, strict=True))
    return red, green, blue


def tint(colour: RGB, light: tuple[float, float, float]) -> RGB:
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
