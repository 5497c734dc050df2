"""From a scan to a plan: which rows belong to which picture, and which pictures have none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingest.errors import BadRow, BadUpload
from ingest.limits import Limits
from ingest.readers.container import (
    Container,
    Listing,
    Problem,
    Row,
    shown,
    stem_of,
    suffix_of,
)
from ingest.readers.table import TableFile, decode_text, read_rows

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
    by_stem = {stem_of(name): name for name in reversed(listing.pictures)}
    ignored: list[str] = []
    for name in sorted(listing.texts):
        data = listing.texts.pop(name)  # freed as soon as it is parsed
        if suffix_of(name) == ".txt" and not isinstance(container, TableFile):
            _add_sidecar(name, data, by_stem, plan, ignored)
        else:
            _add_table(name, data, container, mapping, limits, plan)
    _note_ignored(plan, listing, ignored)
    return plan


def _add_sidecar(name: str, data: bytes, by_stem: Mapping[str, str], plan: Plan, ignored: list[str]) -> None:
    picture = by_stem.get(stem_of(name))
    if picture is None:
        if stem_of(name).rsplit("/", 1)[-1].lower() in _NOT_CAPTIONS:
            ignored.append(name)
        else:
            plan.problems.append(
                Problem(name, "image_missing", "No picture of the same name lies beside this text.")
            )
        return
    lines = decode_text(data).splitlines()
    captions = [(number, line) for number, line in enumerate(lines, start=1) if line.strip()]
    for number, line in captions or [(1, "")]:
        plan.add(Row(f"{name} line {number}", picture, line))


def _add_table(
    name: str, data: bytes, container: Container, mapping: Mapping[str, str], limits: Limits, plan: Plan
) -> None:
    try:
        for row in read_rows(
            name, data, mapping=mapping, limits=limits, locate=container.locate, notes=plan.notes
        ):
            if isinstance(row, Problem):
                plan.problems.append(row)
            else:
                plan.add(row)
    except BadRow as error:
        # A table by itself, or one the user mapped columns for, was meant to be read.
        if isinstance(container, TableFile) or mapping:
            raise BadUpload(error.code, error.sentence) from None
        plan.problems.append(Problem(name, error.code, error.sentence))


def _note_ignored(plan: Plan, listing: Listing, ignored: list[str]) -> None:
    ignored += [name for name in listing.others if name not in plan.rows]
    if ignored:
        more = " and others" if len(ignored) > 3 else ""
        plan.notes.append(f"{len(ignored)} other files were ignored ({', '.join(ignored[:3])}{more})")
