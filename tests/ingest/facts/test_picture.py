from __future__ import annotations

import random
import struct
import time
from typing import Any

import pytest
from PIL import Image, PngImagePlugin

from ingest.facts.picture import picture_facts, sidecar_facts
from ingest.facts.record import PictureFacts, WrittenCaption, camera_name, caption_of, moment, together
from ingest.images import FORMATS
from tests.ingest.material import encoded
from tests.ingest.metadata import exif_bytes, iptc_records, photoshop_segment, xmp_packet
from tests.ingest.raw_files import dng

EXIF: dict[str, Any] = {
    "taken": "2019:07:04 12:33:21",
    "offset": "+02:00",
    "make": "NIKON CORPORATION",
    "model": "NIKON D750",
    "place": (48.1375, -11.575),
    "description": "Zwei rote Boote",
}
XMP = xmp_packet(
    description={"x-default": "Two red boats", "en": "Two red boats", "fr-FR": "Deux bateaux rouges"},
    title={"x-default": "Harbour"},
    keywords=["boat", "sea"],
)
WRITTEN = PictureFacts(
    taken="2019-07-04T12:33:21+02:00",
    camera="NIKON D750",
    latitude=48.1375,
    longitude=-11.575,
    captions=(
        WrittenCaption("Zwei rote Boote", "EXIF description"),
        WrittenCaption("Two red boats", "XMP description", "en"),
        WrittenCaption("Deux bateaux rouges", "XMP description", "fr-FR"),
        WrittenCaption("Harbour", "XMP title"),
    ),
    keywords=("boat", "sea"),
)


def _image() -> Image.Image:
    return Image.effect_noise((64, 48), 80).convert("RGB")


def _options(format_name: str) -> dict[str, Any]:
    if format_name == "PNG":
        texts = PngImagePlugin.PngInfo()
        texts.add_itxt("XML:com.adobe.xmp", XMP.decode())
        return {"pnginfo": texts}
    if format_name == "TIFF":
        return {"tiffinfo": {700: XMP}}
    return {"xmp": XMP}


@pytest.mark.parametrize("format_name", [name for name in FORMATS if name not in ("GIF", "BMP")])
def test_what_is_written_into_a_picture_of_any_format_is_read(format_name: str) -> None:
    if format_name == "TIFF":
        exif = Image.Exif()
        exif.load(exif_bytes(**EXIF))
        exif[700] = XMP
        data = encoded(_image(), "TIFF", exif=exif)
    else:
        data = encoded(_image(), format_name, exif=exif_bytes(**EXIF), **_options(format_name))
    assert picture_facts(data) == WRITTEN


@pytest.mark.parametrize("charset", [None, b"\x1b%G"])
def test_iptc_records_are_read_in_the_letters_they_were_written_in(charset: bytes | None) -> None:
    records = iptc_records(
        caption="Ein Hügel",
        title="Hügel",
        keywords=["Öl", "öl", "Wasser"],
        date="20190704",
        time="123321+0200",
        charset=charset,
    )
    found = picture_facts(encoded(_image(), "JPEG", extra=photoshop_segment(records)))
    assert found == PictureFacts(
        taken="2019-07-04T12:33:21+02:00",
        captions=(WrittenCaption("Ein Hügel", "IPTC caption"), WrittenCaption("Hügel", "IPTC title")),
        keywords=("Öl", "Wasser"),
    )
    latin = iptc_records(caption="Ein Hügel".encode("cp1252"), charset=None)
    assert (
        picture_facts(encoded(_image(), "JPEG", extra=photoshop_segment(latin))).captions[0].text
        == "Ein Hügel"
    )
    tiff = encoded(_image(), "TIFF", tiffinfo={33723: records})
    assert picture_facts(tiff).captions == found.captions


def test_the_same_text_in_three_places_is_one_caption() -> None:
    data = encoded(
        _image(),
        "JPEG",
        exif=exif_bytes(description="A hill"),
        xmp=xmp_packet(description={"x-default": "A hill", "en-GB": "A hill"}),
        extra=photoshop_segment(iptc_records(caption="A hill")),
    )
    assert picture_facts(data).captions == (WrittenCaption("A hill", "EXIF description", "en-GB"),)


@pytest.mark.parametrize("order", [b"II", b"MM"])
def test_a_raw_file_tells_of_its_camera(order: bytes) -> None:
    data = dng(encoded(_image(), "JPEG"), preview_size=(64, 48), order=order, maker=b"Canon")
    assert picture_facts(data).camera == "Canon EOS Test"
    assert picture_facts(data + XMP).keywords == ("boat", "sea")


def test_makers_raw_files_that_are_no_tiff_tell_what_they_hold() -> None:
    olympus = (
        b"IIRO" + dng(encoded(_image(), "JPEG"), preview_size=(64, 48), maker=b"OLYMPUS IMAGING CORP.")[4:]
    )
    assert picture_facts(olympus).camera == "OLYMPUS EOS Test"
    jpeg = encoded(_image(), "JPEG", exif=exif_bytes(**EXIF))
    fuji = b"FUJIFILMCCD-RAW 0201FF389501X-T3".ljust(160, b"\0") + jpeg
    assert picture_facts(fuji).taken == "2019-07-04T12:33:21+02:00"
    canon = b"\0\0\0\x18ftypcrx \0\0\0\1crx isom"
    camera = exif_bytes(make="Canon", model="Canon EOS R5").removeprefix(b"Exif\0\0")
    date = _tiff_of_date(b"2020:01:02 03:04:05\0")
    for box, tiff in ((b"CMT1", camera), (b"CMT2", date), (b"CMT4", date)):
        canon += struct.pack(">I", len(tiff) + 8) + box + tiff
    found = picture_facts(canon)
    assert (found.camera, found.taken) == ("Canon EOS R5", "2020-01-02T03:04:05")


def _tiff_of_date(date: bytes) -> bytes:
    return b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHII", 0x9003, 2, len(date), 26) + bytes(4) + date


def test_a_sidecar_speaks_before_the_picture() -> None:
    sidecar = sidecar_facts(
        xmp_packet(
            description={"de": "Am Hafen"},
            keywords=["Boat", "harbour"],
            attributes={
                "exif:DateTimeOriginal": "2019-07-04T13:00:00+02:00",
                "exif:GPSLatitude": "48,8.25N",
                "exif:GPSLongitude": "11,34,30W",
                "tiff:Make": "Apple",
                "tiff:Model": "iPhone 13",
            },
        )
    )
    assert sidecar == PictureFacts(
        taken="2019-07-04T13:00:00+02:00",
        camera="Apple iPhone 13",
        latitude=48.1375,
        longitude=-11.575,
        captions=(WrittenCaption("Am Hafen", "XMP description", "de"),),
        keywords=("Boat", "harbour"),
    )
    both = together(sidecar, WRITTEN)
    assert both.taken == sidecar.taken
    assert [one.text for one in both.captions] == ["Am Hafen", *(one.text for one in WRITTEN.captions)]
    assert both.keywords == ("Boat", "harbour", "sea")


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_sidecar_in_any_unicode_is_read(codec: str) -> None:
    packet = xmp_packet(description={"de": "Grüße"}).decode()
    assert [one.text for one in sidecar_facts(packet.encode(codec)).captions] == ["Grüße"]


@pytest.mark.parametrize(
    "packet",
    [
        b'<x:xmpmeta><!DOCTYPE a [<!ENTITY b "c">]><rdf:RDF>&b;</rdf:RDF></x:xmpmeta>',
        b"<x:xmpmeta>" + b"<a>" * 100_000 + b"</x:xmpmeta>",
        b"<x:xmpmeta>" + b"<a>" * 50_000 + b"</a>" * 50_000 + b"</x:xmpmeta>",
        b"<x:xmpmeta>" + b"x" * 3_000_000 + b"</x:xmpmeta>",
        b"<x:xmpmeta>\xff\xfe\0\x01</x:xmpmeta>",
        b"<x:xmpmeta " * 100_000,
        b"\xff\xfe<\0x",
    ],
    ids=["entities", "never closed", "deep", "long", "no text", "many", "half a letter"],
)
def test_a_hostile_packet_says_nothing(packet: bytes) -> None:
    started = time.thread_time()
    assert sidecar_facts(packet) == PictureFacts()
    assert time.thread_time() - started < 2


@pytest.mark.parametrize(
    ("text", "offset", "found"),
    [
        ("2019:07:04 12:33:21", None, "2019-07-04T12:33:21"),
        ("2019:07:04 12:33:21\0", "-05:30", "2019-07-04T12:33:21-05:30"),
        ("2019:07:04 12:33:21", "somewhere", "2019-07-04T12:33:21"),
        ("2019-07-04T12:33:21.25Z", None, "2019-07-04T12:33:21+00:00"),
        ("2019-07-04T12:33", None, "2019-07-04T12:33:00"),
        ("2019-07-04", None, "2019-07-04"),
        ("2019-07", None, None),
        ("0000:00:00 00:00:00", None, None),
        ("    :  :     :  :  ", None, None),
        ("2019:02:30 12:00:00", None, None),
        ("1700:01:01 12:00:00", None, None),
        ("yesterday", None, None),
        (20190704, None, None),
    ],
)
def test_a_moment_is_local_time_and_no_zone_is_guessed(
    text: object, offset: object, found: str | None
) -> None:
    assert moment(text, offset) == found


@pytest.mark.parametrize(
    ("maker", "model", "found"),
    [
        ("Canon", "Canon EOS 5D", "Canon EOS 5D"),
        ("NIKON CORPORATION", "NIKON D750", "NIKON D750"),
        ("OLYMPUS IMAGING CORP.  ", "E-M10", "OLYMPUS E-M10"),
        ("SAMSUNG TECHWIN CO., LTD.", "NX300", "SAMSUNG TECHWIN NX300"),
        (
            "EASTMAN KODAK COMPANY",
            "KODAK DC280 ZOOM DIGITAL CAMERA",
            "EASTMAN KODAK KODAK DC280 ZOOM DIGITAL CAMERA",
        ),
        ("samsung", "SM-G991B", "samsung SM-G991B"),
        ("Apple", "iPhone 13\0\0", "Apple iPhone 13"),
        ("Leica Camera AG", "LEICA M10", "LEICA M10"),
        ("Sony", None, "Sony"),
        (None, "DC-TZ90", "DC-TZ90"),
        (None, None, None),
        ("", "\0", None),
        ("\x1b[31m", "\x07", None),
    ],
)
def test_a_camera_has_its_maker_once(maker: str | None, model: str | None, found: str | None) -> None:
    assert camera_name(maker, model) == found


@pytest.mark.parametrize(
    "text",
    [
        "OLYMPUS DIGITAL CAMERA         ",
        "SONY DSC",
        "<Digimax S500 / Kenox S500>",
        "Exif_JPEG_PICTURE",
        "hdr;rbt",
        "cof",
    ]
    + [
        "DCIM\\100MEDIA\\DJI_0001.JPG",
        "IMG_20190704_123321",
        "DSC04711",
        "Screenshot",
        "  ",
        "?!",
        "",
        "\0\0\0",
    ],
)
def test_what_cameras_write_is_no_caption(text: str) -> None:
    assert caption_of(text, "EXIF description") is None


@pytest.mark.parametrize(
    "text", ["Oma", "Camera shy", "A photo of Anna", "7 dwarfs", "P. Picasso's house", "海"]
)
def test_what_people_write_is_a_caption(text: str) -> None:
    found = caption_of(text, "EXIF description")
    assert found is not None
    assert found.text == text


def test_everything_is_bounded() -> None:
    packet = xmp_packet(
        description={f"en-x-{number}": f"{number} " + "a" * 3_000 for number in range(200)},
        keywords=[f"{number} " + "w" * 300 for number in range(500)],
    )
    found = sidecar_facts(packet)
    assert len(found.captions) <= 200
    found = together(found)
    assert len(found.captions) == 64
    assert max(len(one.text) for one in found.captions) == 2_000
    assert (len(found.keywords), max(map(len, found.keywords))) == (100, 100)


@pytest.mark.parametrize("place", [(0.0, 0.0), (91.0, 10.0), (10.0, 181.0)])
def test_an_impossible_place_is_none(place: tuple[float, float]) -> None:
    found = picture_facts(encoded(_image(), "JPEG", exif=exif_bytes(place=place)))
    assert (found.latitude, found.longitude) == (None, None)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "format_name", [name for name in FORMATS if name not in ("GIF", "BMP", "TIFF")] + ["DNG"]
)
def test_damaged_files_say_less_and_raise_nothing(format_name: str) -> None:
    base = encoded(
        _image(),
        "JPEG",
        exif=exif_bytes(**EXIF),
        xmp=XMP,
        extra=photoshop_segment(iptc_records(caption="A hill")),
    )
    if format_name == "DNG":
        base = dng(base, preview_size=(64, 48))
    elif format_name != "JPEG":
        base = encoded(_image(), format_name, exif=exif_bytes(**EXIF), **_options(format_name))
    choices = random.Random(1)
    told = 0
    for _ in range(400):
        data = bytearray(base)
        for _ in range(choices.randint(1, 6)):
            data[choices.randrange(min(len(data), 3_000))] = choices.choice((0, 255, choices.randrange(256)))
        cut = choices.choice((len(data), len(data), choices.randrange(len(data))))
        found = picture_facts(bytes(data[:cut]))
        told += found != PictureFacts()
        assert len(found.captions) <= 64
    assert told > 5
