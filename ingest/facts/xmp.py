"""XMP: in the picture's own file, or in a sidecar beside it.

A packet is made to be found in a file of any format by what it begins with (XMP part 3, "packet scanning"), so one
search serves JPEG, HEIC, PNG and raw files alike. It is parsed without entities: a packet has no document type.
"""

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from ingest.facts.record import PictureFacts, camera_name, caption_of, moment, position, words_of

_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_DC = "{http://purl.org/dc/elements/1.1/}"
_EXIF = "{http://ns.adobe.com/exif/1.0/}"
_TIFF = "{http://ns.adobe.com/tiff/1.0/}"
_PHOTOSHOP = "{http://ns.adobe.com/photoshop/1.0/}"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_PACKETS = ((b"<x:xmpmeta", b"</x:xmpmeta>"), (b"<rdf:RDF", b"</rdf:RDF>"))
_MOST_BYTES = 1024**2
_PLACE = re.compile(r"(\d{1,3}),(\d{1,2}(?:\.\d+)?)(?:,(\d{1,2}(?:\.\d+)?))?\s*([NSEW])", re.IGNORECASE)


def xmp_facts(data: bytes) -> PictureFacts:
    """Returns what the first XMP packet in a file says; nothing where there is none that can be read."""
    root = _parsed(data)
    if root is None:
        return PictureFacts()
    plain = _properties(root)
    captions = [
        caption_of(text, source, language)
        for source, name in (("XMP description", "description"), ("XMP title", "title"))
        for text, language in _items(root, name)
    ]
    taken = moment(plain.get(_EXIF + "DateTimeOriginal")) or moment(plain.get(_PHOTOSHOP + "DateCreated"))
    latitude, longitude = position(
        _degrees(plain.get(_EXIF + "GPSLatitude")), _degrees(plain.get(_EXIF + "GPSLongitude"))
    )
    return PictureFacts(
        taken=taken,
        camera=camera_name(plain.get(_TIFF + "Make"), plain.get(_TIFF + "Model")),
        latitude=latitude,
        longitude=longitude,
        captions=tuple(one for one in captions if one is not None),
        keywords=words_of(text for text, _ in _items(root, "subject")),
    )


def _parsed(data: bytes) -> ElementTree.Element | None:
    packet = _packet(data)
    if packet is None or b"<!" in packet.replace(b"<!--", b"").replace(b"<![CDATA[", b""):
        return None
    try:
        # As text: an encoding that the packet states is not its own word any more.
        return ElementTree.fromstring(packet.decode("utf-8", "replace"))
    except (ElementTree.ParseError, ValueError, RecursionError, MemoryError):
        return None


def _packet(data: bytes) -> bytes | None:
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) and len(data) <= 2 * _MOST_BYTES:  # a sidecar in UTF-16
        data = data.decode("utf-16", "replace").encode()
    for opening, closing in _PACKETS:
        start = data.find(opening)
        end = data.find(closing, start, start + _MOST_BYTES) if start >= 0 else -1
        if end >= 0:
            return data[start : end + len(closing)]
    return None


def _properties(root: ElementTree.Element) -> dict[str, str]:
    """Returns the properties that are one text, written as attributes or as elements."""
    found: dict[str, str] = {}
    for described in root.iter(_RDF + "Description"):
        for name, text in (*described.attrib.items(), *((one.tag, one.text or "") for one in described)):
            found.setdefault(name, text.strip())
    return found


def _items(root: ElementTree.Element, name: str) -> Iterator[tuple[str, str | None]]:
    """Yields the texts of a property of Dublin Core, each with its language where it states one."""
    for described in root.iter(_RDF + "Description"):
        if _DC + name in described.attrib:
            yield described.attrib[_DC + name], None
    for one in root.iter(_DC + name):
        items = list(one.iter(_RDF + "li"))
        for item in items or [one]:
            yield item.text or "", item.get(_LANGUAGE)


def _degrees(text: str | None) -> float | None:
    """Returns degrees of `48,8.25N` or `48,8,15N`."""
    found = _PLACE.fullmatch(text or "")
    if found is None:
        return None
    degrees = float(found[1]) + float(found[2]) / 60 + float(found[3] or 0) / 3600
    return -degrees if found[4].upper() in "SW" else degrees
