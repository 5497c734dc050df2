"""Picture bytes and thumbnails by image id, on a checksummed store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from PIL import Image

from ingest.errors import StoreDamaged, StoreMisuse, UnknownImage
from ingest.images import EMBEDDED_SIDE, decode
from ingest.limits import Limits
from ingest.pair import ImageId, image_id_of

_ORIGINAL = b"i"
_THUMBNAIL = b"t"
_ASIDE = b"h"  # pictures of pairs that were put aside: nobody finds them, and no pair in the catalog has them
_ASIDE_THUMBNAIL = b"k"

# What is stored has passed the limits of its own upload; today's defaults must not hide it.
_STORED = Limits(image_bytes=2**62, image_pixels=2**62, shortest_side=1, aspect=2**62, allow_flat=True)


def _key(kind: bytes, image_id: ImageId) -> bytes:
    try:
        digest = bytes.fromhex(image_id)
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise UnknownImage(f"{image_id[:80]!r} is not an image id: 64 hexadecimal characters were expected.")
    return kind + digest


class Blobs(Protocol):
    """Where bytes are kept by key: in a file of the home (`ingest.storage`), or in a bucket (`ingest.packs`)."""

    address: str | None  # of the bucket; None of a file of the home

    def get(self, key: bytes) -> bytes | None:
        """Returns the payload of a key, or None when there is none."""
        ...

    def contains_many(self, keys: Sequence[bytes]) -> list[bool]:
        """Returns for each key whether it is stored."""
        ...

    def keys(self, prefix: bytes = b"") -> Iterator[bytes]:
        """Yields the keys that start with `prefix`, in byte order."""
        ...

    def put_many(self, items: Iterable[tuple[bytes, bytes]]) -> int:
        """Stores `(key, payload)` items in durable batches and returns how many records are new or changed."""
        ...

    def delete_many(self, keys: Iterable[bytes]) -> int:
        """Deletes the keys and returns how many were there."""
        ...

    def close(self) -> None:
        """Gives this opener's share back."""
        ...


class BlobStore:
    """Original bytes and thumbnails of every accepted picture."""

    def __init__(self, store: Blobs) -> None:
        self._store = store

    @property
    def address(self) -> str | None:
        """The address of the bucket that they lie in; None where they lie in the home."""
        return self._store.address

    def follow(self, moved: BlobStore) -> None:
        """Reads and writes from now on where the pictures were carried to, and others opened them."""
        before, self._store = self._store, moved._store
        before.close()

    def close(self) -> None:
        """Closes what they are kept in."""
        self._store.close()

    def put(self, items: Iterable[tuple[ImageId, bytes, bytes]]) -> None:
        """Stores `(id, original bytes, thumbnail bytes)` durably, batch after batch."""
        records = _records(items, _ORIGINAL, _THUMBNAIL)
        self._store.put_many(records)

    def contains(self, image_ids: Sequence[ImageId]) -> list[bool]:
        """Returns for each id whether its picture is stored."""
        return self._store.contains_many([_key(_ORIGINAL, image_id) for image_id in image_ids])

    def image(self, image_id: ImageId, *, side: int = 0) -> Image.Image:
        """Returns the decoded picture: RGB, upright, transparent parts on white; see `decode` for `side`.

        Raises:
            UnknownImage: no such picture.
        """
        return decode(self.original(image_id), _STORED, side=side).image

    def embedded(self, image_id: ImageId) -> Image.Image:
        """Returns the picture as `image` does, as large as an image tower may look at; a JPEG is decoded smaller.

        Raises:
            UnknownImage: no such picture.
        """
        return for_embedding(self.original(image_id))

    def original(self, image_id: ImageId) -> bytes:
        """Returns the file exactly as it was uploaded, metadata included: not for showing in public."""
        return self._get(_ORIGINAL, image_id)

    def thumbnail(self, image_id: ImageId) -> bytes:
        """Returns the WebP thumbnail (at most 256 pixels a side, no metadata)."""
        return self._get(_THUMBNAIL, image_id)

    def ids(self) -> Iterator[ImageId]:
        """Yields the id of every stored picture."""
        for key in self._store.keys(_ORIGINAL):
            yield key.removeprefix(_ORIGINAL).hex()

    def damage(self, image_id: ImageId) -> str | None:
        """Says what is wrong with a stored picture, None when nothing is."""
        try:
            if image_id_of(self.original(image_id)) != image_id:
                return "It is another picture than its id says."
            self.thumbnail(image_id)
        except StoreDamaged as error:
            return str(error)
        except UnknownImage:
            return "Its thumbnail is missing."
        return None

    def delete(self, image_ids: Iterable[ImageId]) -> None:
        """Deletes pictures and thumbnails; ids that are not stored are no error."""
        self._delete(image_ids, _ORIGINAL, _THUMBNAIL)

    def put_aside(self, items: Iterable[tuple[ImageId, bytes | None, bytes]]) -> None:
        """Stores `(id, original bytes or None, thumbnail bytes)` of pairs that were put aside."""
        self._store.put_many(_records(items, _ASIDE, _ASIDE_THUMBNAIL))

    def aside_original(self, image_id: ImageId) -> bytes:
        """Returns the file of a picture that was put aside, or that was stored since."""
        return self._get(_ASIDE, image_id, _ORIGINAL)

    def aside_thumbnail(self, image_id: ImageId) -> bytes:
        """Returns the thumbnail of a picture that was put aside, or that was stored since."""
        return self._get(_ASIDE_THUMBNAIL, image_id, _THUMBNAIL)

    def drop_aside(self, image_ids: Iterable[ImageId]) -> None:
        """Deletes pictures that were put aside; ids that were not are no error."""
        self._delete(image_ids, _ASIDE, _ASIDE_THUMBNAIL)

    def _delete(self, image_ids: Iterable[ImageId], *kinds: bytes) -> None:
        self._store.delete_many(_key(kind, image_id) for image_id in image_ids for kind in kinds)

    def _get(self, kind: bytes, image_id: ImageId, otherwise: bytes | None = None) -> bytes:
        store = self._store
        try:
            found = store.get(_key(kind, image_id))
            if found is None and otherwise is not None:
                found = store.get(_key(otherwise, image_id))
        except StoreMisuse:
            if store is self._store:
                raise
            return self._get(kind, image_id, otherwise)  # it was carried away in this moment
        if found is None:
            raise UnknownImage(
                f"No picture with id {image_id[:12]} is stored. Ingest the chunk that holds it again."
            )
        return found


def for_embedding(original: bytes) -> Image.Image:
    """Returns the picture of a stored file, as `BlobStore.embedded` does."""
    return decode(original, _STORED, shorter=EMBEDDED_SIDE).image


def _records(
    items: Iterable[tuple[ImageId, bytes | None, bytes]], original_kind: bytes, thumbnail_kind: bytes
) -> Iterator[tuple[bytes, bytes]]:
    for image_id, original, thumbnail in items:
        # The thumbnail first: an original in the store then always has its thumbnail.
        yield _key(thumbnail_kind, image_id), thumbnail
        if original is not None:
            yield _key(original_kind, image_id), original
