"""Picture bytes in, a safe upright RGB picture out.

Pillow's decoders accept more than they should and convert some modes wrongly; each rule here was measured
(16-bit would clip to white, hidden colours under alpha would show, `verify()` passes truncated files). An
embedded colour profile is ignored, as CLIP's own preprocessing does.
"""

import io
import re
import struct
import zlib
from dataclasses import dataclass
from typing import cast

import numpy as np
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from ingest.errors import BadImage
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.sentence import phrase

# Pillow alone would open 43, EPS through Ghostscript included.
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")
THUMBNAIL_SIDE = 256
THUMBNAIL_QUALITY = 82

# What damaged files were seen to raise from inside Pillow's plugins. Warnings are errors under test.
_DECODER_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    ArithmeticError,
    LookupError,
    TypeError,
    AttributeError,
    RuntimeError,
    AssertionError,
    MemoryError,
    UserWarning,
    struct.error,
    zlib.error,
)

_LOOKS_LIKE = (
    (b"%PDF", "a PDF"),
    (b"%!PS", "EPS or PostScript"),
    (b"\xc5\xd0\xd3\xc6", "EPS or PostScript"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"8BPS", "a Photoshop file"),
    (b"version https://git-lfs", "a git-LFS pointer: run `git lfs pull` first"),
)


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """A decoded picture: RGB, upright, without metadata. `width` and `height` are in pixels."""

    image: Image.Image
    width: int
    height: int
    format: str
    notes: tuple[str, ...]


def decode(data: bytes, limits: Limits = DEFAULT_LIMITS) -> DecodedImage:
    """Decodes one picture file.

    Raises:
        BadImage: empty, too large, not a supported format, damaged, too small, too long or one flat colour.
    """
    if not data:
        raise BadImage("image_empty", "The file is empty.")
    if len(data) > limits.image_bytes:
        raise BadImage("image_too_large", limits.too_large(len(data)))
    opened = _open(data, limits)
    try:
        _check_size(opened, limits)
        notes = ["animated or of several pages, only the first is used"] if _has_more_frames(opened) else []
        source_format = "JPEG" if opened.format == "MPO" else str(opened.format)
        picture = _upright(_load(opened), notes)
        rgb = _to_rgb(picture)
    finally:
        opened.close()
    if not limits.allow_flat and _is_flat(rgb):
        raise BadImage(
            "image_flat", phrase("The picture is one flat colour: it has no content to search for.")
        )
    return DecodedImage(rgb, rgb.width, rgb.height, source_format, tuple(notes))


def thumbnail(image: Image.Image) -> bytes:
    """Returns a WebP of at most 256 x 256 pixels without any metadata, from an RGB picture."""
    small = image.copy()
    small.thumbnail((THUMBNAIL_SIDE, THUMBNAIL_SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0)
    small.info.clear()
    target = io.BytesIO()
    small.save(target, format="WEBP", quality=THUMBNAIL_QUALITY, method=2)
    return target.getvalue()


def _open(data: bytes, limits: Limits) -> Image.Image:
    try:
        return Image.open(io.BytesIO(data), formats=FORMATS)
    except UnidentifiedImageError:
        raise BadImage("image_unsupported", _unsupported_sentence(data)) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        pixels = re.search(r"\((\d+) pixels\)", str(error))
        raise _too_many_pixels(int(pixels[1]) if pixels else None, limits) from None
    except _DECODER_ERRORS as error:
        raise _unreadable(error) from None


def _check_size(image: Image.Image, limits: Limits) -> None:
    width, height = image.size
    if width * height > limits.image_pixels:
        raise _too_many_pixels(width * height, limits)
    if min(width, height) < limits.shortest_side:
        raise BadImage(
            "image_too_small",
            phrase(
                "The picture is {width}x{height}; each side needs {most} pixels or more.",
                width=width,
                height=height,
                most=limits.shortest_side,
            ),
        )
    if max(width, height) > limits.aspect * min(width, height):
        raise BadImage(
            "image_too_long",
            phrase(
                "The picture is {width}x{height}; the longest shape is {aspect}:1.",
                width=width,
                height=height,
                aspect=limits.aspect,
            ),
        )


def _too_many_pixels(pixels: int | None, limits: Limits) -> BadImage:
    most = f"{limits.image_pixels / 1e6:.0f}"
    if pixels is None:
        said = phrase("The picture has too many pixels; the limit is {most} megapixels.", most=most)
    else:
        said = phrase(
            "The picture has {size} megapixels; the limit is {most} megapixels.",
            size=f"{pixels / 1e6:,.0f}",
            most=most,
        )
    return BadImage("image_too_many_pixels", said)


def _has_more_frames(image: Image.Image) -> bool:
    if image.format == "MPO":  # phones add a second, derived picture to a photo; it is not an animation
        return False
    try:
        # Not `n_frames`: counting the pages of a TIFF takes time quadratic in their number, and of a GIF all
        # frames are read.
        return bool(getattr(image, "is_animated", False))
    except _DECODER_ERRORS:
        return False
    finally:
        if image.tell() != 0:
            image.seek(0)


def _load(image: Image.Image) -> Image.Image:
    try:
        image.load()
    except _DECODER_ERRORS as error:
        if any(word in str(error).lower() for word in ("truncated", "not enough", "ends", "unexpected end")):
            raise BadImage("image_truncated", "The image data ends early: the file is incomplete.") from None
        raise _unreadable(error) from None
    return image


def _upright(image: Image.Image, notes: list[str]) -> Image.Image:
    try:
        return ImageOps.exif_transpose(image)
    except _DECODER_ERRORS:
        notes.append("turned in a way that could not be read; it was left as it is")
        return image


def _to_rgb(image: Image.Image) -> Image.Image:
    try:
        return _without_metadata(_converted(image))
    except _DECODER_ERRORS as error:
        raise BadImage(
            "image_unreadable", f"The picture's colours cannot be converted ({_reason(error)})."
        ) from None


def _converted(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):
        # convert() clips at 255; 65535 / 257 is exactly 255.
        scaled = (np.asarray(image, dtype=np.uint32) // 257).astype(np.uint8)
        return Image.fromarray(scaled).convert("RGB")
    if image.mode in ("I", "F"):
        raise BadImage("image_depth", "The picture has 32 bits a channel; save it with 8 or 16.")
    if image.mode == "LAB":
        lab, srgb = ImageCms.createProfile("LAB"), ImageCms.createProfile("sRGB")
        converted = ImageCms.profileToProfile(image, lab, srgb, outputMode="RGB")
        if converted is None:
            raise BadImage(
                "image_unreadable", "The picture's Lab colours cannot be converted; save it as RGB."
            )
        return converted
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        with_alpha = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), with_alpha).convert("RGB")
    return image.convert("RGB")


def _without_metadata(image: Image.Image) -> Image.Image:
    plain = Image.new("RGB", image.size)  # a fresh object: no EXIF (GPS), no profile, no open file behind it
    plain.paste(image)
    return plain


def _is_flat(rgb: Image.Image) -> bool:
    bands = cast(tuple[tuple[int, int], ...], rgb.getextrema())
    return all(low == high for low, high in bands)


def _unsupported_sentence(data: bytes) -> str:
    looks = _looks_like(data)
    if not looks:
        return phrase("Not a supported image; JPEG, PNG, WebP, GIF, BMP and TIFF are.")
    return phrase(
        "Not a supported image (looks like {looks}); JPEG, PNG, WebP, GIF, BMP and TIFF are.", looks=looks
    )


def _looks_like(data: bytes) -> str:
    for start, name in _LOOKS_LIKE:
        if data.startswith(start):
            return name
    if data[4:8] == b"ftyp":
        return phrase("HEIC, AVIF or a video")
    head = data[:1024].lstrip().lower()
    if b"<svg" in head:
        return "SVG"
    if head.startswith((b"<!doctype", b"<html", b"<head", b"<?xml", b"<script")):
        return phrase("HTML or XML")
    return phrase("text") if head.isascii() and head.decode("ascii").isprintable() else ""


def _unreadable(error: BaseException) -> BadImage:
    return BadImage("image_unreadable", phrase("The picture cannot be read ({why}).", why=_reason(error)))


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:120] if text else type(error).__name__
