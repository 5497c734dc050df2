"""The words that every package shares: image id, caption, pair, split, slice."""

import hashlib
from dataclasses import dataclass
from enum import StrEnum

ImageId = str
"""64 lower-case hexadecimal characters: the sha256 of the picture file's bytes."""

BASE_LANGUAGE = "en"
"""The language that every base encoder knows, and in which captions stand beside those of other languages."""


def image_id_of(data: bytes) -> ImageId:
    """Names a picture by its content."""
    return hashlib.sha256(data).hexdigest()


class Split(StrEnum):
    """What an image may be used for; the first assignment is final."""

    TRAIN = "train"
    VALIDATION = "validation"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class Caption:
    """One text in one language for one image."""

    image_id: ImageId
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Pair:
    """A caption together with what its image decides: domain and split. `text` is clean and NFC."""

    image_id: ImageId
    text: str
    language: str
    domain: str
    split: Split


@dataclass(frozen=True, slots=True, order=True)
class SliceKey:
    """The unit of measuring: one language in one domain."""

    language: str
    domain: str

    def __str__(self) -> str:
        return f"{self.language}/{self.domain}"
