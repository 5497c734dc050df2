"""What one upload yields: its pictures and pairs, judged while it streams by and settled when all is seen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingest.blobs import BlobStore
from ingest.catalog import Catalog
from ingest.checks import Accepted, Judge, judge_split, repeated_captions
from ingest.copies import Copies, CopyFinder
from ingest.errors import UNREADABLE, BadImage, NoValidPair, StoreError
from ingest.facts.record import PictureFacts, together
from ingest.grouping import Anchor, Claim, Settled, settle_splits
from ingest.held_out import grown
from ingest.limits import Limits
from ingest.look import ReadPicture, look_at, looked_at
from ingest.pair import ImageId, SliceKey, Split
from ingest.plan import IntakePlan
from ingest.readers.container import Row, Skipped, Told
from ingest.readers.names import shown
from ingest.records import NewAside, NewImage
from ingest.report import ReportRow, regained_note, top_reasons
from ingest.sentence import joined, phrase
from ingest.unsettled import Unsettled
from ingest.written import CaptionInFile
from ingest.written import rows_of as written_rows

if TYPE_CHECKING:
    from ingest.tally import Tally

Progress = Callable[[int, int | None], None]


class Harvest:
    """What one upload, or a part of it, yields, picture after picture; `before` are the parts before it.

    `trained` are withdrawn pictures that the live version was trained on: they stay in training.
    """

    def __init__(
        self,
        catalog: Catalog,
        blobs: BlobStore,
        *,
        language: str | None,
        domain: str | None,
        limits: Limits,
        before: Tally,
        trained: Collection[ImageId] = (),
    ) -> None:
        self.catalog = catalog
        self._trained = trained
        self._before = before
        self.images: dict[ImageId, NewImage] = {}
        self.pairs: list[Accepted] = []
        self.rows: list[ReportRow] = []
        self.stored: set[ImageId] = set()  # blobs that this upload brought
        self.names: dict[ImageId, set[str]] = {}  # what the container calls each picture
        self.facts: dict[ImageId, PictureFacts] = {}  # what the files of new pictures say of them
        self.notes: list[str] = []  # for the report
        self.aside: list[NewAside] = []  # rows that can be shown with their pictures, when all is settled
        self._blobs = blobs
        self._uncaptioned: set[ImageId] = set()
        self._known: dict[ImageId, Anchor] = {}
        self.settled: dict[ImageId, Settled] = {}
        self._same: Sequence[tuple[ImageId, ImageId]] = ()
        self._written: list[CaptionInFile] = []
        self._language = language
        self._limits = limits
        self._judge = Judge(language=language, domain=domain, limits=limits)
        self._unsettled = Unsettled(blobs, language=language, domain=domain, limits=limits)

    def reject(self, places: Sequence[str], code: str, sentence: str) -> None:
        """Lists each place as rejected for one reason."""
        self.rows.extend(ReportRow(where, "rejected", code, sentence) for where in places)

    def gather(
        self, pictures: Iterable[tuple[str, bytes | Skipped]], plan: IntakePlan, progress: Progress | None
    ) -> Iterator[tuple[ImageId, bytes, bytes]]:
        """Judges each picture of a plan, and yields `(id, original, thumbnail)` of those that have to be stored."""
        unread = dict(plan.rows)
        for done, read in enumerate(looked_at(pictures, self._is_new, self._limits), start=1):
            name, data, rows = read.name, read.data, plan.rows[read.name]
            unread.pop(name, None)
            places = [row.where for row in rows] or [shown(name)]
            if isinstance(data, Skipped):
                self.reject(places, data.code, data.sentence)
            else:
                try:
                    yield from self._take(read, data, rows, plan.told.get(name, Told()))
                except BadImage as error:
                    self.reject(places, error.code, error.sentence)
                    self._unsettled.bad_picture(error, rows, places, data)
            if progress is not None:
                progress(done, max(done, len(plan.rows)))
        for name, rows in unread.items():
            sentence = f"The picture {shown(name)!r} could not be read from the upload."
            self.reject([row.where for row in rows] or [shown(name)], "image_missing", sentence)

    def settle(self) -> None:
        """Applies the checks that need the whole upload.

        Raises:
            NoValidPair: nothing is left.
        """
        self._take_written()
        self.notes += regained_note(self._judge.regained)
        repeated = repeated_captions(self.pairs, self._limits)
        why = phrase("Its caption stands on very many pictures; look whether it belongs to each.")
        kept: list[Accepted] = []
        for pair in self.pairs:
            if (pair.language, pair.text) in repeated:
                self._hold(pair, ReportRow(pair.where, "held", "caption_repeated", why))
            else:
                kept.append(pair)
        self.pairs = self._in_their_splits(kept)
        used = {pair.image_id for pair in self.pairs} | self._uncaptioned
        self.images = {image_id: image for image_id, image in self.images.items() if image_id in used}
        if not self.images:
            self.forget(self.stored)
            self.stored = set()
            reasons = top_reasons(self.rows) or "It holds no picture."
            is_unread = any(row.code == UNREADABLE for row in (*self._before.rows, *self.rows))
            code = UNREADABLE if is_unread else "no_valid_pair"
            raise NoValidPair(code, f"Nothing in the upload can be used. {reasons}")
        self.aside = self._unsettled.kept(self.stored - used)
        self.forget(self.stored - used)
        self.stored &= used

    def _take_written(self) -> None:
        """Judges the captions that pictures' own files hold; a picture that has such a caption has one."""
        rows, note = written_rows(self._written, self._language)
        self.notes += [note] if note else []
        captioned: set[str] = set()
        for image_id, row in rows:
            for entry in self._judge.judge(image_id, [row], self._judge.domain_of(image_id)):
                if isinstance(entry, Accepted):
                    self.pairs.append(entry)
                    captioned.add(row.image)
                else:
                    self.rows.append(entry)
        self.rows = [row for row in self.rows if row.code != "no_caption" or row.where not in captioned]

    def copies(self) -> dict[str, int]:
        """Returns how many pictures are near-copies, as `IntakeReport.copies` has it."""
        # What the earlier parts of this upload brought counts as of the upload, not as known.
        own = {place.cluster for place in self._before.settled.values() if not place.copy_of}
        known = {
            image_id: [of for of in self.settled[image_id].copy_of if of.cluster not in own]
            for image_id in self.images
        }
        again = {other for _, other in self._same if other in self.images}
        again |= {image_id for image_id, of in known.items() if len(of) < len(self.settled[image_id].copy_of)}
        return {
            "in_upload": len(again),
            "of_known": sum(map(bool, known.values())),
            "of_held_out": sum(any(of.split is Split.TEST for of in every) for every in known.values()),
        }

    def _in_their_splits(self, pairs: Sequence[Accepted]) -> list[Accepted]:
        """Settles each picture's split and group; returns the pairs that state no other split."""
        claims, copies = self._claims(pairs)
        known_groups = self.catalog.known_groups({claim.group for claim in claims if claim.group})
        self._same = copies.same
        settled = settle_splits(claims, known_groups, copies.same)
        before = self._before
        every = slices_of([*before.pairs, *pairs], {**before.images, **self.images})
        self.settled = grown(settled, every, before.settled)
        for image_id, place in self.settled.items():
            self.images[image_id] = replace(
                self.images[image_id], split=place.split, group=place.group, cluster=place.cluster
            )
        judged = [judge_split(pair, self.settled[pair.image_id]) for pair in pairs]
        kept: list[Accepted] = []
        for pair, row in zip(pairs, judged, strict=True):
            if row.outcome == "accepted":
                self.rows.append(row)
                kept.append(pair)
            else:
                self._hold(pair, row)
        return kept

    def _hold(self, pair: Accepted, row: ReportRow) -> None:
        self.rows.append(row)
        self._unsettled.pair(pair, row, self.images[pair.image_id].domain)

    def _claims(self, pairs: Sequence[Accepted]) -> tuple[list[Claim], Copies]:
        stated: dict[ImageId, tuple[Split | None, str | None]] = dict.fromkeys(
            self._uncaptioned, (None, None)
        )
        for pair in pairs:
            split, group = stated.get(pair.image_id, (None, None))
            stated[pair.image_id] = (split or pair.split, group or pair.group)
        finder = CopyFinder(self.catalog, self._blobs)
        for image_id in stated.keys() - self._known.keys():
            if self.images[image_id].sketch is None:  # its blob was there already
                self.images[image_id] = replace(self.images[image_id], sketch=finder.sketch(image_id))
        copies = finder.find(
            {
                image_id: self.images[image_id].sketch or b""
                for image_id in stated
                if image_id not in self._known
            }
        )
        claims = [
            Claim(image_id, self._known.get(image_id), split, group, copies.known.get(image_id, ()))
            for image_id, (split, group) in stated.items()
        ]
        return claims, copies

    def forget(self, image_ids: set[ImageId]) -> None:
        """Deletes blobs that this upload brought, except those another upload has come to rely on meanwhile."""
        self._blobs.delete(image_ids - self.catalog.images(image_ids).keys())

    def require_stored(self) -> None:
        """Refuses to have pictures recorded whose files are not in the store, and leaves out what this upload brought.

        Raises:
            StoreError: files were removed while this was read.
        """
        ids = list(self.images)
        lost = [one for one, is_here in zip(ids, self._blobs.contains(ids), strict=True) if not is_here]
        if lost:
            self.forget(self.stored)
            raise StoreError(
                f"{len(lost)} of {len(ids)} pictures were removed from the store by something else while this upload "
                "was read. They were not recorded; take the upload in again."
            )

    def _is_new(self, image_id: ImageId) -> bool:
        """Returns whether a picture has to be looked at."""
        is_stored = image_id in self.stored or self._blobs.contains([image_id])[0]
        return image_id not in self.images and not (is_stored and self.catalog.image(image_id))

    def _take(
        self, read: ReadPicture, data: bytes, rows: Sequence[Row], told: Told
    ) -> Iterator[tuple[ImageId, bytes, bytes]]:
        name, image_id = read.name, read.image_id
        record = self.catalog.image(image_id)
        known = None
        if record is not None and (not record.withdrawn or image_id in self._trained):
            known = None if record.withdrawn else record.domain
            self._known[image_id] = Anchor(record.cluster or image_id, record.split)
        look = None
        if image_id not in self.images and (read.look is not None or record is None):
            # Without a look it was known a moment ago, and somebody has removed it since.
            look = read.look.result() if read.look is not None else look_at(data, self._limits)
        accepted, refused = self._judge_rows(image_id, name, rows, known, look.notes if look else ())
        for entry, row in refused:
            self._unsettled.row(entry, row, image_id, data, None if accepted else look)
        if not accepted:
            return
        self.names.setdefault(image_id, set()).add(name)
        size = look or record
        if image_id not in self.images and size is not None:
            facts = together(*filter(None, (told.facts, look.facts if look else None)))
            self.facts[image_id] = facts
            if not rows:
                self._written += [CaptionInFile(image_id, shown(name), caption) for caption in facts.captions]
            self.images[image_id] = NewImage(
                image_id,
                self._judge.domain_of(image_id),
                Split.TRAIN,  # settled with the whole upload
                size.width,
                size.height,
                size.format,
                sketch=look.sketch if look is not None else None,
                taken=facts.taken or "",
                camera=facts.camera or "",
                latitude=facts.latitude,
                longitude=facts.longitude,
            )
        if look is not None and not (image_id in self.stored or self._blobs.contains([image_id])[0]):
            self.stored.add(image_id)
            yield image_id, data, look.thumbnail

    def _judge_rows(
        self, image_id: ImageId, name: str, rows: Sequence[Row], known: str | None, notes: Sequence[str]
    ) -> tuple[bool, list[tuple[ReportRow, Row]]]:
        """Returns whether the picture is needed, and the rows that were held or rejected."""
        if not rows:
            row = self._judge.judge_uncaptioned(image_id, shown(name), known)
            row = replace(row, sentence=joined((row.sentence, *notes)))
            self.rows.append(row)
            if row.outcome == "accepted":
                self._uncaptioned.add(image_id)
            return row.outcome == "accepted", []
        pairs: list[Accepted] = []
        refused: list[tuple[ReportRow, Row]] = []
        for entry, row_of in zip(self._judge.judge(image_id, rows, known), rows, strict=True):
            if isinstance(entry, Accepted):
                pairs.append(replace(entry, sentence=joined((entry.sentence, *notes))))
                continue
            self.rows.append(entry)
            if entry.outcome != "accepted":
                refused.append((entry, row_of))
        self.pairs.extend(pairs)
        return bool(pairs), refused


def slices_of(pairs: Iterable[Accepted], images: Mapping[ImageId, NewImage]) -> dict[SliceKey, set[ImageId]]:
    """Returns by slice the pictures of pairs."""
    found: dict[SliceKey, set[ImageId]] = {}
    for pair in pairs:
        found.setdefault(SliceKey(pair.language, images[pair.image_id].domain), set()).add(pair.image_id)
    return found
