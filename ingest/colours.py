"""From the pixels that a file holds to RGB of 8 bits: palettes, transparency, 16 bits, profiles, CMYK and Lab."""

import io
from functools import lru_cache

import numpy as np
from PIL import Image, ImageCms

from ingest.errors import BadImage
from ingest.sentence import phrase

_PLAIN = frozenset(("RGB", "L", "CMYK", "LAB", "YCbCr", "HSV"))
_WITH_ALPHA = frozenset(("RGBA", "LA", "PA", "La", "RGBa"))
_STRIP_PIXELS = 4_000_000
_SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
_MODES = {"RGB": "RGB", "GRAY": "L", "CMYK": "CMYK"}
_STEPS = {"RGB": 15, "L": 1, "CMYK": 51}  # of the levels that a profile is tried with
_LEAST_RANGE = 128
_ROUNDING = 2  # levels of 255; most pictures that have a profile have one of the many of sRGB
_PROFILE_ERRORS = (ImageCms.PyCMSError, OSError, ValueError, TypeError, LookupError, MemoryError)


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


def to_rgb(image: Image.Image, profile: bytes | None, notes: list[str]) -> Image.Image:
    """Returns an opaque picture as sRGB, by the ICC profile that its file has; one that is so is returned itself.

    A profile that cannot be used costs a note.

    Raises:
        BadImage: its Lab colours cannot be converted.
    """
    if image.mode == "LAB":
        lab = ImageCms.ImageCmsTransform(
            ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB")), _SRGB, "LAB", "RGB"
        )
        return lab.apply(image)
    if profile:
        try:
            return _in_srgb(image, profile)
        except _PROFILE_ERRORS:
            notes.append(phrase("Its colour profile cannot be used; its colours are taken for sRGB."))
    return image if image.mode == "RGB" else image.convert("RGB")


def _in_srgb(image: Image.Image, profile: bytes) -> Image.Image:
    mode, transform = _to_srgb(profile)
    if mode != image.mode and (mode != "RGB" or image.mode == "CMYK"):
        raise ValueError("a profile of other colours than the picture's")
    image = image if image.mode == mode else image.convert(mode)
    if transform is None:
        return image if mode == "RGB" else image.convert("RGB")
    return transform.apply(image, image if mode == "RGB" else None)


@lru_cache(maxsize=16)
def _to_srgb(profile: bytes) -> tuple[str, ImageCms.ImageCmsTransform | None]:
    """Returns the mode that a profile is for and what makes sRGB of it, None when it is sRGB but for rounding."""
    source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
    mode = _MODES[source.profile.xcolor_space.strip()]
    transform = ImageCms.ImageCmsTransform(source, _SRGB, mode, "RGB")
    grid = np.meshgrid(*[np.arange(0, 256, _STEPS[mode])] * len(Image.new(mode, (1, 1)).getbands()))
    given = Image.frombytes(mode, (grid[0].size, 1), np.stack(grid, axis=-1).astype(np.uint8).tobytes())
    shown = np.asarray(transform.apply(given), dtype=int)
    if np.ptp(shown) < _LEAST_RANGE:
        raise ValueError("a profile that shows next to nothing")
    is_srgb = mode != "CMYK" and np.abs(shown - np.asarray(given.convert("RGB"))).max() <= _ROUNDING
    return mode, None if is_srgb else transform


def _opaque(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):
        # convert() clips at 255; 65535 / 257 is exactly 255.
        return Image.fromarray((np.asarray(image) // 257).astype(np.uint8))
    if image.mode in ("I", "F"):
        raise BadImage("image_depth", phrase("The picture has 32 bits a channel; save it with 8 or 16."))
    if image.mode in _WITH_ALPHA or "transparency" in image.info:
        with_alpha = image.convert("RGBA")
        shown = Image.alpha_composite(Image.new("RGBA", image.size, "white"), with_alpha)
        return shown.convert("L" if image.mode in ("L", "LA", "La") else "RGB")
    return image.convert("L" if image.mode == "1" else "RGB") if image.mode not in _PLAIN else image
