"""What uploads through REST and through the screens share."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from app.desk.errors import UsageProblem

_COPY_BYTES = 1024**2


def receive(upload: BinaryIO, name: str, inbox: Path) -> Path:
    """Copies an upload into the inbox under a name of its own and returns where it lies."""
    partial = inbox / f".tmp-{uuid.uuid4().hex}"
    try:
        with partial.open("wb") as file:
            while block := upload.read(_COPY_BYTES):
                file.write(block)
        # Readers go by the ending; no other part of a name that a stranger chose touches the disk.
        ending = "".join(part for part in Path(name).suffixes[-2:] if part[1:].isalnum() and len(part) <= 8)
        # Of its own, because the same file may come twice at once, and each is removed after it was read.
        return partial.rename(inbox / f"{uuid.uuid4().hex}{ending.lower()}")
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def column_names(pairs: Sequence[str]) -> dict[str, str]:
    """Reads `theirs=ours` pairs.

    Raises:
        UsageProblem: one of them is not of that form.
    """
    mapping = {}
    for pair in pairs:
        theirs, equals, ours = pair.partition("=")
        if not (theirs.strip() and equals and ours.strip()):
            raise UsageProblem(f"map is like text=caption (your column, then ours); found {pair[:80]!r}.")
        mapping[theirs.strip()] = ours.strip()
    return mapping
