"""The grid of drawn scenes: five attributes, every combination once.

A scene is a small, fully known fact ("three red boats on the beach at sunset"). Because every attribute is
known, each picture has distractors that differ from it in one attribute only (`neighbours`), which is what a
retrieval benchmark needs.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

SUBJECTS: tuple[str, ...] = (
    "house",
    "boat",
    "tree",
    "car",
    "fish",
    "bird",
    "cat",
    "flower",
    "umbrella",
    "cup",
    "balloon",
    "butterfly",
)
COLOURS: tuple[str, ...] = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "white")
COUNTS: tuple[int, ...] = (1, 2, 3)
PLACES: tuple[str, ...] = ("meadow", "beach", "snow", "desert", "city")
TIMES: tuple[str, ...] = ("day", "sunset", "night")
ATTRIBUTES: tuple[str, ...] = ("subject", "colour", "count", "place", "time")

HELD_OUT_PERCENT = 15


@dataclass(frozen=True, slots=True, order=True)
class Scene:
    """What one drawn picture shows."""

    subject: str  # one of `SUBJECTS`
    colour: str  # one of `COLOURS`; the colour of the subject
    count: int  # one of `COUNTS`; how many of the subject
    place: str  # one of `PLACES`
    time: str  # one of `TIMES`

    @property
    def identity(self) -> str:
        """The scene as one short stable word, such as ``boat-red-3-beach-sunset``."""
        return f"{self.subject}-{self.colour}-{self.count}-{self.place}-{self.time}"


def all_scenes() -> Iterator[Scene]:
    """Yield the full grid (4,320 scenes) in one fixed order."""
    for subject, colour, count, place, time in product(SUBJECTS, COLOURS, COUNTS, PLACES, TIMES):
        yield Scene(subject, colour, count, place, time)


def neighbours(scene: Scene) -> list[Scene]:
    """All scenes of the grid that differ from ``scene`` in exactly one attribute (26 of them)."""
    found = [replace(scene, subject=other) for other in SUBJECTS if other != scene.subject]
    found += [replace(scene, colour=other) for other in COLOURS if other != scene.colour]
    found += [replace(scene, count=other) for other in COUNTS if other != scene.count]
    found += [replace(scene, place=other) for other in PLACES if other != scene.place]
    found += [replace(scene, time=other) for other in TIMES if other != scene.time]
    return found


def held_out(scene: Scene) -> bool:
    """Whether the shipped encoder never trained on this scene (about 15 % of the grid, by a stable hash)."""
    return stable_number("held out", scene.identity) % 100 < HELD_OUT_PERCENT


def stable_number(*words: object) -> int:
    """A 64-bit number that depends on the words alone: same in every process, machine and Python."""
    digest = hashlib.sha256("|".join(str(word) for word in words).encode()).digest()
    return int.from_bytes(digest[:8], "big")
