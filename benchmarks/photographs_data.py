"""Turns flickr8k into uploads of the product's own format; every caption of a training photograph is taken."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from real_input_data import UploadRow, emoji_rows, emoji_splits, read_tsv

DOMAIN, SHOP = "photographs", "fluent3d"
KNOWN, NEW = ("de", "fr", "pt", "ar"), ("hi", "cs", "uk")
SPLITS = {"train": "train", "val": "validation", "test": "test"}

Captions = Mapping[str, list[tuple[str, str]]]


def photo_rows(data: Path, language: str, photos: int | None = None) -> list[UploadRow]:
    """Returns every caption of one language, in the splits that the data give.

    Args:
        data: folder of the evaluation data.
        language: of the captions.
        photos: only so many training photographs, the first by a hash of their name; None takes all.
    """
    found = [row for row in read_tsv(data / "flickr8k" / "captions.tsv") if row["lang"] == language]
    training = sorted({row["image"] for row in found if row["split"] == "train"}, key=_shuffled)[:photos]
    kept = set(training)
    folder = data / "flickr8k" / "images"
    return [
        UploadRow(folder / r["image"], r["text"], language, DOMAIN, SPLITS[r["split"]], r["image"])
        for r in found
        if r["split"] != "train" or r["image"] in kept
    ]


def shop_rows(data: Path) -> list[UploadRow]:
    """Returns English names of the pictures of one style: the second domain, drawn objects as a shop shows them."""
    return emoji_rows(data, emoji_splits(data), "en", (SHOP,))


def test_captions(data: Path) -> dict[str, list[tuple[str, str]]]:
    """Returns for each language the captions of the test photographs: (file name, caption)."""
    captions: dict[str, list[tuple[str, str]]] = {}
    for row in read_tsv(data / "flickr8k" / "captions.tsv"):
        if row["split"] == "test":
            captions.setdefault(row["lang"], []).append((row["image"], row["text"]))
    return captions


def _shuffled(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()
