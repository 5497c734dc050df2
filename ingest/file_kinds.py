"""What a file is by its first bytes, whatever it is called."""

from ingest.sentence import phrase

VIDEO = phrase("This is a video, not a picture.")
JPEG_XL = "JPEG XL"
# Brands of ISO media files (`ftyp` boxes). Whatever else begins so is a video.
_HEIF = frozenset((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1"))
_AVIF = frozenset((b"avif", b"avis"))
_RAW = b"crx "  # Canon's CR3
_PICTURES = (
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG", "PNG"),
    (b"GIF8", "GIF"),
    (b"II*\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"\xff\x0a", JPEG_XL),
    (b"\0\0\0\x0cJXL \r\n\x87\n", JPEG_XL),
)
_VIDEOS = (
    b"\x1aE\xdf\xa3",  # Matroska and WebM
    b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",  # Windows Media
    b"FLV\x01",
    b"\0\0\x01\xba",  # MPEG program stream
    b"\0\0\x01\xb3",
    b"OggS",
)
_LOOKS_LIKE = (
    (b"%PDF", "a PDF"),
    (b"%!PS", "EPS or PostScript"),
    (b"\xc5\xd0\xd3\xc6", "EPS or PostScript"),
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"8BPS", "a Photoshop file"),
    (b"\0\0\0\x0cjP  \r\n\x87\n", "JPEG 2000"),
    (b"version https://git-lfs", "a git-LFS pointer: run `git lfs pull` first"),
)


def picture_format(head: bytes) -> str | None:
    """Returns the format of pictures that a file begins as, None when it begins as no picture."""
    for start, name in _PICTURES:
        if head.startswith(start):
            return name
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WebP"
    brand = _brand(head)
    return "HEIC" if brand in _HEIF else "AVIF" if brand in _AVIF else None


def is_video(head: bytes) -> bool:
    """Returns whether a file begins as a video does."""
    brand = _brand(head)
    if brand is not None:
        return brand not in _HEIF | _AVIF and brand != _RAW
    if head[4:8] in (b"moov", b"mdat", b"wide", b"free") or (
        head.startswith(b"RIFF") and head[8:12] == b"AVI "
    ):
        return True
    is_transport_stream = len(head) > 376 and head[0] == head[188] == head[376] == 0x47
    return is_transport_stream or head.startswith(_VIDEOS)


def looks_like(head: bytes) -> str:
    """Says what a file is that is no picture, empty when nobody can tell."""
    for start, name in _LOOKS_LIKE:
        if head.startswith(start):
            return name
    head = head[:1024].lstrip().lower()
    if b"<svg" in head:
        return "SVG"
    if head.startswith((b"<!doctype", b"<html", b"<head", b"<?xml", b"<script")):
        return phrase("HTML or XML")
    return phrase("text") if head.isascii() and head.decode("ascii").isprintable() else ""


def _brand(head: bytes) -> bytes | None:
    return head[8:12] if head[4:8] == b"ftyp" else None
