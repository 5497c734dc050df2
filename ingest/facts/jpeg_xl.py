"""What stands beside the pixels of a JPEG XL: its boxes of EXIF and XMP, which are compressed as a rule."""

import struct

import brotli

_EXIF, _XMP, _COMPRESSED = b"Exif", b"xml ", b"brob"
_MOST_BOXES, _MOST_BYTES = 64, 1024**2


def exif_and_xmp(data: bytes) -> tuple[bytes, bytes]:
    """Returns the TIFF that EXIF is, and the XMP packet; what there is not, or cannot be read, is empty."""
    found = {_EXIF: b"", _XMP: b""}
    at = 0
    for _ in range(_MOST_BOXES):
        head = data[at : at + 16]
        if len(head) < 8:
            break
        size, name = struct.unpack_from(">I4s", head)
        start = at + (16 if size == 1 else 8)
        if size == 1 and len(head) == 16:
            (size,) = struct.unpack_from(">Q", head, 8)
        end = at + size if size >= 8 else len(data)
        if name == _COMPRESSED and data[start : start + 4] in found:
            found[data[start : start + 4]] = _unpacked(data[start + 4 : end])
        elif name in found:
            found[name] = data[start:end]
        at = end
    exif = found[_EXIF]
    begins = 4 + struct.unpack_from(">I", exif)[0] if len(exif) >= 4 else 0
    return exif[begins:], found[_XMP]


def _unpacked(data: bytes) -> bytes:
    try:
        return bytes(brotli.Decompressor().process(data, output_buffer_limit=_MOST_BYTES))
    except brotli.error:
        return b""
