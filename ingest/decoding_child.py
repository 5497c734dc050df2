"""Decodes pictures for `ingest.decoding` in a process of its own, whose memory and processor time have limits.

Requests come on standard input and answers go to standard output: each the lengths of two parts and then the parts,
JSON and bytes. Whoever takes the process over has words and pixels to say, and nothing that is run.
"""

import json
import resource
import struct
import sys
from dataclasses import asdict, replace
from typing import IO, Any

from PIL import Image

from ingest.errors import BadImage
from ingest.images import DecodedImage, decode
from ingest.limits import Limits
from ingest.sentence import from_stored, to_stored

MEMORY_BYTES = 2 << 30
PROCESSOR_SECONDS = 20
_LENGTHS = struct.Struct("<qq")
_MOST_SAID, _MOST_BYTES = 64 * 1024, 1 << 30


def decoded(data: bytes, limits: Limits, largest: int) -> DecodedImage:
    """Decodes a picture, and shrinks it where it is twice as large as anybody looks at; see `decode_apart`."""
    found = decode(data, limits, side=largest)
    times = max(found.image.size) // largest if largest else 1
    return replace(found, image=found.image.reduce(times)) if times > 1 else found


def ask(pipe: IO[bytes], data: bytes, limits: Limits, largest: int) -> None:
    """Asks for a picture."""
    _send(pipe, {"limits": asdict(limits), "largest": largest}, data)


def answer(pipe: IO[bytes]) -> DecodedImage | BadImage | None:
    """Reads what became of the picture that was asked for; None where no sound answer came."""
    said, pixels = _receive(pipe) or ({}, b"")
    try:
        if "refused" in said:
            return BadImage(str(said["code"]), from_stored(said["refused"]))
        image = Image.frombytes("RGB", tuple(said["size"]), pixels)
        notes = tuple(from_stored(said["notes"]))
        return DecodedImage(image, int(said["width"]), int(said["height"]), str(said["format"]), notes)
    except (KeyError, TypeError, ValueError):
        return None


def _send(pipe: IO[bytes], said: dict[str, Any], data: bytes = b"") -> None:
    words = json.dumps(said).encode()
    pipe.write(_LENGTHS.pack(len(words), len(data)))
    pipe.write(words)
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> tuple[dict[str, Any], bytes] | None:
    head = pipe.read(_LENGTHS.size)
    if len(head) < _LENGTHS.size:
        return None
    words, more = _LENGTHS.unpack(head)
    if not (0 <= words <= _MOST_SAID and 0 <= more <= _MOST_BYTES):
        return None
    said, data = pipe.read(words), pipe.read(more)
    return (json.loads(said), data) if len(data) == more else None


def main() -> None:
    """Decodes until nothing more comes."""
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    while (asked := _receive(sys.stdin.buffer)) is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        so_far = int(used.ru_utime + used.ru_stime)
        resource.setrlimit(resource.RLIMIT_CPU, (so_far + 1 + PROCESSOR_SECONDS, hard))
        said, data = asked
        try:
            found = decoded(data, Limits(**said["limits"]), said["largest"])
        except BadImage as error:
            _send(sys.stdout.buffer, {"refused": to_stored(error.sentence), "code": error.code})
            continue
        facts = {"size": found.image.size, "width": found.width, "height": found.height}
        facts |= {"format": found.format, "notes": to_stored(list(found.notes))}
        _send(sys.stdout.buffer, facts, found.image.tobytes())


if __name__ == "__main__":
    main()
