"""Objects in a bucket that several machines reach: bytes under names, each of which is written once and never changed.

S3 and what speaks like it, Google's and Azure's buckets, and a folder that machines share. Who may read and write there
is found as their own programs find it: in the environment, or in the role of the machine. None of that is part of an
address, which lies in the home (https://developmentseed.org/obstore/latest/authentication/).
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from ingest.circuit import Circuit
from ingest.errors import BadOption, ObjectMissing, ObjectsError, ObjectsUnreachable
from ingest.sentence import phrase

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, ObjectStore

MARK = "perennial.json"
"""The object that says whose the others are."""
SCHEMES = ("s3", "gs", "az", "file")
_WRITTEN = "Write it like s3://bucket/folder, gs://…, az://… or file:///folder."
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_PIECE = 8 * 1024**2  # of a file that is fetched
_SILENT_SECONDS = 5  # after which what is read is given up, where somebody waits for it
_WRITING_SECONDS = 20
_JOB_SECONDS = 60.0
_IN_VAIN_SECONDS = 1.0  # what fails sooner holds nobody up
_DELETED = 1000  # at once: as many as S3 takes
_KEYS = {
    "s3": "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "az": "AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY",
}
# Without keys the cloud's machines are asked for their role, at an address that is none elsewhere.
_NO_KEYS = (
    "/latest/api/token",  # which tells a machine in the cloud of its role
    "://169.254.",
    "://metadata.google.internal",
    "Missing SecretAccessKey",
    "Missing AccessKeyId",
    "Account must be specified",
)
_circuits: dict[str, Circuit] = {}
_patience = 0.0  # seconds that this process waits longer than somebody would


def be_patient() -> None:
    """Has this process wait a minute more for a bucket: it does a job, which would have to begin again."""
    global _patience
    _patience = _JOB_SECONDS


class Objects:
    """The objects below an address, which is not asked before the first of them is."""

    def __init__(self, address: str) -> None:
        self.address = require_address(address)
        self._is_ours = False

    def mark(self) -> bytes | None:
        """Returns what says whose these objects are; None where nothing does.

        Raises:
            ObjectsUnreachable: the bucket does not answer, or does not let this program in.
        """
        if self._folder is not None and not self._folder.is_dir():
            return None
        try:
            with self._explaining(MARK) as obstore:
                return bytes(obstore.get(self._reading, MARK).bytes())
        except ObjectMissing:
            return None

    def set_mark(self, data: bytes) -> None:
        """Says whose these objects are; a folder is made. None of them is written before.

        Raises:
            ObjectsUnreachable: the bucket does not answer, or does not let this program in; nothing was written.
        """
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
        self._put(MARK, data)

    def put(self, name: str, data: bytes | Path) -> None:
        """Writes an object, whole or not at all; what is said under a name is always the same.

        Raises:
            ObjectsUnreachable: the bucket does not answer, or does not let this program in; nothing was written.
        """
        self._require_there()
        self._put(name, data)

    def size(self, name: str) -> int | None:
        """Returns how many bytes an object has; None where there is none.

        Raises:
            ObjectsUnreachable: the bucket does not answer, or does not let this program in.
        """
        try:
            with self._explaining(name) as obstore:
                return int(obstore.head(self._reading, name)["size"])
        except ObjectMissing:
            return None

    def ranges(self, name: str, begins: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Returns parts of an object; neighbours are fetched together.

        Raises:
            ObjectMissing: there is no such object.
            ObjectsUnreachable: the bucket does not answer, or does not let this program in.
        """
        with self._explaining(name) as obstore:
            return [
                bytes(one) for one in obstore.get_ranges(self._reading, name, starts=begins, lengths=lengths)
            ]

    def get(self, name: str) -> bytes:
        """Returns a whole object; raises as `ranges`."""
        with self._explaining(name) as obstore:
            return bytes(obstore.get(self._reading, name).bytes())

    def fetch(self, name: str, to: Path) -> str:
        """Writes an object to a new file, and returns the sha256 (hex) of what came; raises as `ranges`."""
        digest = hashlib.sha256()
        with to.open("xb") as file:
            for piece in self._pieces(name):
                digest.update(piece)
                file.write(piece)
        return digest.hexdigest()

    def _pieces(self, name: str) -> Iterator[bytes]:
        # One by one: what is asked for has to come within the time of one request, however large all is together.
        with self._explaining(name) as obstore:
            size = int(obstore.head(self._reading, name)["size"])
        for start in range(0, size, _PIECE):
            with self._explaining(name) as obstore:
                piece = obstore.get_range(self._reading, name, start=start, end=min(start + _PIECE, size))
            yield bytes(piece)

    def written(self, below: str) -> Iterator[tuple[str, float]]:
        """Yields the names of all objects below a name, such as `packs`, and when each was written (seconds of UTC).

        Raises:
            ObjectsUnreachable: the bucket does not answer, or does not let this program in.
        """
        return ((str(one["path"]), one["last_modified"].timestamp()) for one in self._listed(below))

    def sizes(self, below: str) -> Iterator[tuple[str, int]]:
        """Yields the names of all objects below a name, and how many bytes each has; raises as `written`."""
        return ((str(one["path"]), int(one["size"])) for one in self._listed(below))

    def _listed(self, below: str) -> Iterator[ObjectMeta]:
        with self._explaining("") as obstore:
            for page in obstore.list(self._reading, below):
                yield from page

    def delete(self, names: Sequence[str]) -> None:
        """Removes objects; one that is not there is no error.

        Raises:
            ObjectsUnreachable: the bucket does not answer, or does not let this program in.
        """
        if self._folder is not None:
            for name in names:
                (self._folder / name).unlink(missing_ok=True)
            return
        for start in range(0, len(names), _DELETED):
            with self._explaining(names[start]) as obstore:
                obstore.delete(self._store, list(names[start : start + _DELETED]))

    def _put(self, name: str, data: bytes | Path) -> None:
        with self._explaining("") as obstore:
            obstore.put(self._store, name, data)
        folder = self._folder
        if folder is not None:  # what writes into it leaves that to the disk
            for path in (folder / name, (folder / name).parent):
                descriptor = os.open(path, os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)

    def _require_there(self) -> None:
        """Refuses a folder without its mark: it lies on another disk, which is not there in this moment.

        Raises:
            ObjectsUnreachable: it is one.
        """
        if self._folder is not None:
            if not (self._folder / MARK).exists():
                raise self._unreachable(f"{MARK} is not there, as if its disk were away")
        elif not self._is_ours:  # asked once
            self._is_ours = self.mark() is not None
            if not self._is_ours:
                raise self._unreachable(f"{MARK} is not there, as if it were another bucket")

    def _unreachable(self, why: str) -> ObjectsUnreachable:
        if any(one in why for one in _NO_KEYS):
            return ObjectsUnreachable(
                phrase(
                    "No keys for the bucket {address} are found here: set {names} in the environment, or give this "
                    "machine a role that may read and write there.",
                    address=self.address,
                    names=_KEYS[urlsplit(self.address).scheme],
                )
            )
        return ObjectsUnreachable(
            phrase(
                "The bucket {address} cannot be reached ({why}). Nothing was lost: look whether the address is right, "
                "and whether this machine may read and write there.",
                address=self.address,
                why=why,
            )
        )

    @cached_property
    def _folder(self) -> Path | None:
        parts = urlsplit(self.address)
        return Path(unquote(parts.path)) if parts.scheme == "file" else None

    @cached_property
    def _store(self) -> ObjectStore:
        # What is sent takes as long as the way takes: nothing is heard meanwhile.
        return self._opened({}, _WRITING_SECONDS + _patience)

    @cached_property
    def _reading(self) -> ObjectStore:
        return self._read_within(_SILENT_SECONDS + _patience)

    def _read_within(self, seconds: float) -> ObjectStore:
        return self._opened({"read_timeout": timedelta(seconds=_SILENT_SECONDS)}, seconds)

    def _opened(self, options: ClientConfig, seconds: float) -> ObjectStore:
        from obstore.store import from_url

        if self._folder is not None:
            if not self._folder.is_dir():  # `set_mark` makes it
                raise self._unreachable("the folder is not there, as if its disk were away")
            return from_url(self.address)
        return from_url(
            self.address,
            client_options={
                **options,
                "timeout": timedelta(seconds=20),
                "connect_timeout": timedelta(seconds=5),
                # Where somebody named an address without a certificate.
                "allow_http": any(os.environ.get(name, "").startswith("http:") for name in _ENDPOINTS),
            },
            retry_config={
                "max_retries": 100 if _patience else 3,
                "retry_timeout": timedelta(seconds=seconds),
            },
        )

    def _ask(self) -> str:
        """Returns why the bucket does not answer; nothing where it does."""
        import obstore
        from obstore.exceptions import BaseError

        try:
            obstore.head(self._read_within(_SILENT_SECONDS), MARK)
        except FileNotFoundError:
            return ""
        except (BaseError, OSError, ObjectsUnreachable) as error:
            return _why(error)
        return ""

    @contextmanager
    def _explaining(self, name: str) -> Iterator[Any]:
        try:
            import obstore
            from obstore.exceptions import BaseError
        except ModuleNotFoundError as error:
            raise ObjectsError(
                "What reaches a bucket is not installed here: `pip install 'perennial-search[s3]'`."
            ) from error
        # One that asks anew: keys may be found by then.
        circuit = _circuits.setdefault(self.address, Circuit(lambda: Objects(self.address)._ask()))
        began = time.monotonic()
        while why := circuit.why_open():
            if time.monotonic() - began >= _patience:
                raise self._unreachable(why)
            time.sleep(_IN_VAIN_SECONDS)
        began = time.monotonic()
        try:
            yield obstore
        except (BaseError, OSError, ValueError) as error:
            if name and isinstance(error, FileNotFoundError):
                if name != MARK and self._folder is not None:
                    self._require_there()
                raise ObjectMissing(
                    phrase("The object {name} is not in {address}.", name=name, address=self.address)
                ) from error
            # Of what is sent nobody knows whether it was too much or in vain.
            if name and time.monotonic() - began >= _SILENT_SECONDS - _IN_VAIN_SECONDS:
                circuit.open(_why(error))
            elif time.monotonic() - began > _IN_VAIN_SECONDS:
                circuit.doubt()
            raise self._unreachable(_why(error)) from error


def _why(error: Exception) -> str:
    return str(error).partition("\n")[0].partition(": <?xml")[0].rstrip(".")


def require_address(address: str) -> str:
    """Returns an address of objects as it is written everywhere.

    Raises:
        BadOption: it is none, or holds what is nobody's to read.
    """
    try:
        parts = urlsplit(address)
        is_known = parts.scheme in SCHEMES and bool(
            parts.path.strip("/") if parts.scheme == "file" else parts.netloc
        )
    except ValueError:
        is_known = False
    if not is_known:
        raise BadOption(f"{address!r} is no address of a bucket. {_WRITTEN}")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadOption(
            "The address of a bucket holds more than its name and a folder, which would lie in the home for everybody "
            f"to read. Keys come from the environment, such as AWS_ACCESS_KEY_ID. {_WRITTEN}"
        )
    return address.rstrip("/")
