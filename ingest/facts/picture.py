"""The facts of one picture file, and of a sidecar beside it; no pixel is decoded."""

from ingest.camera_raw import is_camera_raw, preview_of
from ingest.errors import BadImage
from ingest.facts.exif import exif_facts, exif_of, exif_of_raw
from ingest.facts.iptc import iptc_facts
from ingest.facts.jpeg_xl import exif_and_xmp
from ingest.facts.record import PictureFacts, together
from ingest.facts.xmp import xmp_facts
from ingest.file_kinds import JPEG_XL, picture_format
from ingest.images import DECODER_ERRORS, open_picture

_OF_TIFFS = (b"II", b"MM")


def picture_facts(data: bytes) -> PictureFacts:
    """Returns what a picture's file says of it: of each fact what EXIF says, else XMP, else IPTC; of texts all.

    What is damaged says nothing, and does not silence the others.
    """
    try:
        if picture_format(data) == JPEG_XL:
            tiff, packet = exif_and_xmp(data)
            return together(exif_facts(exif_of(tiff)), xmp_facts(packet))
        exif, iptc = _of_raw(data) if is_camera_raw(data) else _of_picture(data)
    except (BadImage, *DECODER_ERRORS):
        exif = iptc = PictureFacts()
    return together(exif, xmp_facts(data), iptc)


def sidecar_facts(data: bytes) -> PictureFacts:
    """Returns what an `.xmp` file beside a picture says of it; `together(sidecar, picture)` makes one of both."""
    return xmp_facts(data)


def _of_raw(data: bytes) -> tuple[PictureFacts, PictureFacts]:
    if data.startswith(_OF_TIFFS) or data[4:8] == b"ftyp":
        return exif_facts(exif_of_raw(data)), PictureFacts()
    preview = preview_of(data)
    return _of_picture(preview.data) if preview else (PictureFacts(), PictureFacts())


def _of_picture(data: bytes) -> tuple[PictureFacts, PictureFacts]:
    """Returns what EXIF and IPTC say."""
    with open_picture(data) as image:
        try:
            exif = exif_facts(exif_of(image.getexif()))
        except DECODER_ERRORS:
            exif = PictureFacts()
        return exif, iptc_facts(image)
