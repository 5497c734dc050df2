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
import pillow_heif
from PIL import ExifTags, Image, ImageCms, ImageOps, UnidentifiedImageError

from ingest.camera_raw import SIDEWAYS, RawPreview, is_camera_raw, preview_of
from ingest.errors import BadImage
from ingest.file_kinds import VIDEO, is_video, looks_like, picture_format
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.sentence import phrase

# Pillow alone would open 43, EPS through Ghostscript included.
FORMATS = ("JPEG", "PNG", "WEBP", "HEIF", "AVIF", "GIF", "BMP", "TIFF")
pillow_heif.register_heif_opener(thumbnails=False, depth_images=False, aux_images=False)
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


@dataclass(frozen=True, slots=True)
class DecodedImage:
    """A decoded picture: RGB, upright, without metadata."""

    image: Image.Image
    width: int  # of the original, upright, in pixels; `image` may be a smaller preview of it
    height: int
    format: str  # as Pillow names it, or RAW
    notes: tuple[str, ...]  # sentences for its owner


def decode(data: bytes, limits: Limits = DEFAULT_LIMITS) -> DecodedImage:
    """Decodes one picture file.

    Raises:
        BadImage: empty, too large, not a supported format, damaged, too small, too long or one flat colour.
    """
    if not data:
        raise BadImage("image_empty", "The file is empty.")
    if len(data) > limits.image_bytes:
        raise BadImage("image_too_large", limits.too_large(len(data)))
    preview = preview_of(data)
    opened = _open(preview.data if preview else data, limits)
    try:
        _check_size(opened, limits)
        notes = _notes(opened, preview)
        source_format = "RAW" if preview else "JPEG" if opened.format == "MPO" else str(opened.format)
        picture = _upright(_load(opened), notes)
        rgb = _to_rgb(picture)
    finally:
        opened.close()
    if not limits.allow_flat and _is_flat(rgb):
        raise BadImage(
            "image_flat", phrase("The picture is one flat colour: it has no content to search for.")
        )
    width, height = (preview.width, preview.height) if preview else rgb.size
    return DecodedImage(rgb, width, height, source_format, tuple(notes))


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
        raise _refusal(data) from None
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


def _notes(opened: Image.Image, preview: RawPreview | None) -> list[str]:
    if preview is not None:
        _turn_as_stated(opened, preview)
        size = f"{opened.width}x{opened.height}"
        return [phrase("Of the camera's raw file, the preview of {size} pixels is used.", size=size)]
    return (
        [phrase("Of the pictures in the file, only the first is used.")] if _has_more_frames(opened) else []
    )


def _turn_as_stated(opened: Image.Image, preview: RawPreview) -> None:
    """Sets how a raw file's preview is to be turned, where it does not say so or was turned already."""
    exif = opened.getexif()
    stated = exif.get(ExifTags.Base.Orientation, preview.orientation)
    is_upright = (opened.width - opened.height) * (preview.width - preview.height) > 0
    exif[ExifTags.Base.Orientation] = 1 if stated in SIDEWAYS and is_upright else stated


def _has_more_frames(image: Image.Image) -> bool:
    if image.format == "MPO":  # phones add a second, derived picture to a photo; it is not an animation
        return False
    first = image.tell()  # of a HEIC the one that it calls its primary picture
    try:
        # Not `n_frames`: counting the pages of a TIFF takes time quadratic in their number, and of a GIF all
        # frames are read.
        return bool(getattr(image, "is_animated", False))
    except _DECODER_ERRORS:
        return False
    finally:
        if image.tell() != first:
            image.seek(first)


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
        notes.append(phrase("How the picture is turned cannot be read; it is left as it is."))
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


def _refusal(data: bytes) -> BadImage:
    """Says why nothing could open a file."""
    if is_camera_raw(data):
        said = phrase("The camera's raw file holds no preview that can be read; save the picture as JPEG.")
        return BadImage("image_no_preview", said)
    begins_as = picture_format(data)
    if begins_as:
        said = phrase(
            "The file begins as {format} does, but cannot be read: it is damaged.", format=begins_as
        )
        return BadImage("image_unreadable", said)
    if is_video(data):
        return BadImage("image_video", VIDEO)
    looks = looks_like(data)
    if not looks:
        return BadImage(
            "image_unsupported",
            phrase(
                "Not a supported image; JPEG, PNG, WebP, HEIC, AVIF, GIF, BMP, TIFF and cameras' raw files are."
            ),
        )
    return BadImage(
        "image_unsupported",
        phrase(
            "Not a supported image (looks like {looks}); JPEG, PNG, WebP, HEIC, AVIF, GIF, BMP, TIFF and "
            "cameras' raw files are.",
            looks=looks,
        ),
    )


def _unreadable(error: BaseException) -> BadImage:
    return BadImage("image_unreadable", phrase("The picture cannot be read ({why}).", why=_reason(error)))


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:120] if text else type(error).__name__
