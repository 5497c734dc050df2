"""An upload as one file: a zip with pictures and a table of their captions."""

import csv
import io
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from ingest.errors import BadUpload
from ingest.intake import IntakeOptions
from ingest.named_pictures import require_most
from ingest.plan import make_plan
from ingest.readers.container import EmbeddedPicture
from ingest.readers.formats import open_container
from ingest.readers.listing import Listing
from ingest.readers.names import VIDEO_SUFFIXES, shown, suffix_of, text_of

_FIXED_TIME = (2020, 1, 1, 0, 0, 0)  # the same content makes the same bytes


def write_upload(
    path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]], pictures: Iterable[tuple[str, bytes]]
) -> None:
    """Writes `captions.csv` and the pictures, names and bytes; an existing file is replaced."""
    table = io.StringIO(newline="")
    csv.writer(table, lineterminator="\n").writerows([columns, *rows])
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in chain([("captions.csv", table.getvalue().encode())], pictures):
            entry = zipfile.ZipInfo(name, _FIXED_TIME)
            is_packed = name.endswith(".csv")  # pictures are compressed already
            entry.compress_type = zipfile.ZIP_DEFLATED if is_packed else zipfile.ZIP_STORED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)


@contextmanager
def sendable(source: Path, options: IntakeOptions) -> Iterator[Path]:
    """Yields one file of what is to be taken in, for who cannot look into folders of this machine.

    A file is sent as it is; a folder as a zip of it, stored, as pictures are compressed already, without the hidden
    files and videos that no reader takes; and a table whose
    pictures lie in `options.pictures` as a zip with those that it names.

    Raises:
        BadUpload: there is no such file or folder, or not the pictures that the table names.
    """
    if not source.exists():
        raise BadUpload("source_missing", f"There is no file or folder {shown(str(source))!r}.")
    with tempfile.TemporaryDirectory() as scratch:
        packed = Path(scratch) / f"{source.resolve().name}.zip"
        if options.pictures is not None:
            yield packed if _pack_table(packed, source, options.pictures, options) else source
        elif source.is_dir():
            _pack_folder(packed, source, options)
            yield packed
        else:
            yield source


def _pack_folder(packed: Path, folder: Path, options: IntakeOptions) -> None:
    listing = Listing(options.limits, {})
    with _stored(packed) as archive:
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            is_left_out = listing.is_left_out(name) or suffix_of(name) in VIDEO_SUFFIXES
            if not is_left_out and path.is_file() and not path.is_symlink():
                archive.write(path, text_of(name))


def _stored(packed: Path) -> zipfile.ZipFile:
    # Dates outside a zip's years, 1980 to 2107, become the nearest: a camera without a clock writes such.
    return zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED, strict_timestamps=False)


def _pack_table(packed: Path, table: Path, pictures: Path, options: IntakeOptions) -> bool:
    """Packs a table and the pictures that it names; returns False for one that holds them itself."""
    container = open_container(table, options.limits, pictures=pictures)
    plan = make_plan(container, mapping=options.mapping, limits=options.limits)
    require_most(plan, pictures)
    if any(isinstance(name, EmbeddedPicture) for name in plan.rows):
        return False
    with _stored(packed) as archive:
        archive.write(table, text_of(table.name))
        for name, data in container.read(plan.rows):
            if isinstance(data, bytes):
                archive.writestr(name, data)
    return True
