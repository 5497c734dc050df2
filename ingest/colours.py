"""From the pixels that a file holds to RGB of 8 bits: palettes, transparency, 16 bits, CMYK and Lab."""

import numpy as np
from PIL import Image, ImageCms

from ingest.errors import BadImage

_PLAIN = frozenset(("RGB", "L", "CMYK", "LAB", "YCbCr", "HSV"))
_WITH_ALPHA = frozenset(("RGBA", "LA", "PA", "La", "RGBa"))
_STRIP_PIXELS = 4_000_000


def opaque(image: Image.Image, shrink: int = 1) -> Image.Image:
    """Returns a picture of 8 bits a channel without palette, on white where it is transparent, `shrink` times smaller.

    One that is so already is returned itself. It is made strip by strip, so that a large picture takes little more
    memory than its own pixels. `shrink` is 1, 2, 4 or 8.

    Raises:
        BadImage: it has 32 bits a channel.
    """
    if shrink == 1 and image.mode in _PLAIN and "transparency" not in image.info:
        return image
    width, height = image.size
    rows = max(8, _STRIP_PIXELS // width // 8 * 8)
    made: Image.Image | None = None
    for top in range(0, height, rows):
        strip = _opaque(image.crop((0, top, width, min(top + rows, height)))).reduce(shrink)
        made = made or Image.new(strip.mode, (-(-width // shrink), -(-height // shrink)))
        made.paste(strip, (0, top // shrink))
    return made or image


def to_rgb(image: Image.Image) -> Image.Image:
    """Returns an opaque picture as RGB; one that is RGB is returned itself.

    Raises:
        BadImage: its Lab colours cannot be converted.
    """
    if image.mode == "LAB":
        lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        converted = ImageCms.profileToProfile(image, lab, srgb, outputMode="RGB")
        if converted is None:
            raise BadImage(
                "image_unreadable", "The picture's Lab colours cannot be converted; save it as RGB."
            )
        return converted
    return image if image.mode == "RGB" else image.convert("RGB")


def _opaque(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):
        # convert() clips at 255; 65535 / 257 is exactly 255.
        return Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise BadImage("image_depth", "The picture has 32 bits a channel; save it with 8 or 16.")
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        with_alpha = image.convert("RGBA")
        shown = Image.alpha_composite(Image.new("RGBA", image.size, "white"), with_alpha)
        return shown.convert("L" if image.mode in ("L", "LA", "La") else "RGB")
    return image.convert("L" if image.mode == "1" else "RGB") if image.mode not in _PLAIN else image
