"""From a scan to a plan: which rows belong to which picture, and which pictures have none."""

import posixpath
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
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

_ASKED = 100  # names of a table that say under which folder all are found
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
    tables = {posixpath.dirname(name) for name, text in listing.texts.items() if text.format.lines}
    for name in sorted(listing.texts):
        text = listing.texts.pop(name)  # freed as soon as it is parsed
        try:
            if text.format.captions is not None:
                beside.add(name, text, plan)
                continue
            finder = _Finder(container, tables, fetch=fetch)
            problems, notes = len(plan.problems), len(plan.notes)
            for row in read_rows(name, text, mapping=mapping, limits=limits, locate=finder):
                plan.add(row)
            if finder.moves():  # so none of its lines has a picture yet
                del plan.problems[problems:], plan.notes[notes:]
                for row in read_rows(name, text, mapping=mapping, limits=limits, locate=finder):
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


class _Finder:
    """Finds the pictures that one table names.

    A name without a folder may be that of the only picture called so, unless that lies beside a table of its own. One
    with a folder is not: in another folder lies another picture, as where each class or split counts from one. Only
    where no picture lies as the table says, all may lie below one folder more or less, or in none where all are called
    differently.
    """

    def __init__(self, container: Container, tables: Collection[str], *, fetch: bool) -> None:
        """Begins a table; `tables` are the folders that tables lie in, and with `fetch` it may name addresses."""
        self._container, self._tables, self._fetch = container, tables, fetch
        self._has_found = False
        self._missed: dict[str, None] = {}
        self._less, self._more = "", ""  # what to leave out of a name's beginning, and what to put there
        self._is_flat = False  # whether pictures lie in no folder though names have some

    def __call__(self, names: Sequence[str]) -> str | None:
        if is_address(names[0]):
            self._has_found |= self._fetch
            return names[0] if self._fetch else None
        top = names[-1]
        found = next(filter(None, map(self._container.locate, names)), None)
        is_elsewhere = found is not None and found not in names and "/" not in top
        if is_elsewhere and names[1:] and posixpath.dirname(found or "") in self._tables:
            found = None
        if found is None and (self._less or self._more) and top.startswith(self._less):
            found = self._exact(self._more + top.removeprefix(self._less))
        if found is None and self._is_flat:
            found = self._exact(posixpath.basename(top))
        self._has_found |= found is not None
        if not self._has_found:
            self._missed[top] = None
        return found

    def moves(self) -> bool:
        """Returns whether all names mean pictures that lie otherwise, and finds them there from now on."""
        if self._has_found or not self._missed:
            return False
        shared = posixpath.commonpath(map(posixpath.dirname, self._missed)).split("/")
        without = ["/".join(shared[:end]) + "/" for end in range(1, len(shared) + 1) if shared[0]]
        some = list(self._missed)[:_ASKED]
        ways = Counter(("", more) for name in some if "/" in name for more in self._container.above(name))
        ways.update(
            (less, "")
            for less in without
            for name in some
            if self._exact(name.removeprefix(less)) is not None
        )
        best = ways.most_common(2)
        if not best or best[0][1] == best[-1][1] and len(best) > 1:
            called = Counter(map(posixpath.basename, self._missed))
            self._is_flat = not best and called.most_common(1)[0][1] == 1
            return self._is_flat
        self._less, self._more = best[0][0]
        return True

    def _exact(self, name: str) -> str | None:
        """Finds a picture in the folder that is named, and in no other."""
        found = self._container.locate(name)
        return found if found is not None and found.count("/") == name.count("/") else None


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
        plan.notes.append(Remark(f"{len(names)} other files were ignored ({', '.join(names[:3])}{more})"))
