"""What is kept of a picture when it is taken in, and several pictures looked at at once.

Decoders leave the interpreter free, so threads look at the next pictures while one is judged and stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ingest.decoding import at_once, decode_apart
from ingest.images import thumbnail
from ingest.limits import Limits
from ingest.pair import ImageId, image_id_of
from ingest.readers.container import Skipped
from ingest.sketch import sketch_of

if TYPE_CHECKING:
    from ingest.facts.record import PictureFacts

_SEEN_SIDE = (
    480  # pixels of the longest side: nearly two for each of a thumbnail, and nothing here looks at more
)
_BYTES_AHEAD = 64 * 1024**2  # of files that are read before their turn


@dataclass(frozen=True, slots=True)
class Look:
    """What is kept of a decoded picture."""

    width: int  # of the original, upright, in pixels
    height: int
    format: str  # as Pillow names it, or RAW
    notes: tuple[str, ...]  # sentences for its owner
    facts: PictureFacts | None  # what the file says of it
    sketch: bytes  # of `ingest.sketch`
    thumbnail: bytes  # WebP


class ReadPicture(NamedTuple):
    """A picture file that was read, or could not be."""

    name: str  # what the container calls it
    data: bytes | Skipped
    image_id: ImageId  # empty where it could not be read
    look: Future[Look] | None  # None where nobody wanted one; its result raises BadImage where there is none


def look_at(data: bytes, limits: Limits) -> Look:
    """Decodes a picture file and returns what is kept of it.

    Raises:
        BadImage: as `ingest.decoding.decode_apart`.
    """
    found = decode_apart(data, limits, largest=_SEEN_SIDE, with_facts=True)
    size = found.width, found.height
    return Look(*size, found.format, found.notes, found.facts, sketch_of(found.image), thumbnail(found.image))


def looked_at(
    pictures: Iterable[tuple[str, bytes | Skipped]], is_wanted: Callable[[ImageId], bool], limits: Limits
) -> Generator[ReadPicture]:
    """Yields pictures in their order; those that are wanted are looked at while the ones before are worked on."""
    coming: deque[ReadPicture] = deque()
    threads, ahead = at_once(), 0
    pool = ThreadPoolExecutor(threads, thread_name_prefix="decode")

    def read(name: str, data: bytes | Skipped) -> ReadPicture:
        if isinstance(data, Skipped):
            return ReadPicture(name, data, "", None)
        image_id = image_id_of(data)
        again = next((one.look for one in coming if one.image_id == image_id), None)
        if again is not None or not is_wanted(image_id):
            return ReadPicture(name, data, image_id, again)
        return ReadPicture(name, data, image_id, pool.submit(look_at, data, limits))

    try:
        for name, data in pictures:
            coming.append(read(name, data))
            ahead += _size(data)
            while coming and (len(coming) > 2 * threads or ahead > _BYTES_AHEAD):
                ahead -= _size(coming[0].data)
                yield coming.popleft()
        while coming:
            yield coming.popleft()
    finally:
        pool.shutdown(cancel_futures=bool(coming))  # some are, where nobody wants the rest


def _size(data: bytes | Skipped) -> int:
    return 0 if isinstance(data, Skipped) else len(data)
