from __future__ import annotations

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, ImageCms

from ingest.errors import BadImage
from ingest.images import decode
from tests.ingest.icc_profiles import ADOBE_RGB, DISPLAY_P3, SRGB, cmyk_profile, grey_profile, rgb_profile
from tests.ingest.material import encoded

_SRGB = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB"))
_PROFILES = {"RGB": rgb_profile(DISPLAY_P3), "L": grey_profile(1.0), "CMYK": cmyk_profile()}


def _gradients() -> Image.Image:
    """Soft colours, which every profile here has: 40 to 200 of 255 each."""
    bands = [
        Image.linear_gradient("L").rotate(turn).point(lambda level: 40 + level * 5 // 8)
        for turn in (0, 90, 180)
    ]
    return Image.merge("RGB", bands)


def _difference(one: Image.Image, other: Image.Image) -> float:
    return float(np.abs(np.asarray(one, dtype=int) - np.asarray(other, dtype=int)).mean())


@pytest.mark.parametrize("format_name", ["JPEG", "PNG", "WEBP", "TIFF", "HEIF", "AVIF"])
@pytest.mark.parametrize("primaries", [DISPLAY_P3, ADOBE_RGB], ids=["Display P3", "Adobe RGB"])
def test_a_picture_with_a_wide_profile_shows_the_colours_that_were_meant(
    format_name: str, primaries: tuple[tuple[float, ...], ...]
) -> None:
    profile = rgb_profile(primaries)
    meant = _gradients()
    wide = ImageCms.profileToProfile(meant, _SRGB, io.BytesIO(profile))
    assert wide is not None
    options = {"quality": 95} if format_name in ("JPEG", "WEBP", "HEIF", "AVIF") else {}
    decoded = decode(encoded(wide, format_name, icc_profile=profile, **options))
    assert decoded.notes == ()
    assert _difference(decoded.image, meant) < 2
    assert _difference(decode(encoded(wide, format_name, icc_profile=b"", **options)).image, meant) > 4


def test_transparent_and_palette_pictures_keep_to_their_profile() -> None:
    flat = Image.new("RGB", (32, 32), (60, 160, 90))
    flat.paste((200, 80, 60), (16, 0, 32, 32))
    meant = decode(encoded(flat, icc_profile=_PROFILES["RGB"])).image
    for mode in ("RGBA", "P"):
        other = flat.convert("P", palette=Image.Palette.ADAPTIVE) if mode == "P" else flat.convert(mode)
        assert decode(encoded(other, icc_profile=_PROFILES["RGB"])).image.tobytes() == meant.tobytes()


def test_grey_is_shown_as_its_profile_says() -> None:
    grey = Image.new("L", (32, 32), 46)
    grey.paste(128, (16, 0, 32, 32))
    for image in (grey, Image.merge("LA", [grey, Image.new("L", grey.size, 255)])):
        decoded = decode(encoded(image, icc_profile=grey_profile(1.0)))
        assert decoded.image.getpixel((2, 2)) == (
            118,
            118,
            118,
        )  # 255 * (1.055 * (46 / 255) ** (1 / 2.4) - 0.055)
        assert decoded.notes == ()


@pytest.mark.parametrize("format_name", ["JPEG", "TIFF"])
def test_inks_are_shown_as_their_profile_says(format_name: str) -> None:
    inks = Image.new("CMYK", (64, 64), (0, 0, 0, 0))
    inks.paste((255, 255, 255, 0), (32, 0, 64, 64))
    plain = decode(encoded(inks, format_name))
    shown = decode(encoded(inks, format_name, icc_profile=cmyk_profile()))
    assert shown.image.getpixel((4, 4)) == plain.image.getpixel((4, 4)) == (255, 255, 255)
    assert plain.image.getpixel((50, 4)) == (0, 0, 0)
    assert shown.image.getpixel((50, 4)) == pytest.approx((117, 117, 117), abs=2)  # L* of 126 of 255
    assert shown.notes == ()


def test_one_of_the_many_profiles_of_srgb_changes_no_bit() -> None:
    image = Image.merge("RGB", [Image.effect_noise((64, 64), 80) for _ in range(3)])
    plain = decode(encoded(image))
    assert decode(encoded(image, icc_profile=_SRGB.tobytes())).image.tobytes() == plain.image.tobytes()
    assert decode(encoded(image, icc_profile=rgb_profile(SRGB))).image.tobytes() != plain.image.tobytes()


@pytest.mark.parametrize(
    ("mode", "profile"),
    [
        ("RGB", b"nonsense" * 40),
        ("RGB", _PROFILES["L"]),
        ("RGB", _PROFILES["CMYK"]),
        ("CMYK", _PROFILES["RGB"]),
    ]
    + [("RGB", _PROFILES["RGB"][:300])],
    ids=["nonsense", "of grey", "of inks", "of light", "cut"],
)
def test_a_profile_that_cannot_be_used_costs_a_note_and_not_the_picture(mode: str, profile: bytes) -> None:
    image = _gradients().convert(mode)
    decoded = decode(encoded(image, "TIFF", icc_profile=profile))
    assert decoded.notes == ("Its colour profile cannot be used; its colours are taken for sRGB.",)
    assert decoded.image.tobytes() == decode(encoded(image, "TIFF")).image.tobytes()


def test_a_profile_that_makes_all_colours_one_is_not_believed() -> None:
    black = rgb_profile([(0, 0, 0)] * 3)
    assert decode(encoded(_gradients(), icc_profile=black)).notes != ()


@pytest.mark.parametrize("mode", ["RGB", "L", "CMYK"])
@settings(max_examples=150, deadline=None)
@given(
    damage=st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), min_size=1, max_size=12),
    cut=st.floats(0.3, 1),
)
def test_a_damaged_profile_costs_no_picture(mode: str, damage: list[tuple[float, int]], cut: float) -> None:
    profile = bytearray(_PROFILES[mode])
    for position, value in damage:
        profile[int(position * (len(profile) - 1))] = value
    image = _gradients().resize((32, 32)).convert(mode)
    try:
        decoded = decode(encoded(image, "TIFF", icc_profile=bytes(profile[: int(len(profile) * cut)])))
    except BadImage as error:
        pytest.fail(error.sentence)
    assert decoded.image.mode == "RGB"
