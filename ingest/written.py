"""Captions that pictures' own files hold: they become pairs where their language is stated or shows."""

from collections.abc import Sequence
from dataclasses import dataclass

from ingest.facts.record import WrittenCaption
from ingest.pair import ImageId
from ingest.readers.container import Row
from ingest.sentence import phrase
from ingest.unstated_languages import caption_languages


@dataclass(frozen=True, slots=True)
class CaptionInFile:
    """A caption in a picture's file, or in an XMP file beside it."""

    image_id: ImageId
    place: str  # of the picture, fit for a report
    caption: WrittenCaption


def rows_of(written: Sequence[CaptionInFile], language: str | None) -> tuple[list[tuple[ImageId, Row]], str]:
    """Returns a row for each caption whose language is known, and a note on the others, "" where there are none.

    `language` is that of captions that state none; None: it is detected, by all of them together.
    """
    silent = [one for one in written if not one.caption.language]
    told = [language] * len(silent) if language else caption_languages([one.caption.text for one in silent])
    tags = dict(zip(map(id, silent), told, strict=True))
    rows = [
        (one.image_id, Row(f"{one.place} ({one.caption.source})", one.place, one.caption.text, language=tag))
        for one in written
        if (tag := one.caption.language or tags[id(one)])
    ]
    unclear = len(written) - len(rows)
    note = phrase(
        "captions in picture files that nobody can tell the language of, and that were left there: {count} (say "
        "--language TAG to take them)",
        count=unclear,
    )
    return rows, note if unclear else ""
