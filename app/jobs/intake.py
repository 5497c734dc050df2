"""What is sent to be taken in: an upload of the inbox, and pictures one by one, which are packed into one."""

from __future__ import annotations

import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from app.desk.errors import UsageProblem
from app.desk.jobs import UpdateRequest
from app.desk.releases import SUFFIX
from app.home.settings import Settings
from app.jobs import requests
from ingest.captions import normalise_caption, normalise_language
from ingest.decoding import decode_apart
from ingest.intake import IntakeOptions, check_upload
from ingest.pair import ImageId, image_id_of
from ingest.records import JobRecord
from ingest.sentence import phrase
from ingest.upload_zip import write_upload

_COPY_BYTES = 1024**2
_LONGEST_NAME = 120
_PATIENCE = 5.0  # seconds that one who sends a picture waits until others' are decoded
_SHA256 = re.compile("[0-9a-f]{64}")


def receive(source: Path, inbox: Path) -> Path:
    """Copies a file into the inbox under a name of its own and returns where it lies."""
    with source.open("rb") as opened:
        return receive_stream(opened, source.name, inbox)


def receive_stream(upload: BinaryIO, name: str, inbox: Path) -> Path:
    """Copies an upload into the inbox under a name of its own and returns where it lies."""
    partial = inbox / f".tmp-{uuid.uuid4().hex}"
    try:
        with partial.open("wb") as file:
            while block := upload.read(_COPY_BYTES):
                file.write(block)
        # Readers go by the ending; no other part of a name that a stranger chose touches the disk.
        suffixes = (part[1:] for part in Path(name).suffixes[-2:])
        ending = "".join(
            f".{part}" for part in suffixes if part.isascii() and part.isalnum() and len(part) <= 7
        )
        # Of its own, because the same file may come twice at once, and each is removed after it was read.
        return partial.rename(inbox / f"{uuid.uuid4().hex}{ending.lower()}")
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def take_in(
    settings: Settings,
    received: Path,
    options: IntakeOptions,
    sent_as: str,
    by: str,
    *,
    then: UpdateRequest | None = None,
    is_held: bool = False,
    held_why: str = "",
) -> JobRecord:
    """Queues taking a received upload in, after checking what can be checked at once.

    The file is not the caller's any more. With `is_held` the chunk teaches nothing until somebody accepts it; without
    `held_why` the reason is that who asked may not let a chunk teach.

    Raises:
        IngestError: it cannot be used; nothing changed.
        UsageProblem: pictures are to be fetched, which this installation does not allow.
    """
    name = options.name or Path(sent_as).name[:_LONGEST_NAME]
    options = replace(options, pictures_beside=False, pictures=None, name=name)
    try:
        if options.fetch and not settings.allow_fetch:
            raise UsageProblem(
                phrase(
                    "This server fetches no pictures from addresses. Send the pictures themselves; or whoever runs it "
                    "turns the setting `allow_fetch` on."
                )
            )
        check_upload(received, options)
        return requests.intake_job(
            settings, received, options, by=by, then=then, is_held=is_held, held_why=held_why
        )
    finally:
        received.unlink(missing_ok=True)


def take_release_in(
    settings: Settings, received: Path, sent_as: str, sha256: str | None, by: str
) -> JobRecord:
    """Queues taking in a release of another home; `received` is not the caller's any more.

    Raises:
        UsageProblem: it has another ending than packages have, or the checksum, as a person typed it, is no sha256.
    """
    name = Path(sent_as).name[:_LONGEST_NAME]
    try:
        if Path(sent_as).suffix.lower() != SUFFIX:
            raise UsageProblem(
                phrase(
                    "{name} is no exported release; those end in {suffix}.",
                    name=f"{name[:80]!r}",
                    suffix=SUFFIX,
                )
            )
        said = _checked_sha256(sha256 or "")
        return requests.import_job(settings, received, name=name, sha256=said, by=by)
    finally:
        received.unlink(missing_ok=True)


def _checked_sha256(sha256: str) -> str | None:
    """Returns a checksum as a person typed it, None for an empty one."""
    said = sha256.strip().lower()
    if said and not _SHA256.fullmatch(said):
        raise UsageProblem(
            phrase(
                "The checksum is 64 letters 0-9 and a-f, as the export showed it; found {found}.",
                found=f"{said[:80]!r}",
            )
        )
    return said or None


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
        DecoderBusy: others' pictures take long to decode.
    """
    decoded = decode_apart(data, largest=256, patience=_PATIENCE)
    told = [(normalise_language(tag) if tag else "", normalise_caption(text).text) for tag, text in captions]
    return SentItem(image_id_of(data), data, decoded.format.lower(), tuple(told))


def packed(items: Sequence[SentItem], inbox: Path) -> Path:
    """Writes a zip that can be taken in: the pictures as they came, and a table of their captions; returns it."""
    rows = [(_name(one), text, language) for one in items for language, text in one.captions]
    pictures = {_name(one): one.data for one in items}
    file = inbox / f"{uuid.uuid4().hex}.zip"
    write_upload(file, ("image", "caption", "language"), rows, pictures.items())
    return file


def _name(item: SentItem) -> str:
    return f"images/{item.image_id}.{item.ending}"
