"""Picture bytes in, a safe upright RGB picture out.

Pillow's decoders accept more than they should and convert some modes wrongly; each rule here was measured
(`verify()` passes truncated files, 16 bits would clip to white, hidden colours under alpha would show).
"""

from __future__ import annotations

import io
import re
import struct
import threading
import warnings
import zlib
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pillow_heif
from PIL import ExifTags, Image, UnidentifiedImageError

from ingest.camera_raw import SIDEWAYS, RawPreview, is_camera_raw, preview_of
from ingest.colours import opaque, to_rgb
from ingest.errors import BadImage
from ingest.file_kinds import JPEG_XL, VIDEO, is_video, looks_like, picture_format
from ingest.limits import DEFAULT_LIMITS, Limits
from ingest.sentence import phrase

if TYPE_CHECKING:
    from ingest.facts.record import PictureFacts


def _formats() -> tuple[str, ...]:
    """Returns the formats that are opened; Pillow alone would open 43, EPS through Ghostscript included."""
    pillow_heif.register_heif_opener(thumbnails=False, depth_images=False, aux_images=False)
    known = ("JPEG", "PNG", "WEBP", "HEIF", "AVIF", "GIF", "BMP", "TIFF")
    try:
        import pylibjxl
    except ImportError:  # the extra `jxl` is not installed
        return known
    pylibjxl.register_pillow()
    return (*known, _JPEG_XL)


_JPEG_XL = "JXL"
FORMATS = _formats()
FULL_PIXELS = 40_000_000
"""Larger pictures are decoded smaller: nothing here looks at more, and 200 megapixels are 800 MB."""
EMBEDDED_SIDE = 672
"""Pixels that the shorter side of a picture keeps for an image tower, which looks at 224 to 512 of them."""
_LARGE_PIXELS = 16_000_000
_ALONE = threading.Lock()  # one picture of more pixels is decoded at a time: several take gigabytes
# How many times as much memory as others these decoders take; so much fewer pixels may a picture have.
_HEAVY = {"WEBP": 3, "AVIF": 2, "HEIF": 2, _JPEG_XL: 2}
# The limits say how large a picture may be; Pillow's own are lower.
Image.MAX_IMAGE_PIXELS = DEFAULT_LIMITS.image_pixels
# What is odd about a file is in the report, if it matters; a library has hundreds with odd EXIF.
warnings.filterwarnings("ignore", module=r"PIL\.")
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# Progressive pictures have some ten, in the picture itself and in small ones beside it.
_PASS, _MOST_PASSES = b"\xff\xda", 100
THUMBNAIL_SIDE = 256
THUMBNAIL_QUALITY = 82

# What damaged files were seen to raise from inside Pillow's plugins. Warnings are errors under test.
DECODER_ERRORS = (
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
    facts: PictureFacts | None = None  # what the file says of it, where that was asked for


def decode(data: bytes, limits: Limits = DEFAULT_LIMITS, *, side: int = 0, shorter: int = 0) -> DecodedImage:
    """Decodes one picture file; one of more than `FULL_PIXELS` comes in a half, a quarter or an eighth of its size.

    Args:
        data: the file.
        limits: what is refused.
        side: pixels of the longest side that somebody wants to see, for which less may be decoded; 0 for all.
        shorter: the same of the shortest side; with both, so much is decoded that both are long enough.

    Raises:
        BadImage: empty, too large, not a supported format, damaged, too small, too long or one flat colour.
    """
    if not data:
        raise BadImage("image_empty", phrase("The file is empty."))
    if len(data) > limits.image_bytes:
        raise BadImage("image_too_large", limits.too_large(len(data)))
    preview = preview_of(data)
    opened = open_picture(preview.data if preview else data, limits)
    try:
        _check_size(opened, limits)
        passes = _passes(opened, preview.data if preview else data)
        size = (preview.width, preview.height) if preview else opened.size
        source_format = "RAW" if preview else "JPEG" if opened.format == "MPO" else str(opened.format)
        notes = _notes(opened, preview)
        times = times_smaller(opened.size, side, shorter)
        pixels = _pixels(opened, times, is_held_whole=passes > 1)
        turned = _orientation(opened, preview, notes)
        profile = opened.info.get("icc_profile")
    finally:
        opened.close()
    rgb = _upright(pixels, profile, turned, notes)
    if not limits.allow_flat and _is_flat(rgb):
        raise BadImage(
            "image_flat", phrase("The picture is one flat colour: it has no content to search for.")
        )
    width, height = size[::-1] if turned in SIDEWAYS and not preview else size
    return DecodedImage(rgb, width, height, source_format, tuple(notes))


def thumbnail(image: Image.Image, side: int = THUMBNAIL_SIDE) -> bytes:
    """Returns a WebP of at most so many pixels a side without any metadata, from an RGB picture."""
    small = image.copy()
    small.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=3.0)
    small.info.clear()
    target = io.BytesIO()
    small.save(target, format="WEBP", quality=THUMBNAIL_QUALITY, method=2)
    return target.getvalue()


def open_picture(
    data: bytes, limits: Limits = DEFAULT_LIMITS, *, formats: tuple[str, ...] | None = None
) -> Image.Image:
    """Opens a picture file; what stands before its pixels is read, and they are not.

    Without `formats` it may have any that is known.

    Raises:
        BadImage: not a supported format, damaged, or far too many pixels.
    """
    try:
        return Image.open(io.BytesIO(data), formats=formats or FORMATS)
    except UnidentifiedImageError:
        raise _refusal(data) from None
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        pixels = re.search(r"\((\d+) pixels\)", str(error))
        raise _too_many_pixels(int(pixels[1]) if pixels else None, limits.image_pixels) from None
    except DECODER_ERRORS as error:
        raise _unreadable(error) from None


def _check_size(image: Image.Image, limits: Limits) -> None:
    width, height = image.size
    most = limits.image_pixels // _HEAVY.get(str(image.format), 1)
    if width * height > most:
        raise _too_many_pixels(width * height, most)
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


def _passes(image: Image.Image, data: bytes) -> int:
    """Returns in how many passes a JPEG is drawn, with those of small pictures beside it; 0 for other formats.

    One that is drawn over and over is refused: each pass goes through all of its pixels, and takes a few bytes.
    """
    passes = data.count(_PASS) if image.format in {"JPEG", "MPO"} else 0
    if passes > _MOST_PASSES:
        raise BadImage(
            "image_too_slow",
            phrase(
                "The picture is stored in {count} passes; at most {most} are read.",
                count=passes,
                most=_MOST_PASSES,
            ),
        )
    return passes


def _too_many_pixels(pixels: int | None, limit: int) -> BadImage:
    most = f"{limit / 1e6:.0f}"
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
        size = f"{opened.width}x{opened.height}"
        return [phrase("Of the camera's raw file, the preview of {size} pixels is used.", size=size)]
    if _has_more_frames(opened):
        return [phrase("Of the pictures in the file, only the first is used.")]
    return []


def _has_more_frames(image: Image.Image) -> bool:
    if image.format == "MPO":  # phones add a second, derived picture to a photo; it is not an animation
        return False
    first = image.tell()  # of a HEIC the one that it calls its primary picture
    try:
        # Not `n_frames`: counting the pages of a TIFF takes time quadratic in their number, and of a GIF all
        # frames are read.
        return bool(getattr(image, "is_animated", False))
    except DECODER_ERRORS:
        return False
    finally:
        if image.tell() != first:
            image.seek(first)


def times_smaller(size: tuple[int, int], side: int, shorter: int) -> float:
    """Returns how many times smaller a picture will do (see `decode`); 1 for as it is."""
    asked = (max(size), side), (min(size), shorter)
    return max(1, min((length / kept for length, kept in asked if kept), default=1))


def _pixels(opened: Image.Image, times: float, *, is_held_whole: bool) -> Image.Image:
    """Decodes an opened picture, so many times smaller if it can be; returns it opaque, and free of the file.

    `is_held_whole` says whether its decoder holds all of it, however small it comes out.
    """
    width, height = opened.size
    shrink = next((n for n in (1, 2, 4) if width * height <= n * n * FULL_PIXELS), 8)
    less = max(shrink, times)
    if less > 1:
        try:
            # JPEG alone can be decoded smaller.
            opened.draft(None, (max(1, int(width / less)), max(1, int(height / less))))
        except DECODER_ERRORS as error:
            raise _unreadable(error) from None
    held = width * height if is_held_whole else opened.width * opened.height
    with _ALONE if held > _LARGE_PIXELS else nullcontext():
        _load(opened)
        try:
            pixels = opaque(opened, 1 if opened.size != (width, height) else shrink)
            return pixels.copy() if pixels is opened else pixels
        except DECODER_ERRORS as error:
            raise _unconvertible(error) from None


def _load(opened: Image.Image) -> None:
    try:
        opened.load()
    except DECODER_ERRORS as error:
        if any(word in str(error).lower() for word in ("truncated", "not enough", "ends", "unexpected end")):
            raise BadImage(
                "image_truncated", phrase("The image data ends early: the file is incomplete.")
            ) from None
        raise _unreadable(error) from None


def _orientation(opened: Image.Image, preview: RawPreview | None, notes: list[str]) -> int:
    """Returns how a loaded picture is to be turned, as EXIF counts it."""
    if opened.format == _JPEG_XL:  # its decoder turns it, and leaves what EXIF said of it
        return 1
    try:
        stated = opened.getexif().get(ExifTags.Base.Orientation, preview.orientation if preview else 1)
    except DECODER_ERRORS:
        notes.append(phrase("How the picture is turned cannot be read; it is left as it is."))
        return 1
    # A camera may have turned the preview of its raw file already.
    is_upright = preview and (opened.width - opened.height) * (preview.width - preview.height) > 0
    return 1 if stated not in _TURNS or (stated in SIDEWAYS and is_upright) else int(stated)


def _upright(pixels: Image.Image, profile: bytes | None, orientation: int, notes: list[str]) -> Image.Image:
    """Returns an opaque picture as sRGB, turned, without metadata."""
    try:
        rgb = to_rgb(pixels, profile, notes)
    except DECODER_ERRORS as error:
        raise _unconvertible(error) from None
    if orientation in _TURNS:
        rgb = rgb.transpose(_TURNS[orientation])
    rgb.info.clear()
    return rgb


def _is_flat(rgb: Image.Image) -> bool:
    bands = cast(tuple[tuple[int, int], ...], rgb.getextrema())
    return all(low == high for low, high in bands)


def _refusal(data: bytes) -> BadImage:
    """Says why nothing could open a file."""
    if is_camera_raw(data):
        said = phrase("The camera's raw file holds no preview that can be read; save the picture as JPEG.")
        return BadImage("image_no_preview", said)
    begins_as = picture_format(data)
    if begins_as == JPEG_XL and _JPEG_XL not in FORMATS:
        said = phrase(
            "It is a JPEG XL file, and reading those needs one more package: {command}",
            command="pip install 'perennial-search[jxl]'",
        )
        return BadImage("image_needs_package", said)
    if begins_as:
        why = phrase("The file begins as {format} does, but cannot be read: it is damaged.", format=begins_as)
        return BadImage("image_unreadable", why)
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


def _unconvertible(error: BaseException) -> BadImage:
    return BadImage(
        "image_unreadable", phrase("The picture's colours cannot be converted ({why}).", why=_reason(error))
    )


def _unreadable(error: BaseException) -> BadImage:
    if isinstance(error, MemoryError):
        return too_heavy()
    return BadImage("image_unreadable", phrase("The picture cannot be read ({why}).", why=_reason(error)))


def too_heavy() -> BadImage:
    """Returns why a picture is refused whose decoder asks for more memory than its process may have."""
    return BadImage("image_too_heavy", phrase("Decoding the picture takes more memory than it may have."))


def _reason(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text[:120] if text else type(error).__name__
