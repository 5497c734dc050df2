"""What programs write about a picture into its file: EXIF, IPTC and XMP, as bytes to save it with."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from html import escape

from PIL import ExifTags, Image
from PIL.TiffImagePlugin import IFDRational

_SHORT, _LONG, _UTF8 = 3, 4, b"\x1b%G"


def exif_bytes(
    *,
    orientation: int = 1,
    taken: str | None = None,
    offset: str | None = None,
    make: str | None = None,
    model: str | None = None,
    place: tuple[float, float] | None = None,
    description: str | bytes | None = None,
) -> bytes:
    """`taken` is as EXIF writes it; `place` is latitude and longitude in degrees."""
    exif = Image.Exif()
    base = ExifTags.Base
    texts = {base.Make: make, base.Model: model, base.ImageDescription: description}
    for tag, text in texts.items():
        if text is not None:
            exif[tag] = text
    exif[base.Orientation] = orientation
    photo = {base.DateTimeOriginal: taken, base.OffsetTimeOriginal: offset}
    exif.get_ifd(ExifTags.IFD.Exif).update({tag: text for tag, text in photo.items() if text is not None})
    if place is not None:
        latitude, longitude = place
        gps = ExifTags.GPS
        exif.get_ifd(ExifTags.IFD.GPSInfo).update(
            {
                gps.GPSLatitudeRef: "S" if latitude < 0 else "N",
                gps.GPSLatitude: _sexagesimal(latitude),
                gps.GPSLongitudeRef: "W" if longitude < 0 else "E",
                gps.GPSLongitude: _sexagesimal(longitude),
            }
        )
    return exif.tobytes()


def xmp_packet(
    *,
    description: Mapping[str, str] | None = None,
    title: Mapping[str, str] | None = None,
    keywords: Sequence[str] = (),
    attributes: Mapping[str, str] | None = None,
) -> bytes:
    """Texts are by language; `attributes` are properties such as `exif:GPSLatitude`."""
    inside = "".join(
        f"<dc:{name}><rdf:Alt>"
        + "".join(f'<rdf:li xml:lang="{tag}">{escape(text)}</rdf:li>' for tag, text in texts.items())
        + f"</rdf:Alt></dc:{name}>"
        for name, texts in (("description", description or {}), ("title", title or {}))
        if texts
    )
    if keywords:
        items = "".join(f"<rdf:li>{escape(word)}</rdf:li>" for word in keywords)
        inside += f"<dc:subject><rdf:Bag>{items}</rdf:Bag></dc:subject>"
    stated = "".join(f' {name}="{escape(value)}"' for name, value in (attributes or {}).items())
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/">'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:exif="http://ns.adobe.com/exif/1.0/" '
        'xmlns:tiff="http://ns.adobe.com/tiff/1.0/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"'
        f'{stated}>{inside}</rdf:Description></rdf:RDF></x:xmpmeta><?xpacket end="w"?>'
    ).encode()


def iptc_records(
    *,
    caption: str | bytes | None = None,
    title: str | None = None,
    keywords: Sequence[str] = (),
    date: str | None = None,
    time: str | None = None,
    charset: bytes | None = _UTF8,
) -> bytes:
    """IIM records; texts are UTF-8, bytes are written as they are."""
    texts = [(120, caption), (5, title), (55, date), (60, time), *((25, word) for word in keywords)]
    found = [(1, 90, charset)] if charset else []
    for number, text in texts:
        if text is not None:
            found.append((2, number, text.encode() if isinstance(text, str) else text))
    return b"".join(
        b"\x1c" + struct.pack(">BBH", record, number, len(data)) + data for record, number, data in found
    )


def photoshop_segment(records: bytes) -> bytes:
    """The segment of a JPEG (`extra` of Pillow's save) that carries IPTC records."""
    block = b"8BIM\x04\x04\0\0" + struct.pack(">I", len(records)) + records + bytes(len(records) % 2)
    body = b"Photoshop 3.0\0" + block
    return b"\xff\xed" + struct.pack(">H", len(body) + 2) + body


def _sexagesimal(degrees: float) -> tuple[IFDRational, IFDRational, IFDRational]:
    seconds = round(abs(degrees) * 3600 * 1000)
    whole, rest = divmod(seconds, 3600 * 1000)
    minutes, rest = divmod(rest, 60 * 1000)
    return IFDRational(whole), IFDRational(minutes), IFDRational(rest, 1000)
