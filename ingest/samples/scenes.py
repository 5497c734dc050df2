"""Drawn scenes with captions: what to import from here is listed in ``__all__``.

    draw(Scene("boat", "red", 3, "beach", "sunset"), "gouache").save("boats.png")

A scene has five attributes, so every picture has distractors that differ from it in exactly one of them.
Pictures are drawn in four styles (the domains of the samples); captions come from tables of forms in eight
languages and six writing systems. Everything is deterministic in its arguments.
"""

from ingest.samples.scene_captions import LANGUAGES, VARIANTS, caption, partial_caption
from ingest.samples.scene_grid import (
    ATTRIBUTES,
    COLOURS,
    COUNTS,
    PLACES,
    SUBJECTS,
    TIMES,
    Scene,
    all_scenes,
    held_out,
    neighbours,
)
from ingest.samples.scene_painting import STYLES, draw

__all__ = [
    "ATTRIBUTES",
    "COLOURS",
    "COUNTS",
    "LANGUAGES",
    "PLACES",
    "STYLES",
    "SUBJECTS",
    "TIMES",
    "VARIANTS",
    "Scene",
    "all_scenes",
    "caption",
    "draw",
    "held_out",
    "neighbours",
    "partial_caption",
]
