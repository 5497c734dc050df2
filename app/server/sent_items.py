"""Pictures that were sent one by one: checked as an upload's are, and packed into one."""

from __future__ import annotations

import csv
import io
import uuid
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.captions import normalise_caption, normalise_language
from ingest.images import decode
from ingest.pair import ImageId, image_id_of

MOST_ITEMS = 64


@dataclass(frozen=True)
class SentItem:
    """A picture's file and its captions, each with a language; one that states none has an empty one."""

    image_id: ImageId
    data: bytes
    ending: str
    captions: tuple[tuple[str, str], ...]


def checked(data: bytes, captions: Sequence[tuple[str, str]]) -> SentItem:
    """Returns what was sent, once it was seen to be a picture with captions that can be read.

    Raises:
        BadImage, BadCaption, UnknownLanguage: it is not.
    """
    decoded = decode(data)
    told = [(normalise_language(tag) if tag else "", normalise_caption(text).text) for tag, text in captions]
    return SentItem(image_id_of(data), data, decoded.format.lower(), tuple(told))


def packed(items: Sequence[SentItem], inbox: Path) -> Path:
    """Writes a zip that can be taken in: the pictures as they came, and a table of their captions; returns it."""
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(("image", "caption", "language"))
    pictures = {one.image_id: one for one in items}
    for one in items:
        writer.writerows((_name(one), text, language) for language, text in one.captions)
    file = inbox / f"{uuid.uuid4().hex}.zip"
    with zipfile.ZipFile(file, "w") as archive:
        for one in pictures.values():
            archive.writestr(_name(one), one.data)
        archive.writestr("captions.csv", table.getvalue())
    return file


def _name(item: SentItem) -> str:
    return f"images/{item.image_id}.{item.ending}"
