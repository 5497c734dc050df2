"""Plain text: how it is decoded, and the .txt of the same name beside a picture, a caption a line."""

from collections.abc import Iterator

from ingest.limits import Limits
from ingest.readers.container import Format, Row, Skipped


def is_text(head: bytes) -> bool:
    """Returns whether a file that begins like this may be text."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    control = sum(byte < 32 and byte not in (9, 10, 12, 13) for byte in head)
    return control <= len(head) // 100


def decode_text(data: bytes) -> str:
    """Returns a text file's content; bytes that are neither UTF-8 nor marked UTF-16 become lone surrogates.

    So only the captions that hold them are refused.
    """
    try:
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            return data.decode("utf-16", "surrogateescape" if len(data) % 2 == 0 else "replace")
    except UnicodeDecodeError:
        pass
    return data.decode("utf-8-sig", "surrogateescape")


def _captions(name: str, data: bytes, picture: str, limits: Limits) -> Iterator[Row | Skipped]:
    lines = decode_text(data).splitlines()
    captions = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    for number, line in captions or [(1, "")]:
        yield Row(f"{name} line {number}", picture, line)


FORMATS = (Format(names=("txt",), suffixes=(".txt",), captions=_captions),)
