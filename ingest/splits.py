"""Assigns images to splits: for training, for choosing a checkpoint, and held out for measuring."""

import hashlib

from ingest.errors import BadRow
from ingest.pair import ImageId, Split

TRAIN_SHARE, VALIDATION_SHARE = 0.80, 0.05  # the remaining 15 % are held out

SPLITS = {
    "train": Split.TRAIN,
    "training": Split.TRAIN,
    "val": Split.VALIDATION,
    "valid": Split.VALIDATION,
    "validation": Split.VALIDATION,
    "dev": Split.VALIDATION,
    "test": Split.TEST,
    "testing": Split.TEST,
}
"""What a column may call a split, in lower case."""


def parse_split(value: str) -> Split:
    """Reads a value of a `split` column.

    Raises:
        BadRow: not one of train, validation (val, dev) or test.
    """
    found = SPLITS.get(value.strip().casefold())
    if found is None:
        raise BadRow(
            "split_unknown", f"{value[:40]!r} is no split; use train, validation (val, dev) or test."
        )
    return found


def assign_split(image_id: ImageId, *, group: str | None = None) -> Split:
    """Returns the split of an image that states none: by a hash of its group, else of its id.

    The hash makes the choice independent of order, chunk and machine. Pictures of one thing share a group, so
    that none of them is held out while its twin is trained on.
    """
    share = hash_share(hash_key(image_id, group))
    if share < TRAIN_SHARE:
        return Split.TRAIN
    return Split.VALIDATION if share < TRAIN_SHARE + VALIDATION_SHARE else Split.TEST


def hash_key(image_id: ImageId, group: str | None = None) -> str:
    """Returns what is hashed for an image: its group, else its id."""
    has_group = group is not None and group.strip() != ""
    return f"group:{(group or '').strip()}" if has_group else f"image:{image_id}"


def hash_share(key: str) -> float:
    """Returns a number in [0, 1) that is the same everywhere: 8 bytes of the key's sha256."""
    return int.from_bytes(hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8], "big") / 2**64
