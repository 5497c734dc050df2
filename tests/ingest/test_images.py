from __future__ import annotations

import io
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms, ImageOps

from ingest import colours, images
from ingest.errors import BadImage
from ingest.images import FORMATS, decode, thumbnail
from ingest.limits import Limits
from ingest.readers.names import READ_SUFFIXES
from tests.ingest.material import encoded, picture


def _halves(left: object, right: object, mode: str = "RGB", size: tuple[int, int] = (32, 32)) -> Image.Image:
    image = Image.new(mode, size, left)  # type: ignore[arg-type]
    image.paste(right, (size[0] // 2, 0, *size))  # type: ignore[arg-type]
    return image


def _colours(data: bytes) -> tuple[tuple[int, ...], tuple[int, ...]]:
    pixels = np.asarray(decode(data).image)
    return tuple(map(int, pixels[8, 8])), tuple(map(int, pixels[8, 24]))


def _png_header(width: int, height: int) -> bytes:
    def part(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    head = part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + part(b"IDAT", zlib.compress(b"\0")) + part(b"IEND", b"")


@pytest.mark.parametrize("format_name", FORMATS)
def test_each_allowed_format_is_decoded_to_rgb(format_name: str) -> None:
    decoded = decode(encoded(_halves("black", "white", size=(40, 20)), format_name))
    assert (decoded.image.mode, decoded.width, decoded.height, decoded.format) == ("RGB", 40, 20, format_name)
    assert (
        f".{decoded.format.lower()}" in READ_SUFFIXES
    )  # what is sent one by one is packed under such a name


@pytest.mark.parametrize(
    ("image", "left", "right"),
    [
        (_halves((255, 0, 0, 0), (0, 0, 255, 255), "RGBA"), (255, 255, 255), (0, 0, 255)),
        (_halves((0, 0), (100, 255), "LA"), (255, 255, 255), (100, 100, 100)),
        (_halves(0, 1, "1"), (0, 0, 0), (255, 255, 255)),
        (_halves(10, 200, "L"), (10, 10, 10), (200, 200, 200)),
        (_halves("red", "blue").convert("P"), (255, 0, 0), (0, 0, 255)),
    ],
    ids=["RGBA", "LA", "1", "L", "P"],
)
def test_modes_become_the_colours_a_viewer_shows(image: Image.Image, left: object, right: object) -> None:
    assert _colours(encoded(image)) == (left, right)


def test_palette_transparency_is_shown_on_white() -> None:
    image = _halves("red", "blue").convert("P", palette=Image.Palette.ADAPTIVE, colors=4)
    transparent = image.getpixel((0, 0))
    assert _colours(encoded(image, transparency=transparent))[0] == (255, 255, 255)


def test_cmyk_keeps_its_colours() -> None:
    left, right = _colours(encoded(_halves((0, 255, 255, 0), (255, 0, 255, 0), "CMYK"), "TIFF"))
    assert left == (255, 0, 0)
    assert right == (0, 255, 0)


def test_lab_keeps_its_colours() -> None:
    rgb = _halves((200, 40, 40), (40, 40, 200))
    lab = ImageCms.profileToProfile(
        rgb, ImageCms.createProfile("sRGB"), ImageCms.createProfile("LAB"), outputMode="LAB"
    )
    assert lab is not None
    found = _colours(encoded(lab, "TIFF"))
    assert np.abs(np.array(found) - [(200, 40, 40), (40, 40, 200)]).max() <= 6


@pytest.mark.parametrize("format_name", ["PNG", "TIFF"])
def test_sixteen_bit_grey_is_scaled_not_clipped(format_name: str) -> None:
    levels = np.zeros((32, 32), dtype=np.uint16)
    levels[:, 16:] = 32768
    assert _colours(encoded(Image.fromarray(levels), format_name)) == ((0, 0, 0), (127, 127, 127))


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_thirty_two_bit_pictures_are_refused(dtype: type) -> None:
    data = encoded(Image.fromarray(np.arange(1024).reshape(32, 32).astype(dtype)), "TIFF")
    with pytest.raises(BadImage) as caught:
        decode(data)
    assert caught.value.code == "image_depth"


@pytest.mark.parametrize("orientation", [1, 2, 3, 4, 5, 6, 7, 8, 99])
def test_exif_orientation_is_applied_and_nonsense_ignored(orientation: int) -> None:
    upright = _halves("black", "white", size=(40, 20))
    stored = {3: upright.rotate(180), 6: upright.rotate(90, expand=True), 8: upright.rotate(270, expand=True)}
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(stored.get(orientation, upright), "JPEG", exif=exif, quality=95)
    decoded = decode(data)
    if orientation in (1, 3, 6, 8, 99):
        assert decoded.image.size == (40, 20)
        assert decoded.image.getpixel((2, 10)) < (40, 40, 40)  # type: ignore[operator]
    elif orientation in (5, 7):
        assert decoded.image.size == (20, 40)


@pytest.mark.parametrize("format_name", ["HEIF", "AVIF", "PNG", "WEBP", "TIFF"])
@pytest.mark.parametrize("orientation", [3, 6, 8])
def test_a_picture_is_turned_once_in_every_format(format_name: str, orientation: int) -> None:
    upright = _halves("black", "white", size=(64, 32))
    degrees = {3: 180, 6: 90, 8: 270}[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    decoded = decode(encoded(upright.rotate(degrees, expand=True), format_name, exif=exif.tobytes()))
    assert (decoded.width, decoded.height) == (64, 32)
    assert max(decoded.image.getpixel((4, 16))) < 40  # type: ignore[arg-type]


def test_a_jpeg_that_became_a_jpeg_xl_is_turned_once() -> None:
    pylibjxl = pytest.importorskip("pylibjxl")
    exif = Image.Exif()
    exif[0x0112] = 6
    upright = _halves("black", "white", size=(64, 32))
    jpeg = encoded(upright.rotate(90, expand=True), "JPEG", exif=exif.tobytes())
    decoded = decode(pylibjxl.jpeg_to_jxl(jpeg))
    assert (decoded.format, decoded.width, decoded.height) == ("JXL", 64, 32)
    assert max(decoded.image.getpixel((4, 16))) < 40  # type: ignore[arg-type]


def test_a_jpeg_xl_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images, "FORMATS", tuple(name for name in FORMATS if name != "JXL"))
    with pytest.raises(BadImage, match=r"pip install 'perennial-search\[jxl\]'") as caught:
        decode(b"\xff\x0a\xfa\x1f\x01\x91\x08\x06")
    assert caught.value.code == "image_needs_package"


def test_of_a_heic_with_several_pictures_the_primary_one_is_used() -> None:
    first, second = _halves("black", "white"), _halves("white", "black")
    decoded = decode(encoded(first, "HEIF", save_all=True, append_images=[second], primary_index=1))
    assert np.asarray(decoded.image)[8, 8].min() > 200


def test_no_metadata_survives_in_picture_or_thumbnail() -> None:
    exif = Image.Exif()
    exif[0x010E] = "secret place"
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = encoded(_halves("black", "white"), "JPEG", exif=exif, icc_profile=profile)
    image = decode(data).image
    small = thumbnail(image)
    assert image.info == {}
    assert b"EXIF" not in small
    assert b"ICCP" not in small
    assert b"secret" not in small


def test_a_thumbnail_is_webp_of_at_most_256_pixels() -> None:
    with Image.open(io.BytesIO(thumbnail(Image.new("RGB", (1000, 500), "red")))) as small:
        assert (small.format, small.size) == ("WEBP", (256, 128))


def test_of_a_picture_that_is_shown_small_less_is_decoded() -> None:
    target = io.BytesIO()
    Image.effect_noise((1200, 900), 60).convert("RGB").save(target, "JPEG", exif=_turned(6))
    shown = decode(target.getvalue(), side=320)
    assert shown.image.size == (450, 600)
    assert (shown.width, shown.height) == (900, 1200)
    large = Image.open(io.BytesIO(thumbnail(shown.image, 320)))
    assert large.size == (240, 320)


def _turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


@pytest.mark.parametrize("format_name", ["GIF", "WEBP", "PNG", "TIFF", "AVIF", "HEIF"])
def test_of_several_frames_the_first_is_used_with_a_note(format_name: str) -> None:
    first, second = _halves("black", "white"), _halves("white", "black")
    decoded = decode(encoded(first, format_name, save_all=True, append_images=[second]))
    assert np.asarray(decoded.image)[8, 8].max() < 60
    assert "only the first" in decoded.notes[0]


def _tiff_of_pages(pages: int) -> bytes:
    """A TIFF whose pages all show the same 16 x 16 grey levels."""
    data = bytearray(b"II*\0" + bytes(4) + bytes(range(256)))
    link = 4
    for _ in range(pages):
        struct.pack_into("<I", data, link, len(data))
        # Width, height, bits, compression, photometric, offset, samples, rows and bytes of the one strip.
        values = {256: 16, 257: 16, 258: 8, 259: 1, 262: 1, 273: 8, 277: 1, 278: 16, 279: 256}
        entries = [struct.pack("<HHII", tag, 4, 1, value) for tag, value in values.items()]
        data += struct.pack("<H", len(entries)) + b"".join(entries)
        link = len(data)
        data += bytes(4)
    return bytes(data)


def test_pages_that_are_not_used_cost_nothing() -> None:
    def calls(data: bytes) -> int:
        """Python functions that decoding enters: a count, so that a busy machine changes nothing."""
        entered = 0

        def count(_: object, event: str, __: object) -> None:
            nonlocal entered
            entered += event == "call"

        before = sys.getprofile()
        sys.setprofile(count)
        try:
            decoded = decode(data)
        finally:
            sys.setprofile(before)
        assert "only the first" in decoded.notes[0]
        return entered

    few, many = _tiff_of_pages(20), _tiff_of_pages(2_000)  # the first 16 are looked at for a sensor's data
    decode(few)  # the first use of a plugin imports and sets up
    assert calls(many) < 1.5 * calls(few)


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
@pytest.mark.parametrize(
    ("data", "code", "words"),
    [
        (b"", "image_empty", "empty"),
        (b"<!DOCTYPE html><html></html>", "image_unsupported", "looks like HTML"),
        (b'<?xml version="1.0"?><svg xmlns="x"/>', "image_unsupported", "looks like SVG"),
        (b"%PDF-1.7 ...", "image_unsupported", "looks like a PDF"),
        (b"%!PS-Adobe-3.0 EPSF-3.0", "image_unsupported", "EPS"),
        (b"PK\x03\x04rest", "image_unsupported", "zip"),
        (b"just words", "image_unsupported", "looks like text"),
        (b"version https://git-lfs.github.com/spec/v1\noid", "image_unsupported", "git lfs pull"),
        (b"\0\0\0\x18ftypheic....", "image_unreadable", "begins as HEIC does"),
        (b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom", "image_video", "a video"),
        (b"\0\0\0\x14ftypqt  \0\0\0\0qt  ", "image_video", "a video"),
        (b"\x1aE\xdf\xa3\x01\0\0\0\0\0\0#B\x86", "image_video", "a video"),
        (b"RIFF\0\0\0\0AVI LIST", "image_video", "a video"),
        (3 * (b"\x47" + bytes(187)), "image_video", "a video"),
        (_png_header(133_000, 133_000), "image_too_many_pixels", "17,689 megapixels; the limit is 200"),
        (_png_header(30_000, 30_000), "image_too_many_pixels", "900 megapixels"),
        (_png_header(2**31 - 1, 1), "image_too_many_pixels", "limit is 200"),
        (_png_header(15_000, 15_000), "image_too_many_pixels", "225 megapixels"),
        (_png_header(1, 1), "image_too_small", "16 pixels"),
        (_png_header(16, 10_000), "image_too_long", "50:1"),
        (b"GIF89a\x10\0\x10\0\0\0\0;", "image_", ""),
        (encoded(Image.new("RGB", (32, 32), "red")), "image_flat", "flat colour"),
        (encoded(Image.effect_noise((64, 64), 90), "JPEG")[:1500], "image_truncated", "ends early"),
        (encoded(Image.effect_noise((64, 64), 90))[:1500], "image_truncated", "ends early"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_unusable_picture_is_refused_with_its_reason(data: bytes, code: str, words: str) -> None:
    with pytest.raises(BadImage) as caught:
        decode(data)
    assert caught.value.code.startswith(code)
    assert words in caught.value.sentence


def test_the_size_of_a_bomb_is_reported_even_where_warnings_are_errors() -> None:
    with pytest.raises(BadImage, match="484 megapixels"):
        decode(_png_header(22_000, 22_000))


def test_formats_whose_decoders_take_more_memory_may_have_fewer_pixels() -> None:
    data = encoded(_halves("black", "white", size=(100, 100)), "WEBP")
    assert decode(data, Limits(image_pixels=30_000)).width == 100
    with pytest.raises(BadImage, match="limit is 0 megapixels"):
        decode(data, Limits(image_pixels=29_999))


def _in_mode(rgb: Image.Image, mode: str) -> Image.Image:
    if mode == "I;16":
        return Image.fromarray(np.asarray(rgb.convert("L")).astype(np.uint16) * 257)
    return rgb.convert(mode)


@pytest.mark.parametrize(
    ("format_name", "mode"),
    [("JPEG", "RGB"), ("JPEG", "L"), ("JPEG", "CMYK"), ("TIFF", "CMYK")]
    + [("PNG", mode) for mode in ("RGB", "RGBA", "L", "LA", "P", "1", "I;16")],
)
def test_a_very_large_picture_is_decoded_smaller_and_its_own_size_is_told(
    monkeypatch: pytest.MonkeyPatch, format_name: str, mode: str
) -> None:
    rgb = Image.merge(
        "RGB", [Image.linear_gradient("L").rotate(turn).resize((230, 110)) for turn in (0, 90, 180)]
    )
    exif = Image.Exif()
    exif[0x0112] = 6
    data = encoded(_in_mode(rgb, mode), format_name, exif=exif.tobytes())
    whole = decode(data)
    monkeypatch.setattr(images, "FULL_PIXELS", 230 * 110 // 4)
    monkeypatch.setattr(colours, "_STRIP_PIXELS", 230 * 16)
    small = decode(data)
    assert (small.width, small.height) == (whole.width, whole.height) == (110, 230)
    assert small.image.size == (55, 115)
    expected = np.asarray(whole.image.resize((55, 115), Image.Resampling.BOX), dtype=float)
    assert np.abs(np.asarray(small.image) - expected).mean() < 2


_CHILD = """
import re, sys
from ingest.images import decode

def peak():  # not of the process that started this one, which ru_maxrss would be
    return int(re.findall(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[0])

data = sys.stdin.buffer.read()
before = peak()
decoded = decode(data)
print(decoded.width, decoded.height, *decoded.image.size, (peak() - before) // 1024)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("format_name", "most_megabytes"), [("JPEG", 100), ("PNG", 280)])
def test_a_phones_48_megapixels_take_bounded_memory(format_name: str, most_megabytes: int) -> None:
    image = Image.linear_gradient("L").resize((8064, 6048)).convert("RGB")  # 195 MB at 4 bytes a pixel
    data = encoded(image, format_name, **({"compress_level": 1} if format_name == "PNG" else {}))
    said = subprocess.run([sys.executable, "-c", _CHILD], input=data, capture_output=True, check=True).stdout
    *sizes, grown = map(int, said.split())
    assert sizes == [8064, 6048, 4032, 3024]
    assert 20 < grown < most_megabytes


def _as_before(data: bytes) -> Image.Image:
    """What was decoded before pictures were made smaller and their profiles were looked at: Pillow's own steps."""
    image: Image.Image = Image.open(io.BytesIO(data))
    image = image if image.format == "JXL" else ImageOps.exif_transpose(image)
    if image.mode.startswith("I;16"):
        return Image.fromarray((np.asarray(image, dtype=np.uint32) // 257).astype(np.uint8)).convert("RGB")
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        shown = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), shown).convert("RGB")
    return image.convert("RGB")


_MODES = {
    "JPEG": ["RGB", "L", "CMYK"],
    "PNG": ["RGB", "RGBA", "L", "LA", "P", "1", "I;16"],
    "WEBP": ["RGB", "RGBA"],
    "HEIF": ["RGB", "RGBA", "L", "I;16"],
    "AVIF": ["RGB", "RGBA"],
    "GIF": ["P", "RGBA"],
    "BMP": ["RGB", "L", "P", "1"],
    "TIFF": ["RGB", "RGBA", "L", "P", "1", "I;16", "CMYK"],
    "JXL": ["RGB", "RGBA", "L"],
}


@pytest.mark.parametrize(("format_name", "mode"), [(name, mode) for name in FORMATS for mode in _MODES[name]])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_picture_without_a_profile_is_decoded_as_ever_to_the_bit(
    format_name: str, mode: str, orientation: int
) -> None:
    image = _in_mode(Image.merge("RGB", [Image.effect_noise((61, 43), 80) for _ in range(3)]), mode)
    if mode in ("RGBA", "LA"):
        image.putalpha(Image.effect_noise((61, 43), 80))
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {} if format_name in ("GIF", "BMP") else {"exif": exif.tobytes()}
    data = encoded(image, format_name, **options)
    assert decode(data).image.tobytes() == _as_before(data).tobytes()


def test_a_file_beyond_the_byte_limit_is_not_decoded() -> None:
    with pytest.raises(BadImage, match="limit is 0 MB"):
        decode(picture(), Limits(image_bytes=10))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("format_name", FORMATS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    damage=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=12),
    cut=st.floats(0.3, 1),
)
def test_a_damaged_file_is_decoded_or_refused_and_nothing_else(
    format_name: str, damage: list[tuple[float, int]], cut: float
) -> None:
    data = bytearray(encoded(_halves("red", "blue"), format_name))
    for position, value in damage:
        data[int(position * (len(data) - 1))] = value
    try:
        mode = decode(bytes(data[: int(len(data) * cut)])).image.mode
    except BadImage:
        return
    assert mode == "RGB"
