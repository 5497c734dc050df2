"""What became of each thing in an upload: the report a person reads and downloads."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from ingest.readers.container import Remark
from ingest.sentence import joined, phrase

Outcome = Literal["accepted", "held", "rejected"]

KEPT_ROWS = 20_000  # rows kept in the catalog; plain accepted ones are only counted there
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class ReportRow:
    """One pair or picture: where it stood, what became of it, a stable reason code and a sentence."""

    where: str
    outcome: Outcome
    code: str = "ok"
    sentence: str = ""


@dataclass(frozen=True)
class IntakeReport:
    """The result of one intake."""

    chunk_id: str  # 12 hexadecimal characters; the same content gives the same id
    name: str  # what the upload is called
    new_pairs: int  # pairs that no earlier chunk had
    known_pairs: int  # pairs of this chunk that were known already
    new_images: int  # pictures that no earlier chunk had
    held: int  # how many rows wait for a person
    rejected: int  # how many rows cannot be used
    # by "language/domain", how many of the chunk's pairs are train, validation and test
    per_slice: Mapping[str, Mapping[str, int]]
    # of the pairs in other languages, the share whose picture has an English caption; None when there are no such
    # pairs
    english_share: float | None
    notes: Sequence[str]  # remarks on the whole upload; those that name files of it are `Remark`s
    rows: Sequence[ReportRow]  # every row
    # by "language/domain", how many distinct things of the chunk are held out: pictures of one group, or near-copies
    # of one another, count once
    held_out: Mapping[str, int] = field(default_factory=dict)
    # how many new pictures are near-copies: `in_upload` of an earlier one of the upload, `of_known` of one in the
    # catalog, `of_held_out` of one there that is held out
    copies: Mapping[str, int] = field(default_factory=dict)
    # pictures of a folder that was read again whose files are as they were
    unchanged: int = 0
    moved: int = 0  # how many were found at another place than before
    gone: int = 0  # how many are at no place any more, and in no answer
    forgotten: int = 0  # how many of these were removed for good
    # by language, how many captions without one were detected to be in it
    detected: Mapping[str, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON values, with the rows that have something to say (at most 20,000).

        The notes that name files come last; `notes_on_files` says how many they are.
        """
        on_files = [note for note in self.notes if isinstance(note, Remark)]
        telling = [row for row in self.rows if row.code != "ok" or row.sentence]
        stated = {one.name: getattr(self, one.name) for one in fields(self)}
        return stated | {
            "per_slice": {key: dict(counts) for key, counts in self.per_slice.items()},
            "notes": [*(note for note in self.notes if not isinstance(note, Remark)), *on_files],
            "notes_on_files": len(on_files),
            "reasons": dict(Counter(row.code for row in self.rows).most_common()),
            "rows": [asdict(row) for row in telling[:KEPT_ROWS]],
            "rows_left_out": max(0, len(telling) - KEPT_ROWS),
        }


def guarded(cell: str) -> str:
    """Returns a cell that no spreadsheet takes for a formula."""
    return "'" + cell if cell.startswith(_FORMULA_STARTS) else cell


def withheld_note(count: int) -> str:
    """Says that pictures which a person took out stay out."""
    if count == 1:
        return phrase(
            "1 picture that a person took out stays out; `perennial pictures --withheld` lists them, "
            "`--put-back` takes them in again"
        )
    return phrase(
        "{count} pictures that a person took out stay out; `perennial pictures --withheld` lists them, "
        "`--put-back` takes them in again",
        count=count,
    )


def rescan_notes(unchanged: int, moved: int, gone: int, forgotten: int) -> list[str]:
    """Says what reading a folder again has shown."""
    told = {
        phrase("unchanged pictures, which were not read again: {count}", count=f"{unchanged:,}"): unchanged,
        phrase("pictures that moved: {count}", count=f"{moved:,}"): moved,
        phrase(
            "pictures whose files are gone: {count}; no answer shows them until they are back (`--forget` removes "
            "them for good)",
            count=f"{gone:,}",
        ): gone,
        phrase("pictures that were forgotten: {count}", count=f"{forgotten:,}"): forgotten,
    }
    return [note for note, count in told.items() if count]


def batch_line(report: Mapping[str, Any]) -> str:
    """Says in one line what reading a folder again has changed, from a report's JSON."""
    counts = {
        phrase("new pictures: {count}", count=report["new_images"]): report["new_images"],
        phrase("new captions: {count}", count=report["new_pairs"]): report["new_pairs"],
        phrase("moved: {count}", count=report["moved"]): report["moved"],
        phrase("gone: {count}", count=report["gone"]): report["gone"],
        phrase("not usable: {count}", count=report["rejected"]): report["rejected"],
    }
    told = [words for words, count in counts.items() if count]
    return joined(told, " · ") if told else phrase("nothing new")


def copies_note(copies: Mapping[str, int]) -> str | None:
    """Returns what a report says of near-copies, None when there are none."""
    told = []
    if copies["in_upload"]:
        told.append(f"{copies['in_upload']} of others in the upload")
    if copies["of_known"]:
        told.append(f"{copies['of_known']} of known pictures")
    if copies["of_held_out"]:
        told.append(f"{copies['of_held_out']} of held-out ones, which are not trained on")
    if not told:
        return None
    return f"near-copies: {', '.join(told)}; the copies of one picture are in one split and count once"


def regained_note(captions: Sequence[str]) -> list[str]:
    """Returns what a report says of captions that had been read in a wrong encoding; nothing when there are none."""
    if not captions:
        return []
    return [
        phrase(
            "{count} captions had been read in a wrong encoding and were repaired, such as “{example}”",
            count=len(captions),
            example=captions[0][:80],
        )
    ]


def top_reasons(rows: Sequence[ReportRow], *, limit: int = 3) -> str:
    """Returns the most frequent reasons with an example sentence each, for one message."""
    unused = [row for row in rows if row.outcome != "accepted"]
    examples = {row.code: row.sentence for row in reversed(unused)}
    counts = Counter(row.code for row in unused).most_common(limit)
    return " ".join(f"{count} x {code}: {examples[code]}" for code, count in counts)
