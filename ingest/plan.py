"""From a scan to a plan: which rows belong to which picture, and which pictures have none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from ingest.errors import BadRow, BadUpload
from ingest.limits import Limits
from ingest.readers.container import Container, Format, Remark, Row, Skipped, Text, Told
from ingest.readers.formats import BY_SUFFIX
from ingest.readers.listing import Listing
from ingest.readers.names import is_address, shown, stem_of
from ingest.readers.table import read_rows
from ingest.readers.table_file import unreadable
from ingest.sentence import phrase

_NOT_CAPTIONS = frozenset(("readme", "license", "licence", "notice", "classes", "labels", "requirements"))


@dataclass(slots=True)
class IntakePlan:
    """What is to be read and judged.

    `rows` are by picture name; a picture with an empty list has no caption and joins the gallery only. `places` number
    the rows as they stand in their tables, by what reports call them: pictures are read in the container's order, and
    only the tables' own shows that captions slipped.
    """

    rows: dict[str, list[Row]] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    problems: list[Skipped] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # by picture name, what tables and files beside pictures say of it beyond captions
    told: dict[str, Told] = field(default_factory=dict)
    # by language, how many captions without one were detected to be in it
    detected: dict[str, int] = field(default_factory=dict)

    def add(self, entry: Row | Skipped | Remark) -> None:
        """Ties one more row to its picture, or keeps what a reader has to say; places become fit for a report."""
        if isinstance(entry, Remark):
            self.notes.append(entry)
        elif isinstance(entry, Skipped):
            self.problems.append(replace(entry, where=shown(entry.where)))
        else:
            self._add_row(entry)

    def _add_row(self, entry: Row) -> None:
        if entry.told is not None:
            self.told[entry.image] = self.told.get(entry.image, Told()) | entry.told
        if entry.caption is None:
            self.rows.setdefault(entry.image, [])
        else:
            row = replace(entry, where=shown(entry.where))
            self.rows.setdefault(row.image, []).append(row)
            self.places.setdefault(row.where, len(self.places))


def make_plan(
    container: Container, *, mapping: Mapping[str, str], limits: Limits, fetch: bool = False
) -> IntakePlan:
    """Scans a container and ties captions to pictures; with `fetch` tables may name addresses, too.

    Raises:
        BadUpload: the container is refused, or it is a table that names no pictures.
    """
    listing = container.scan(BY_SUFFIX)
    plan = IntakePlan(rows={name: [] for name in listing.pictures}, notes=listing.notes)
    for problem in listing.problems:
        plan.add(problem)
    beside = _Beside(listing.pictures, limits)

    def locate(name: str) -> str | None:
        return container.locate(name) if not is_address(name) else name if fetch else None

    for name in sorted(listing.texts):
        text = listing.texts.pop(name)  # freed as soon as it is parsed
        try:
            if text.format.captions is not None:
                beside.add(name, text, plan)
                continue
            rows = read_rows(name, text, mapping=mapping, limits=limits, locate=locate)
            for row in rows:
                plan.add(row)
        except (BadRow, BadUpload) as error:
            # A table by itself, or one the user mapped columns for, was meant to be read.
            if text.is_upload or (mapping and isinstance(error, BadRow)):
                raise BadUpload(error.code, error.sentence) from None
            plan.add(Skipped(name, error.code, error.sentence))
        except OSError as error:
            plan.add(unreadable(name, error))
    _note_ignored(plan, listing, beside.ignored)
    return plan


class _Beside:
    """Ties texts to the picture that they lie beside: of the same name but for the ending.

    Where there is none, the name up to its first dot counts, as in webdataset: `17.caption.txt` is of `17.jpg`.
    """

    def __init__(self, pictures: Sequence[str], limits: Limits) -> None:
        self.ignored: list[str] = []
        self._limits = limits
        self._by_stem = {stem_of(name): name for name in reversed(pictures)}
        self._by_key: dict[str, set[str]] = {}
        self._told: dict[tuple[str, str], Format] = {}
        for name in pictures:
            self._by_key.setdefault(_key_of(name), set()).add(name)

    def add(self, name: str, text: Text, plan: IntakePlan) -> None:
        """Adds what a text says of its picture."""
        picture = self._picture(name)
        if picture is not None and text.format.captions is not None:
            for row in text.format.captions(name, text.read(), picture, self._limits):
                if isinstance(row, Skipped) or not self._is_told(row, text.format):
                    plan.add(row)
        elif text.format.may_be_other or stem_of(name).rsplit("/", 1)[-1].lower() in _NOT_CAPTIONS:
            self.ignored.append(name)
        else:
            sentence = phrase("No picture of the same name lies beside this text.")
            plan.add(Skipped(name, "image_missing", sentence))

    def _picture(self, name: str) -> str | None:
        if stem_of(name) in self._by_stem:
            return self._by_stem[stem_of(name)]
        same = self._by_key.get(_key_of(name), set())
        return next(iter(same)) if len(same) == 1 else None

    def _is_told(self, row: Row, format: Format) -> bool:
        """Returns whether a file of another format has this caption already, and this one states nothing more.

        img2dataset writes a caption into both files beside a picture, and the .json may also tell its language.
        """
        caption = (row.caption or "").strip()
        first = self._told.setdefault((row.image, caption), format)
        states_more = any((row.language, row.domain, row.split, row.group))
        return bool(caption) and first is not format and not states_more


def _key_of(name: str) -> str:
    folder, slash, last = name.rpartition("/")
    return folder + slash + last.split(".", 1)[0]


def _note_ignored(plan: IntakePlan, listing: Listing, ignored: Sequence[str]) -> None:
    names = [*ignored, *(name for name in listing.others if name not in plan.rows)]
    if names:
        more = " and others" if len(names) > 3 else ""
        plan.notes.append(f"{len(names)} other files were ignored ({', '.join(names[:3])}{more})")
