"""Draw a scene in a style."""

import numpy as np
from PIL import Image

from ingest.samples.scene_backdrop import compose
from ingest.samples.scene_brush import Brush, Canvas
from ingest.samples.scene_grid import Scene, stable_number
from ingest.samples.scene_line_brushes import Chalk, Ink
from ingest.samples.scene_paint_brushes import Flat, Gouache

BRUSHES: dict[str, type[Brush]] = {"gouache": Gouache, "flat": Flat, "ink": Ink, "chalk": Chalk}
STYLES: tuple[str, ...] = tuple(BRUSHES)


def draw(scene: Scene, style: str, *, size: int = 256, seed: int = 0) -> Image.Image:
    """Draw a scene as an RGB image of (size, size); the same arguments always give the same pixels.

    `seed` varies positions, sizes, small details and brush marks; the same scene and seed have the same composition in
    every style.

    Raises:
        ValueError: unknown style, or a size below 16.
    """
    if style not in BRUSHES:
        raise ValueError(f"there is no drawing style {style!r}; choose one of {', '.join(STYLES)}")
    if size < 16:
        raise ValueError(f"a picture of {size} pixels a side is too small to draw; ask for 16 or more")
    # Small pictures get more samples a pixel: their outlines are thin.
    px = size * (3 if size <= 64 else 2)
    composition = compose(scene, np.random.default_rng(stable_number("composition", scene.identity, seed)))
    strokes = np.random.default_rng(stable_number(style, scene.identity, seed))
    picture = BRUSHES[style](Canvas(px, scene.colour, scene.time), strokes).paint(composition)
    return picture.reduce(px // size)
