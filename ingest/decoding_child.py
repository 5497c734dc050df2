"""Decodes pictures for `ingest.decoding` in a process of its own, whose memory and processor time have limits.

Requests come on standard input and answers go to standard output: each a length of eight bytes and so many of pickle.
"""

import pickle
import resource
import struct
import sys
from dataclasses import replace
from typing import IO

from ingest.errors import BadImage
from ingest.images import DecodedImage, decode
from ingest.limits import Limits

MEMORY_BYTES = 2 << 30
PROCESSOR_SECONDS = 20
_LENGTH = struct.Struct("<q")


def decoded(data: bytes, limits: Limits, largest: int) -> DecodedImage:
    """Decodes a picture, and shrinks it where it is twice as large as anybody looks at; see `decode_apart`."""
    found = decode(data, limits, side=largest)
    times = max(found.image.size) // largest if largest else 1
    return replace(found, image=found.image.reduce(times)) if times > 1 else found


def send(pipe: IO[bytes], what: object) -> None:
    """Writes one message."""
    packed = pickle.dumps(what, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(_LENGTH.pack(len(packed)))
    pipe.write(packed)
    pipe.flush()


def receive(pipe: IO[bytes]) -> object:
    """Reads one message; None when whoever sends has ended."""
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    packed = pipe.read(_LENGTH.unpack(head)[0])
    return pickle.loads(packed) if len(packed) == _LENGTH.unpack(head)[0] else None


def main() -> None:
    """Decodes until nothing more comes."""
    most = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    while (asked := receive(sys.stdin.buffer)) is not None:
        used = resource.getrusage(resource.RUSAGE_SELF)
        so_far = int(used.ru_utime + used.ru_stime)
        resource.setrlimit(resource.RLIMIT_CPU, (so_far + 1 + PROCESSOR_SECONDS, hard))
        answer: object
        try:
            answer = decoded(*asked)  # type: ignore[misc]
        except BadImage as error:
            answer = error
        send(sys.stdout.buffer, answer)


if __name__ == "__main__":
    main()
