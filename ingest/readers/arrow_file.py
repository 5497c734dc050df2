"""Parquet and Arrow files: tables whose rows name pictures, or hold them."""

import json
import struct
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any, cast
from urllib.parse import quote, unquote

from ingest.errors import BadUpload
from ingest.limits import Limits
from ingest.pair import Split
from ingest.readers.archive import MEGABYTE, bomb
from ingest.readers.container import Columns, EmbeddedPicture, Format, Formats, Line, Origin, Skipped, Text
from ingest.readers.listing import Listing
from ingest.readers.names import shown
from ingest.readers.table import DOWNLOADED
from ingest.readers.table_file import is_file, read_file, too_large
from ingest.splits import SPLITS

_MAGIC = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff")  # Parquet, Arrow's file and stream formats
_CHILD = Path(__file__).with_name("arrow_child.py")
_FRAME = struct.Struct("<qq")
_ROW_BYTES = 64
_DATASET, _DATASETS = "dataset_info.json", "dataset_dict.json"


@dataclass(frozen=True)
class ArrowFile:
    """One Parquet or Arrow file, read by a child process with bounded memory (see `arrow_child`)."""

    path: Path  # of the file
    name: str  # what reports call it
    text_bytes: int  # how much its rows may say

    @cached_property
    def _schema(self) -> Mapping[str, list[str]]:
        with self._asked("schema") as answer:
            found: dict[str, list[str]] = json.loads(answer.read() or b'{"columns": [], "embedded": []}')
        return found

    @property
    def embedded(self) -> list[str]:
        """The columns that hold picture files.

        Raises:
            BadUpload: the file is damaged or asks for too much memory; so for the methods below.
        """
        return self._schema["embedded"]

    @property
    def columns(self) -> Columns:
        """Its columns; pictures that it holds are named by `row/column` below its own name."""
        names = self._schema["columns"]
        return Columns(names, frozenset(self.embedded), downloads=set(names) >= DOWNLOADED)

    def pictures(self, column: str) -> Iterator[tuple[int, int, IO[bytes]]]:
        """Yields of each row its number, the size of its picture (-1: none) and where to read that many bytes."""
        with self._asked("pictures", column) as answer:
            while len(head := answer.read(_FRAME.size)) == _FRAME.size:
                row, size = _FRAME.unpack(head)
                yield row, size, answer

    def lines(self) -> Iterator[Line]:
        """Yields its columns, then its rows."""
        yield self.columns
        with self._asked("rows") as answer:
            said = 0
            for number, line in enumerate(answer):
                # A few bytes may stand for a billion rows that say nothing, and each takes memory here.
                said += max(len(line), _ROW_BYTES)
                if said > self.text_bytes:
                    raise BadUpload(
                        "table_too_large",
                        f"{shown(self.name)} has more than {self.text_bytes >> 20} MB of text. Split it.",
                    )
                record = json.loads(line)
                pictures = {
                    column: EmbeddedPicture(f"{self.name}/{number}/{quote(column, safe='')}")
                    for column in self.embedded
                }
                yield f"{shown(self.name)} row {number + 1}", record | pictures

    @contextmanager
    def _asked(self, *what: str) -> Iterator[IO[bytes]]:
        if find_spec("pyarrow") is None:
            raise BadUpload(
                "not_installed",
                f"{shown(self.name)} is read with pyarrow, which is not installed here. To install it: "
                "pip install 'perennial-search[learn]'",
            )
        verb, *rest = what
        # -P: the folder of the script is no place to import from.
        command = [sys.executable, "-P", str(_CHILD), verb, str(self.path), *rest]
        said, is_done = b"", False
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            answer, complaint = cast(IO[bytes], child.stdout), cast(IO[bytes], child.stderr)
            try:
                yield answer
                is_done = not answer.read(1)
                said = complaint.read() if is_done else b""
            finally:
                if not is_done:  # nobody wants the rest
                    child.kill()
        if is_done and child.returncode:
            raise self._refused(said)

    def _refused(self, said: bytes) -> BadUpload:
        try:
            found = json.loads(said.splitlines()[-1])
            code, words = str(found["code"]), str(found["words"])
        except (IndexError, KeyError, TypeError, ValueError):
            code, words = "damaged", "cannot be read"
        return BadUpload(
            code, f"{shown(self.name)} {words}. Write it again, with smaller row groups if it is large."
        )


class ArrowTables:
    """Parquet or Arrow files as one container: a file by itself, or a Hugging Face dataset saved to disk.

    By name of file, `splits` has the split of its rows that state none. `folder` is where pictures that rows name lie,
    None when there may be none; `is_upload` says that they are all that is read, and not a part of a folder.
    """

    def __init__(
        self,
        name: str,
        files: Mapping[str, Path],
        limits: Limits,
        *,
        splits: Mapping[str, str] | None = None,
        folder: Path | None = None,
        is_upload: bool = True,
    ) -> None:
        self.name = name
        self._is_upload = is_upload
        self._files = {key: ArrowFile(path, key, limits.text_bytes) for key, path in files.items()}
        self._splits = splits or {}
        self._folder = folder
        self._limits = limits

    def scan(self, formats: Formats) -> Listing:
        """Lists the files; their rows come when they are asked for."""
        listing = Listing(self._limits, formats)
        for name, file in self._files.items():
            if self._folder is None and not file.embedded:
                raise BadUpload(
                    "table_alone",
                    "A table alone has no pictures: upload a zip with the table and its pictures.",
                )
            listing.add_text(name, Text(ARROW, file.path, self._splits.get(name), is_upload=self._is_upload))
        return listing

    def locate(self, name: str) -> str | None:
        """Returns the name of a picture in one of the files, or of a file beside them."""
        is_inside = name.rsplit("/", 2)[0] in self._files
        return name if is_inside or (self._folder is not None and is_file(self._folder, name)) else None

    def above(self, name: str) -> Sequence[str]:
        """Returns nothing: a table that is given by itself says where its pictures lie."""
        return ()

    def origin(self, name: str) -> Origin:
        """Returns the table that holds a picture with its row and column, or where a file beside it lies."""
        table, row, column = _address(name)
        if table in self._files:
            return Origin.at(self._files[table].path.resolve(), f"{row}/{unquote(column)}", is_row=True)
        return Origin.at((self._folder or Path()) / name)

    def read(self, wanted: Collection[str]) -> Iterator[tuple[str, bytes | Skipped]]:
        """Yields the pictures in the files in the order of their rows, then those beside them."""
        inside: dict[tuple[str, str], set[str]] = {}
        for name in wanted:
            table, _, column = _address(name)
            if table in self._files:
                inside.setdefault((table, column), set()).add(name)
        for (table, column), names in sorted(inside.items()):
            yield from self._embedded(self._files[table], column, names)
        if self._folder is not None:
            for name in sorted(set(wanted).difference(*inside.values())):
                yield name, read_file(self._folder, name, self._limits)

    def _embedded(
        self, file: ArrowFile, column: str, wanted: Collection[str]
    ) -> Iterator[tuple[str, bytes | Skipped]]:
        packed, total = file.path.stat().st_size, 0
        for row, size, source in file.pictures(unquote(column)):
            name = f"{file.name}/{row}/{column}"
            total += size
            if total > 8 * MEGABYTE and total > self._limits.ratio * packed:  # rows that repeat one value
                raise bomb(self._limits)
            if name not in wanted or size > self._limits.image_bytes:
                _skip(source, size)
                if name in wanted:
                    yield name, too_large(name, size, self._limits)
            elif size < 0:
                sentence = f"Column {shown(column)} has no picture in this row."
                yield name, Skipped(name, "image_missing", sentence)
            else:
                yield name, source.read(size)


def saved_dataset(path: Path, limits: Limits) -> ArrowTables | None:
    """Returns a folder that Hugging Face's `save_to_disk` wrote as a container, None for any other folder.

    Its files are Arrow streams, named by `state.json` in their order; a dataset of several splits has a folder
    for each.

    Raises:
        BadUpload: a file that it should hold is missing or unreadable.
    """
    if (path / _DATASETS).is_file():
        names = [Path(str(name)).name for name in _json_of(path / _DATASETS).get("splits", [])]
    elif (path / _DATASET).is_file() and (path / "state.json").is_file():
        names = [""]
    else:
        return None
    stated = {name: SPLITS[name.casefold()] for name in names if name.casefold() in SPLITS}
    # Of one that holds nothing out we hold out a part ourselves: else nobody could say what was learned of it.
    if Split.TEST not in stated.values():
        stated = {}
    files, splits = dict[str, Path](), dict[str, str]()
    for name in names:
        for file in _data_files(path / name):
            label = f"{name}/{file.name}" if name else file.name
            files[label] = file
            if name in stated:
                splits[label] = stated[name].value
    return ArrowTables(path.name, files, limits, splits=splits)


def _data_files(folder: Path) -> Iterator[Path]:
    for entry in _json_of(folder / "state.json").get("_data_files", []):
        name = entry.get("filename", "") if isinstance(entry, dict) else ""
        file = folder / Path(str(name)).name
        if not name or not file.is_file() or file.is_symlink():
            raise BadUpload(
                "damaged", f"The saved dataset lacks its file {shown(str(name))!r}. Save it again."
            )
        yield file


def _json_of(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise BadUpload("damaged", f"The saved dataset's {path.name} cannot be read. Save it again.")
    return found


def _address(name: str) -> tuple[str, str, str]:
    table, _, rest = name.rpartition("/")
    table, _, row = table.rpartition("/")
    return table, row, rest


def _skip(source: IO[bytes], size: int) -> None:
    while size > 0:
        block = source.read(min(size, 1 << 20))
        if not block:
            return
        size -= len(block)


def _open(path: Path, limits: Limits, *, folder: Path | None, within: str | None) -> ArrowTables:
    name = within or path.name
    return ArrowTables(name, {name: path}, limits, folder=folder, is_upload=within is None)


def _lines(name: str, text: Text, limits: Limits) -> Iterator[Line]:
    if isinstance(text.data, Path):
        yield from ArrowFile(text.data, name, limits.text_bytes).lines()
        return
    with tempfile.NamedTemporaryFile(suffix=".parquet") as spooled:  # it lay in an archive
        spooled.write(text.data)
        spooled.flush()
        file = ArrowFile(Path(spooled.name), name, limits.text_bytes)
        if file.embedded:
            sentence = "It holds the pictures themselves: upload it by itself, or unpack the archive."
            yield Skipped(name, "nested_archive", sentence)
        else:
            yield from file.lines()


def _is_arrow(path: Path, head: bytes) -> bool:
    return head.startswith(_MAGIC)


ARROW = Format(
    names=("Parquet", "Arrow"),
    suffixes=(".parquet", ".arrow"),
    recognises=_is_arrow,
    opens=_open,
    is_shard=True,
    lines=_lines,
)
FORMATS = (ARROW,)
