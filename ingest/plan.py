"""From a scan to a plan: which rows belong to which picture, and which pictures have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ingest.errors import BadRow, BadUpload
from ingest.limits import Limits
from ingest.readers.arrow_file import ArrowTables, spooled
from ingest.readers.container import (
    ARROW_SUFFIXES,
    Container,
    Listing,
    Problem,
    Row,
    Table,
    shown,
    stem_of,
    suffix_of,
)
from ingest.readers.table import decode_text, read_rows, sidecar_rows
from ingest.readers.table_file import TableFile

_NOT_CAPTIONS = frozenset(("readme", "license", "licence", "notice", "classes", "labels", "requirements"))


@dataclass(slots=True)
class Plan:
    """What is to be read and judged.

    `rows` are by picture name; a picture with an empty list has no caption and joins the gallery only. `places` number
    the rows as they stand in their tables, by what reports call them: pictures are read in the container's order, and
    only the tables' own shows that captions slipped.
    """

    rows: dict[str, list[Row]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Ties one more row to its picture."""
        self.rows.setdefault(row.image, []).append(row)
        self.places.setdefault(shown(row.where), len(self.places))


def make_plan(container: Container, *, mapping: Mapping[str, str], limits: Limits) -> Plan:
    """Scans a container and ties captions to pictures.

    Raises:
        BadUpload: the container is refused, or it is a table that names no pictures.
    """
    listing = container.scan()
    plan = Plan(rows={name: [] for name in listing.pictures}, problems=listing.problems, notes=listing.notes)
    beside = _Beside(listing.pictures)
    ignored: list[str] = []
    for name in sorted({*listing.texts, *listing.tables}):
        table = listing.tables.get(name)
        data = listing.texts.pop(name, b"")  # freed as soon as it is parsed
        if table is not None:
            _add_table(name, table, container, mapping, limits, plan)
        elif isinstance(container, TableFile):
            _add_table(name, data, container, mapping, limits, plan)
        elif suffix_of(name) == ".json":
            _add_json(name, data, beside, limits, plan, ignored)
        elif suffix_of(name) == ".txt":
            _add_sidecar(name, data, beside, plan, ignored)
        elif suffix_of(name) in ARROW_SUFFIXES:
            _add_packed_table(name, data, container, mapping, limits, plan)
        else:
            _add_table(name, data, container, mapping, limits, plan)
    _note_ignored(plan, listing, ignored)
    return plan


class _Beside:
    """Finds the picture that a text lies beside: of the same name but for the ending.

    Where there is none, the name up to its first dot counts, as in webdataset: `17.caption.txt` is of `17.jpg`.
    """

    def __init__(self, pictures: Sequence[str]) -> None:
        self._by_stem = {stem_of(name): name for name in reversed(pictures)}
        self._by_key: dict[str, set[str]] = {}
        for name in pictures:
            self._by_key.setdefault(_key_of(name), set()).add(name)

    def picture(self, name: str) -> str | None:
        if stem_of(name) in self._by_stem:
            return self._by_stem[stem_of(name)]
        same = self._by_key.get(_key_of(name), set())
        return next(iter(same)) if len(same) == 1 else None


def _key_of(name: str) -> str:
    folder, slash, last = name.rpartition("/")
    return folder + slash + last.split(".", 1)[0]


def _add_json(
    name: str, data: bytes, beside: _Beside, limits: Limits, plan: Plan, ignored: list[str]
) -> None:
    picture = beside.picture(name)
    if picture is None:
        ignored.append(name)
        return
    for row in sidecar_rows(name, data, picture, limits):
        if isinstance(row, Problem):
            plan.problems.append(row)
        else:
            plan.add(row)


def _add_sidecar(name: str, data: bytes, beside: _Beside, plan: Plan, ignored: list[str]) -> None:
    picture = beside.picture(name)
    if picture is None:
        if stem_of(name).rsplit("/", 1)[-1].lower() in _NOT_CAPTIONS:
            ignored.append(name)
        else:
            plan.problems.append(
                Problem(name, "image_missing", "No picture of the same name lies beside this text.")
            )
        return
    # img2dataset writes a caption into both files beside a picture, and the .json may also tell its language.
    told = {(row.caption or "").strip() for row in plan.rows[picture] if suffix_of(row.where) == ".json"}
    lines = decode_text(data).splitlines()
    captions = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    for number, line in captions or [(1, "")]:
        if line.strip() not in told or not line.strip():
            plan.add(Row(f"{name} line {number}", picture, line))


def _add_packed_table(
    name: str, data: bytes, container: Container, mapping: Mapping[str, str], limits: Limits, plan: Plan
) -> None:
    """Adds a Parquet file that lay in an archive."""
    with spooled(name, data, limits) as file:
        try:
            if file.embedded:
                sentence = "It holds the pictures themselves: upload it by itself, or unpack the archive."
                plan.problems.append(Problem(name, "nested_archive", sentence))
                return
            table = file.table()
        except BadUpload as error:
            plan.problems.append(Problem(name, error.code, error.sentence))
            return
        _add_table(name, table, container, mapping, limits, plan)


def _add_table(
    name: str,
    data: bytes | Table,
    container: Container,
    mapping: Mapping[str, str],
    limits: Limits,
    plan: Plan,
) -> None:
    try:
        for row in read_rows(
            name, data, mapping=mapping, limits=limits, locate=container.locate, notes=plan.notes
        ):
            if isinstance(row, Problem):
                plan.problems.append(row)
            elif row.caption is None and isinstance(data, Table) and data.embedded:
                plan.rows.setdefault(row.image, [])
            else:
                plan.add(row)
    except (BadRow, BadUpload) as error:
        # A table by itself, or one the user mapped columns for, was meant to be read.
        if isinstance(container, TableFile | ArrowTables) or (mapping and isinstance(error, BadRow)):
            raise BadUpload(error.code, error.sentence) from None
        plan.problems.append(Problem(name, error.code, error.sentence))


def _note_ignored(plan: Plan, listing: Listing, ignored: list[str]) -> None:
    ignored += [name for name in listing.others if name not in plan.rows]
    if ignored:
        more = " and others" if len(ignored) > 3 else ""
        plan.notes.append(f"{len(ignored)} other files were ignored ({', '.join(ignored[:3])}{more})")
