"""Two styles that paint areas: gouache and flat poster."""

from functools import lru_cache

import numpy as np
from PIL import Image, ImageChops, ImageDraw

from ingest.samples.scene_backdrop import Composition, Placed
from ingest.samples.scene_brush import Brush, to_image, with_grain
from ingest.samples.scene_palette import RGB, SKIES, mix


class Gouache(Brush):
    """Soft opaque paint: gradients, a glow round the sun, rounded shading, brush mottling and paper grain."""

    def sky(self, composition: Composition) -> Image.Image:
        """A vertical gradient with a glow round the sun or moon."""
        grid = (np.arange(64) + 0.5) / 64
        stops = np.asarray(SKIES[self.time], dtype=np.float32)
        where = np.clip(grid / composition.horizon, 0, 1)
        column = np.stack([np.interp(where, (0, 0.55, 1), stops[:, c]) for c in range(3)], axis=1)
        x, y = composition.sun
        distance = np.hypot(grid[None, :] - x, grid[:, None] - y)
        strength = {"day": 0.75, "sunset": 0.8, "night": 0.38}[self.time]
        glow = strength * np.exp(-((distance / 0.24) ** 2))[..., None]
        warm = np.asarray(self.place["moon" if self.time == "night" else "sun"], dtype=np.float32)
        small = column[:, None, :] * (1 - glow) + warm * glow
        return to_image(small).resize((self.px, self.px), Image.Resampling.BICUBIC)

    def backdrop(self, image: Image.Image, composition: Composition) -> None:
        """Filled shapes, then depth (the ground darkens towards us) and brush mottling over all of them."""
        super().backdrop(image, composition)
        grid = (np.arange(48) + 0.5) / 48
        below = np.clip((grid - composition.horizon) / (1 - composition.horizon), 0, 1)[:, None]
        light = 1.0 - 0.16 * below + 0.05 * (self.rng.random((48, 48)) - 0.5) * (0.5 + below)
        shade = to_image(np.clip(light, 0, 1) * 255).resize(image.size, Image.Resampling.BICUBIC)
        image.paste(ImageChops.multiply(image, Image.merge("RGB", (shade, shade, shade))))

    def shadow(self, image: Image.Image, placed: Placed) -> None:
        """A blurred pool of dark under the subject, away from the light."""
        wide, high = round(1.3 * placed.width * self.px), round(0.36 * placed.width * self.px)
        corner = (
            round((placed.left + 0.55 * placed.width) * self.px) - wide // 2,
            round(placed.ground * self.px) - high // 2,
        )
        image.paste((20, 20, 50), (*corner, corner[0] + wide, corner[1] + high), soft_pool(wide, high))

    def figure(self, image: Image.Image, placed: Placed) -> None:
        """The subject with light from the upper left."""
        colours, mask, corner = self.tile(placed)
        shading = round_shading(colours.width)
        image.paste(ImageChops.multiply(colours, shading), corner, mask)
        highlight = Image.new("RGB", colours.size, (255, 250, 236))
        image.paste(highlight, corner, ImageChops.multiply(mask, sheen(colours.width)))

    def finish(self, image: Image.Image) -> Image.Image:
        """Paper grain."""
        return with_grain(image, self.rng, strength=0.06, coarse=2)


class Flat(Brush):
    """A poster: few flat colours, bands of sky, hard half shadows."""

    def sky(self, composition: Composition) -> Image.Image:
        """Three bands and a ring round the sun."""
        image = Image.new("RGB", (self.px, self.px), SKIES[self.time][0])
        pen = ImageDraw.Draw(image)
        for share, stop in ((0.42, 1), (0.76, 2)):
            pen.rectangle(
                (0, round(share * composition.horizon * self.px), self.px, self.px), SKIES[self.time][stop]
            )
        x, y = composition.sun
        for radius, share in ((0.26, 0.12), (0.18, 0.28)):
            ring = tuple(round((v + s * radius) * self.px) for v, s in ((x, -1), (y, -1), (x, 1), (y, 1)))
            colour = image.getpixel((round(x * self.px), min(self.px - 1, round(y * self.px))))
            pen.ellipse(ring, fill=mix(_rgb(colour), self.place["sun"], share))
        return image

    def shadow(self, image: Image.Image, placed: Placed) -> None:
        """A hard ellipse."""
        cx, y = (placed.left + placed.width * 0.54) * self.px, placed.ground * self.px
        rx, ry = 0.44 * placed.width * self.px, 0.055 * placed.width * self.px
        mask = Image.new("L", image.size)
        ImageDraw.Draw(mask).ellipse((cx - rx, y - ry, cx + rx, y + ry), fill=80)
        image.paste((24, 22, 56), mask=mask)

    def figure(self, image: Image.Image, placed: Placed) -> None:
        """Flat fills with the right side in shade."""
        colours, mask, corner = self.tile(placed)
        image.paste(colours, corner, mask)
        half = Image.new("L", mask.size)
        side = mask.width
        ImageDraw.Draw(half).polygon(
            [(0.62 * side, 0), (side, 0), (side, side), (0.46 * side, side)], fill=44
        )
        image.paste((20, 16, 60), corner, ImageChops.multiply(mask, half))


@lru_cache(maxsize=64)
def round_shading(side: int) -> Image.Image:
    """Light from the upper left as a multiplier: (side, side) RGB, cooler in the shade."""
    grid = (np.arange(32) + 0.5) / 32
    away = np.clip(0.5 * (grid[None, :] + grid[:, None]) * 1.1 - 0.30, 0, 1)[..., None]
    cool = np.asarray((0.62, 0.66, 0.44))
    return to_image((1 - away * cool) * 255).resize((side, side), Image.Resampling.BICUBIC)


@lru_cache(maxsize=64)
def soft_pool(wide: int, high: int) -> Image.Image:
    """A blurred ellipse of shadow, (high, wide) L."""
    x = np.linspace(-1, 1, 32)[None, :]
    y = np.linspace(-1, 1, 16)[:, None]
    return to_image(100 * np.clip(1.15 - 1.2 * np.hypot(x, y), 0, 1)).resize(
        (wide, high), Image.Resampling.BICUBIC
    )


@lru_cache(maxsize=64)
def sheen(side: int) -> Image.Image:
    """Where a highlight lies on a subject: (side, side) L, brightest at the upper left."""
    grid = (np.arange(32) + 0.5) / 32
    distance = np.hypot(grid[None, :] - 0.30, grid[:, None] - 0.28)
    return to_image(70 * np.exp(-((distance / 0.20) ** 2))).resize((side, side), Image.Resampling.BICUBIC)


def _rgb(pixel: object) -> RGB:
    if not isinstance(pixel, tuple):
        raise TypeError(f"expected an RGB pixel, got {pixel!r}; the canvas must be an RGB image")
    red, green, blue = pixel
    return int(red), int(green), int(blue)
