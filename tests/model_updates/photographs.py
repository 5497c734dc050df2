"""`perennial-photo` for tests: opened once, since its weights are those of the two packages."""

from __future__ import annotations

from functools import lru_cache

from PIL import Image, ImageDraw

from model_updates.encoder import Encoder
from model_updates.opening import open_encoder


@lru_cache(maxsize=1)
def photo_encoder() -> Encoder:
    """Returns the encoder; copy it before changing anything in it."""
    return open_encoder("perennial-photo")


def drawn_pictures() -> list[Image.Image]:
    """Returns three pictures that differ: plain, drawn, and not square."""
    plain = Image.new("RGB", (80, 80), (30, 120, 200))
    drawn = Image.new("RGB", (160, 160), "white")
    ImageDraw.Draw(drawn).ellipse((40, 40, 120, 120), fill=(220, 120, 30))
    return [plain, drawn, Image.linear_gradient("L").resize((300, 120)).convert("RGB")]
