"""Decodes pictures for `ingest.decoding` in a process of its own, whose memory and processor time have limits.

Requests come on standard input and answers go to standard output: each the lengths of two parts and then the parts,
JSON and bytes. Whoever takes the process over has words and pixels to say, which are looked at before anything is built
of them, and nothing that is run. It can write no file, and on Linux, where the system lets it, it has no network. It is
the same user's process on the same file system all the same, and reads what that user may read.
"""

from __future__ import annotations

import ctypes
import json
import resource
import struct
import sys
from dataclasses import asdict, replace
from typing import IO, TYPE_CHECKING, Any

from PIL import Image

from ingest.errors import BadImage
from ingest.images import FULL_PIXELS, DecodedImage, decode, times_smaller
from ingest.limits import Limits
from ingest.sentence import PLACE, from_stored, to_stored

if TYPE_CHECKING:
    from ingest.facts.record import PictureFacts

MEMORY_BYTES = 2 << 30
PROCESSOR_SECONDS = 20
SHORTER_SIDE = 64
"""Pixels that the shorter side of a picture keeps that comes smaller; a sketch needs half of them."""
PICTURES = 500
"""How many of them one process decodes."""
_OWN_USER, _OWN_NETWORK = 0x1000_0000, 0x4000_0000  # CLONE_NEWUSER and CLONE_NEWNET of Linux
_LENGTHS = struct.Struct("<qq")
_MOST_SAID, _MOST_BYTES = 2 << 20, 1 << 30  # captions in a file may be 64 of 2,000 characters
_MOST_PIXELS = 2 * FULL_PIXELS  # of an answer: a line of pixels does not become thinner by being shrunk
_MOST_PLACES = 16  # of values in its sentences; each may hold a sentence with as many
_LONGEST, _LONGEST_NAME, _MOST_NOTES = 1000, 40, 16


def decoded(data: bytes, limits: Limits, largest: int, *, with_facts: bool) -> DecodedImage:
    """Decodes a picture, and shrinks it where it is twice as large as anybody looks at; see `decode_apart`."""
    found = decode(data, limits, side=largest, shorter=SHORTER_SIDE if largest else 0)
    if with_facts:
        from ingest.facts.picture import picture_facts  # which loads tables of languages

        found = replace(found, facts=picture_facts(data))
    times = int(times_smaller(found.image.size, largest, SHORTER_SIDE)) if largest else 1
    return replace(found, image=found.image.reduce(times)) if times > 1 else found


def ask(pipe: IO[bytes], data: bytes, limits: Limits, largest: int, *, with_facts: bool) -> None:
    """Asks for a picture."""
    _send(pipe, {"limits": asdict(limits), "largest": largest, "with_facts": with_facts}, data)


def answer(pipe: IO[bytes]) -> DecodedImage | BadImage | None:
    """Reads what became of the picture that was asked for; None where no sound answer came."""
    try:
        said, pixels = _receive(pipe, 3 * _MOST_PIXELS) or ({}, b"")
        written = said.pop("facts", None)
        if len(PLACE.findall(json.dumps(said, ensure_ascii=False))) > _MOST_PLACES:
            return None
        if "refused" in said:
            return BadImage(_text(said["code"], _LONGEST_NAME), _text(from_stored(said["refused"]), _LONGEST))
        width, height = map(_side, said["size"])
        if len(pixels) != 3 * width * height or len(said["notes"]) > _MOST_NOTES:
            return None
        notes = tuple(_text(from_stored(one), _LONGEST) for one in said["notes"])
        kind = _text(said["format"], _LONGEST_NAME)
        image = Image.frombytes("RGB", (width, height), pixels)
        return DecodedImage(image, _side(said["width"]), _side(said["height"]), kind, notes, _facts(written))
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError, MemoryError):
        return None


def _facts(said: dict[str, Any] | None) -> PictureFacts | None:
    if said is None:
        return None
    from ingest.facts.record import facts_from

    return facts_from(said)


def _side(said: object) -> int:
    if type(said) is not int or not 0 < said < 1 << 31:
        raise ValueError(said)
    return said


def _text(said: object, longest: int) -> str:
    if not isinstance(said, str) or len(said) > longest:
        raise ValueError("no text, or a long one")
    return said


def _send(pipe: IO[bytes], said: dict[str, Any], data: bytes = b"") -> None:
    words = json.dumps(said).encode()
    pipe.write(_LENGTHS.pack(len(words), len(data)))
    pipe.write(words)
    pipe.write(data)
    pipe.flush()


def _receive(pipe: IO[bytes], most: int = _MOST_BYTES) -> tuple[dict[str, Any], bytes] | None:
    head = pipe.read(_LENGTHS.size)
    if len(head) < _LENGTHS.size:
        return None
    words, more = _LENGTHS.unpack(head)
    if not (0 <= words <= _MOST_SAID and 0 <= more <= most):
        return None
    said, data = pipe.read(words), pipe.read(more)
    return (json.loads(said), data) if len(data) == more else None


def main() -> None:
    """Decodes until nothing more comes."""
    hard = _confine(int(sys.argv[1]))
    while (asked := _receive(sys.stdin.buffer)) is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        so_far = int(used.ru_utime + used.ru_stime)
        resource.setrlimit(resource.RLIMIT_CPU, (min(so_far + 1 + PROCESSOR_SECONDS, hard), hard))
        said, data = asked
        try:
            found = decoded(data, Limits(**said["limits"]), said["largest"], with_facts=said["with_facts"])
        except BadImage as error:
            _send(sys.stdout.buffer, {"refused": to_stored(error.sentence), "code": error.code})
            continue
        facts = {"size": found.image.size, "width": found.width, "height": found.height}
        facts |= {"format": found.format, "notes": to_stored(list(found.notes))}
        facts |= {"facts": found.facts and asdict(found.facts)}
        _send(sys.stdout.buffer, facts, found.image.tobytes())


def _confine(memory: int) -> int:
    """Gives up what no decoder needs; returns the seconds of a processor that can be had in all."""
    if sys.platform == "linux":
        ctypes.CDLL(None).unshare(_OWN_USER | _OWN_NETWORK)  # which a system may keep to its administrator
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    seconds = PICTURES * (1 + PROCESSOR_SECONDS)
    hard = seconds if hard == resource.RLIM_INFINITY else min(seconds, hard)
    for kind, most in (
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_CPU, hard),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(kind, (most, most))
    return hard


if __name__ == "__main__":
    main()
