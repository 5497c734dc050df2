"""Turns the evaluation data into uploads of the product's own format: a folder of pictures and a captions.csv."""

from __future__ import annotations

import csv
import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

LANGUAGES = ("de", "fr", "ru", "hi", "ja", "zh", "ar")
PHOTO_LANGUAGES = ("de", "fr", "cs", "pt")
VALIDATION_SHARE = 0.06
SUFFIXES = {"noto": ".png", "fluent3d": ".webp", "line": ".png"}
HEADER = ("image", "caption", "language", "domain", "split", "group")


@dataclass(frozen=True)
class UploadRow:
    """One line of captions.csv: a caption and the picture it belongs to."""

    picture: Path
    caption: str
    language: str
    domain: str
    split: str
    group: str

    @property
    def name(self) -> str:
        """The picture's name inside the upload."""
        return f"{self.domain}/{self.picture.name}"


def split_of(key: str, *, held_out: bool) -> str:
    """Returns a concept's split: held out as the data say, else validation for a share by hash, else train."""
    if held_out:
        return "test"
    share = int.from_bytes(hashlib.sha256(f"validation:{key}".encode()).digest()[:8], "big") / 2**64
    return "validation" if share < VALIDATION_SHARE else "train"


def emoji_splits(data: Path, limit: int | None = None) -> dict[str, str]:
    """Returns the split of each concept.

    Args:
        data: folder of the evaluation data.
        limit: for trying things out: only so many concepts, and a fifth as many held-out ones.
    """
    kept: dict[str, str] = {}
    left = {True: None if limit is None else max(1, limit // 5), False: limit}
    for row in read_tsv(data / "emoji" / "concepts.tsv"):
        held_out = row["held_out"] == "1"
        remaining = left[held_out]
        if remaining is not None:
            if remaining == 0:
                continue
            left[held_out] = remaining - 1
        kept[row["key"]] = split_of(row["key"], held_out=held_out)
    return kept


def emoji_rows(
    data: Path, splits: Mapping[str, str], language: str, styles: Sequence[str]
) -> list[UploadRow]:
    """Returns the short name of every concept in one language, on its picture in each style."""
    names = {r["key"]: r["name"] for r in read_tsv(data / "emoji" / "names.tsv") if r["lang"] == language}
    rows = []
    for style in styles:
        for key, split in splits.items():
            picture = data / "emoji" / style / f"{key}{SUFFIXES[style]}"
            if key in names and picture.exists():
                rows.append(UploadRow(picture, names[key], language, style, split, key))
    return rows


def keyword_rows(data: Path, splits: Mapping[str, str], style: str) -> list[UploadRow]:
    """Returns up to three English keywords of each concept, its name left out, as one more caption."""
    rows = []
    for row in read_tsv(data / "emoji" / "names.tsv"):
        words = [word.strip() for word in row["keywords"].split("|")]
        chosen = [word for word in words if word and word != row["name"]][:3]
        picture = data / "emoji" / style / f"{row['key']}{SUFFIXES[style]}"
        if row["lang"] == "en" and row["key"] in splits and chosen and picture.exists():
            caption = ", ".join(chosen)
            rows.append(UploadRow(picture, caption, "en", style, splits[row["key"]], row["key"]))
    return rows


def photo_pictures(data: Path, count: int) -> list[Path]:
    """Returns the first photographs by name."""
    return sorted((data / "flickr8k" / "images").iterdir())[:count]


def photo_rows(data: Path, language: str, *, photos: int) -> list[UploadRow]:
    """Returns captions of photographs: one for each training and validation photo, all of each test photo.

    Args:
        data: folder of the evaluation data.
        language: of the captions.
        photos: how many training photos (the first by a hash of their name).
    """
    captions: dict[str, dict[str, list[str]]] = {"train": {}, "val": {}, "test": {}}
    for row in read_tsv(data / "flickr8k" / "captions.tsv"):
        if row["lang"] == language:
            captions[row["split"]].setdefault(row["image"], []).append(row["text"])
    chosen = sorted(captions["train"], key=lambda name: hashlib.sha256(name.encode()).hexdigest())[:photos]
    wanted = {
        "train": {name: captions["train"][name][:1] for name in chosen},
        "validation": {name: texts[:1] for name, texts in captions["val"].items()},
        "test": captions["test"],
    }
    folder = data / "flickr8k" / "images"
    return [
        UploadRow(folder / name, text, language, "photo", split, name)
        for split, by_photo in wanted.items()
        for name, texts in sorted(by_photo.items())
        for text in texts
    ]


def write_upload(folder: Path, rows: Iterable[UploadRow]) -> Path:
    """Writes a folder upload: captions.csv beside the pictures, as hard links where that is possible."""
    folder.mkdir(parents=True)
    with (folder / "captions.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(HEADER)
        for row in rows:
            table.writerow((row.name, row.caption, row.language, row.domain, row.split, row.group))
            target = folder / row.name
            if not target.exists():
                target.parent.mkdir(exist_ok=True)
                _bring(row.picture, target)
    return folder


def _bring(source: Path, target: Path) -> None:
    try:
        target.hardlink_to(source)
    except OSError:  # another file system
        shutil.copyfile(source, target)


def read_tsv(path: Path) -> Iterable[dict[str, str]]:
    """Yields the rows of a tab-separated table as dictionaries."""
    with path.open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
