"""The held and rejected rows of an upload and their pictures, collected while it is read.

Bounded by `ingest.aside`: what does not fit is in the report alone. Of rejected rows the thumbnail is kept, of held
ones the picture too, since they may be accepted; a picture that is stored anyway is not kept twice.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from ingest.aside import MOST_BYTES, MOST_HELD, MOST_REJECTED
from ingest.blobs import BlobStore
from ingest.captions import UNDETERMINED, normalise_language
from ingest.checks import Accepted
from ingest.errors import BadImage, UnknownLanguage
from ingest.limits import Limits
from ingest.look import Look, look_at
from ingest.pair import ImageId, image_id_of
from ingest.readers.container import Row
from ingest.records import AsidePair, NewAside
from ingest.report import ReportRow

_MOST = {"held": MOST_HELD, "rejected": MOST_REJECTED}
_TEXT_SHOWN = 200
_CAN_BE_SHOWN = frozenset({"image_too_small", "image_too_long", "image_flat"})
"""Why a picture may be rejected that is safe to decode all the same."""


class Unsettled:
    """The held and rejected rows of one upload.

    `language` and `domain` are of captions and pictures that state none.
    """

    def __init__(self, blobs: BlobStore, *, language: str | None, domain: str | None, limits: Limits) -> None:
        self._blobs = blobs
        self._language = language
        self._domain = domain
        self._limits = limits
        self._rows: list[NewAside] = []
        self._counts: Counter[str] = Counter()
        self._pictures: dict[ImageId, tuple[bytes | None, bytes]] = {}
        self._bytes = 0

    def row(self, entry: ReportRow, row: Row, image_id: ImageId, data: bytes, look: Look | None) -> None:
        """Takes note of a row that was judged and not accepted.

        `look` is of its picture; None when that is stored already.
        """
        if not self._has_room(entry.outcome):
            return
        if look is not None and not self._keep(image_id, data, look, entry.outcome):
            return
        if entry.outcome != "held":
            self._note(entry, image_id, language=_beginning(row.language)[:35], text=_beginning(row.caption))
            return
        stated = {"domain": row.domain or self._domain, "split": row.split, "group": row.group}
        self._note(entry, image_id, language=self._language_of(row), text=row.caption, **stated)

    def bad_picture(self, error: BadImage, rows: Sequence[Row], places: Sequence[str], data: bytes) -> None:
        """Takes note of a picture that was rejected, if it can be shown: with its first row, or by its name alone."""
        if error.code not in _CAN_BE_SHOWN or not self._has_room("rejected"):
            return
        lenient = replace(self._limits, shortest_side=1, aspect=self._limits.image_pixels, allow_flat=True)
        try:
            look = look_at(data, lenient)
        except BadImage:
            return
        row = rows[0] if rows else Row(places[0], places[0], None)
        entry = ReportRow(places[0], "rejected", error.code, error.sentence)
        self.row(entry, row, image_id_of(data), data, look)

    def pair(self, pair: Accepted, entry: ReportRow, domain: str) -> None:
        """Takes note of a pair that was held when the whole upload was seen; its picture is stored by then."""
        if self._has_room(entry.outcome):
            stated = {"domain": domain, "split": pair.split and pair.split.value, "group": pair.group}
            self._note(entry, pair.image_id, language=pair.language, text=pair.text, **stated)

    def kept(self, leaving: Collection[ImageId]) -> list[NewAside]:
        """Stores the pictures that nothing else keeps, and returns the rows that can be shown with theirs.

        `leaving` are pictures that are about to leave the store.
        """
        ids = list(dict.fromkeys(row.image_id for row in self._rows))
        stored = dict(zip(ids, self._blobs.contains(ids), strict=True))
        held = {row.image_id for row in self._rows if row.outcome == "held"}
        for image_id in ids:
            if stored[image_id] and image_id not in leaving:
                self._pictures.pop(image_id, None)
            elif stored[image_id]:
                original = self._blobs.original(image_id) if image_id in held else None
                if self._fits(original):
                    self._pictures[image_id] = (original, self._blobs.thumbnail(image_id))
                else:
                    stored[image_id] = False
        self._blobs.put_aside((image_id, *picture) for image_id, picture in self._pictures.items())
        return [row for row in self._rows if stored[row.image_id] or row.image_id in self._pictures]

    def _keep(self, image_id: ImageId, data: bytes, look: Look, outcome: str) -> bool:
        """Keeps a picture in memory, its file only for a held pair; returns whether there is room for it."""
        original, small = self._pictures.get(image_id, (None, b""))
        if outcome == "held" and original is None:
            if not self._fits(data):
                return False
            original = data
        self._pictures[image_id] = (original, small or look.thumbnail)
        return True

    def _fits(self, original: bytes | None) -> bool:
        size = len(original or b"")
        if self._bytes + size > MOST_BYTES:
            return False
        self._bytes += size
        return True

    def _has_room(self, outcome: str) -> bool:
        return self._counts[outcome] < _MOST.get(outcome, 0)

    def _note(self, entry: ReportRow, image_id: ImageId, **stated: str | None) -> None:
        self._counts[entry.outcome] += 1
        texts = {name: text or "" for name, text in stated.items()}
        self._rows.append(NewAside(entry.where, entry.outcome, entry.code, entry.sentence, image_id, **texts))

    def _language_of(self, row: Row) -> str:
        try:
            language = normalise_language(row.language or "")
        except UnknownLanguage:  # never of a held row, which was judged
            language = UNDETERMINED
        return (self._language or "") if language == UNDETERMINED else language


def as_row(pair: AsidePair, *, language: str | None, is_known: bool) -> Row:
    """Returns a held pair as a row of an upload, without what it was held for.

    It takes `language` where it states none; `is_known` says whether the catalog has its picture, with a domain for
    good.
    """
    return Row(
        where=str(pair.id),
        image=pair.image_id,
        caption=pair.text,
        language=pair.language or language,
        domain=None if is_known else pair.domain or None,
        split=None if pair.code == "split_conflict" else pair.split or None,
        group=pair.group or None,
    )


def _beginning(text: str | None) -> str:
    """Returns the first part of any text, printable."""
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}"
        for letter in (text or "")[:_TEXT_SHOWN]
    )
