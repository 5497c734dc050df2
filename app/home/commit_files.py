"""Commits in a folder: small numbered files.

A commit is written beside the others, made durable, and then linked under its number.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from app.home.durable import FileSystem, explaining_full_disk, fault

TEMPORARY_PREFIX = ".tmp-"
_NAME = re.compile(r"([0-9]{8})\.json")


class Unconfirmed(Exception):
    """It is written under its number, but the disk failed to confirm it."""


class CommitFiles:
    """The files of one folder."""

    def __init__(self, folder: Path, files: FileSystem) -> None:
        self._folder = folder
        self._files = files

    def numbers(self) -> list[int]:
        """Returns all numbers in use, ascending."""
        matches = (_NAME.fullmatch(path.name) for path in self._folder.iterdir())
        return sorted(int(match[1]) for match in matches if match)

    def read(self, number: int) -> bytes | None:
        """Returns what was written under a number, or None.

        Raises:
            OSError: it cannot be read.
        """
        with suppress(FileNotFoundError):
            return file_of(self._folder, number).read_bytes()
        return None

    def read_many(self, numbers: Collection[int]) -> dict[int, bytes]:
        """Returns what was written under some numbers, as far as it can be read."""
        found: dict[int, bytes] = {}
        for number in numbers:
            with suppress(OSError):
                found[number] = file_of(self._folder, number).read_bytes()
        return found

    def put_if_absent(self, number: int, data: bytes) -> bool:
        """Writes, durably, under a number that nobody has written under; says whether that was so.

        Raises:
            NoSpace: the disk is full; nothing has changed.
            Unconfirmed: it is written but the disk failed to confirm it.
        """
        temporary = self._folder / f"{TEMPORARY_PREFIX}{uuid.uuid4().hex}"
        with explaining_full_disk(self._folder, f"writing commit {number}"):
            fault("commit:write")
            self._files.write(temporary, data)
            fault("commit:fsync-file")
            self._files.fsync_file(temporary)
            fault("commit:link")
            try:
                self._files.link(temporary, file_of(self._folder, number))
            except FileExistsError:
                self._files.unlink(temporary)
                return False
        try:
            fault("commit:fsync-commits")
            self._files.fsync_dir(self._folder)
            fault("commit:unlink-temporary")
            self._files.unlink(temporary)
        except OSError as error:
            raise Unconfirmed(error.strerror) from error
        return True


def file_of(folder: Path, number: int) -> Path:
    """Returns the file of a commit."""
    return folder / f"{number:08d}.json"
