from __future__ import annotations

import io

import pytest
import rawpy
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from ingest.camera_raw import is_camera_raw
from ingest.errors import BadImage
from ingest.images import decode
from tests.ingest.material import encoded
from tests.ingest.raw_files import dng


def _shown(*, white: str = "right", size: tuple[int, int] = (320, 240)) -> Image.Image:
    image = Image.new("RGB", size, "black")
    width, height = size
    image.paste("white", {"right": (width // 2, 0), "bottom": (0, height // 2)}[white] + size)
    return image


def _brightest_side(image: Image.Image) -> str:
    width, height = image.size
    sides = {
        "left": (0, 0, width // 4, height),
        "right": (width - width // 4, 0, width, height),
        "top": (0, 0, width, height // 4),
        "bottom": (0, height - height // 4, width, height),
    }
    return max(sides, key=lambda side: sum(image.crop(sides[side]).convert("L").resize((8, 8)).tobytes()))


@pytest.mark.parametrize("order", [b"II", b"MM"])
@pytest.mark.parametrize(("orientation", "white"), [(1, "right"), (3, "left"), (6, "bottom"), (8, "top")])
def test_a_raw_file_is_shown_by_its_preview_turned_as_the_camera_was(
    order: bytes, orientation: int, white: str
) -> None:
    data = dng(
        encoded(_shown(), "JPEG"),
        preview_size=(320, 240),
        sensor=(640, 480),
        orientation=orientation,
        order=order,
    )
    decoded = decode(data)
    is_turned = orientation > 4
    assert decoded.format == "RAW"
    assert decoded.image.size == ((240, 320) if is_turned else (320, 240))
    assert (decoded.width, decoded.height) == ((480, 640) if is_turned else (640, 480))
    assert _brightest_side(decoded.image) == white
    assert "preview of 320x240 pixels" in decoded.notes[0]


def test_a_preview_that_was_turned_already_is_left_as_it_is() -> None:
    upright = _shown(size=(240, 320), white="bottom")
    data = dng(encoded(upright, "JPEG"), preview_size=upright.size, sensor=(640, 480), orientation=6)
    decoded = decode(data)
    assert decoded.image.size == (240, 320)
    assert (decoded.width, decoded.height) == (480, 640)
    assert _brightest_side(decoded.image) == "bottom"


def test_a_preview_that_says_how_it_is_turned_is_believed() -> None:
    exif = Image.Exif()
    exif[0x0112] = 3
    data = dng(encoded(_shown(), "JPEG", exif=exif), preview_size=(320, 240), orientation=1)
    assert _brightest_side(decode(data).image) == "left"


def test_the_largest_preview_is_taken_and_tiles_of_a_sensor_are_none() -> None:
    small, large, tile = (
        encoded(Image.effect_noise(size, 90), "JPEG") for size in ((160, 120), (320, 240), (512, 512))
    )
    data = dng(small, preview_size=(160, 120)) + large
    assert decode(data).image.size == (320, 240)
    assert decode(data + 3 * tile).image.size == (320, 240)


def test_libraw_finds_the_same_preview() -> None:
    preview = encoded(_shown(), "JPEG")
    with rawpy.imread(io.BytesIO(dng(preview, preview_size=(320, 240), orientation=6))) as raw:
        found = raw.extract_thumb().data
        assert raw.sizes.flip == 6
    assert isinstance(found, bytes)
    assert Image.open(io.BytesIO(found)).tobytes() == Image.open(io.BytesIO(preview)).tobytes()


def test_makers_files_that_are_no_tiff_are_read_by_their_preview() -> None:
    preview = encoded(_shown(), "JPEG")
    turned = dng(b"", preview_size=(1, 1), orientation=8)[:400]
    canon = b"\0\0\0\x18ftypcrx \0\0\0\1crx isom" + b"\0\0\1\x98CMT1" + turned + preview
    decoded = decode(canon)
    assert (decoded.format, decoded.image.size) == ("RAW", (240, 320))
    assert _brightest_side(decoded.image) == "top"
    fuji = b"FUJIFILMCCD-RAW 0201FF389501X-T3".ljust(160, b"\0") + preview
    assert decode(fuji).image.size == (320, 240)


def test_a_raw_file_without_a_preview_is_refused_with_advice() -> None:
    with pytest.raises(BadImage, match="save the picture as JPEG") as caught:
        decode(dng(b"", preview_size=(64, 48), has_preview=False))
    assert caught.value.code == "image_no_preview"


def test_a_preview_of_bare_pixels_is_read() -> None:
    image = _shown(size=(64, 48))
    decoded = decode(dng(image.tobytes(), preview_size=(64, 48), is_bitmap=True, orientation=6))
    assert decoded.image.size == (48, 64)
    assert _brightest_side(decoded.image) == "bottom"


def test_a_plain_tiff_is_no_raw_file() -> None:
    for options in ({}, {"compression": "jpeg"}, {"compression": "tiff_lzw"}):
        data = encoded(_shown(), "TIFF", **options)
        assert not is_camera_raw(data)
        assert decode(data).format == "TIFF"


@pytest.mark.filterwarnings("ignore")
@settings(max_examples=150, deadline=None)
@given(
    damage=st.lists(st.tuples(st.integers(0, 900), st.integers(0, 255)), min_size=1, max_size=12),
    cut=st.floats(0.05, 1),
    is_bitmap=st.booleans(),
)
def test_a_damaged_raw_file_is_decoded_or_refused_and_nothing_else(
    damage: list[tuple[int, int]], cut: float, is_bitmap: bool
) -> None:
    image = Image.effect_noise((64, 48), 90).convert("RGB")
    preview = image.tobytes() if is_bitmap else encoded(image, "JPEG")
    data = bytearray(dng(preview, preview_size=(64, 48), is_bitmap=is_bitmap))
    for position, value in damage:
        data[position] = value
    try:
        mode = decode(bytes(data[: int(len(data) * cut)])).image.mode
    except BadImage:
        return
    assert mode == "RGB"
