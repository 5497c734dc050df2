"""What is read again: which of its pictures are as they were, and which places are gone.

A file is as it was when its path, size and time of change are; it is not opened then. Any other is read, and known by
its bytes: one that moved has its new place at once, and its old one is gone. What was fetched from an address is taken
to be what it was.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ingest.blobs import BlobStore
from ingest.captions import UNDETERMINED, normalise_caption, normalise_language
from ingest.catalog import Catalog
from ingest.errors import BadCaption, BadUpload, UnknownLanguage
from ingest.facts.record import PictureFacts
from ingest.pair import ImageId
from ingest.plan import IntakePlan
from ingest.readers.container import Origin, Row, Told
from ingest.readers.folder import Folder
from ingest.readers.names import text_of
from ingest.records import ImageRecord
from ingest.sentence import phrase
from ingest.sources import PictureSource


@dataclass(frozen=True)
class Stated:
    """What is said of all that a folder holds, beside what its own files say."""

    language: str | None = None  # of captions that state none; None: it is detected
    domain: str | None = None  # of pictures
    in_gallery: bool = True  # whether search is to find them
    forget: bool = False  # whether pictures whose files are gone are removed for good
    follow: bool = False  # whether what a person withdrew stays out


@dataclass(frozen=True)
class Rescan:
    """What looking again has shown."""

    unchanged: frozenset[ImageId] = frozenset()  # pictures with a place that is as it was
    gone: tuple[PictureSource, ...] = ()  # places that are no longer there

    @property
    def known(self) -> frozenset[ImageId]:
        """The pictures that are known of it."""
        return self.unchanged | {one.image_id for one in self.gone}


def look_again(
    catalog: Catalog, blobs: BlobStore, folder: Folder, plan: IntakePlan, stated: Stated
) -> Rescan:
    """Takes out of the plan what is known and unchanged; returns that, and what is gone.

    Raises:
        BadUpload: the folder holds nothing any more, as when its disk is not mounted.
    """
    known = {(one.place, one.name): one for one in catalog.sources.below(folder.path)}
    if not known:
        return Rescan()
    gone = [one for one in known.values() if not one.gone and folder.lacks(one.place)]
    there = sum(not one.gone for one in known.values())
    if gone and len(gone) == there and not plan.rows and not stated.forget:
        raise BadUpload(
            "folder_empty",
            phrase(
                "{folder} holds no picture any more, where {count} were. Is its disk mounted? Nothing was changed; "
                "with --forget they are removed for good.",
                folder=str(folder.path),
                count=there,
            ),
        )
    same = {
        name: source
        for name in plan.rows
        if (source := known.get(_key(origin := folder.origin(name)))) and _is_as_it_was(source, origin)
    }
    return Rescan(left_out(catalog, blobs, plan, same, stated), tuple(gone))


def left_out(
    catalog: Catalog, blobs: BlobStore, plan: IntakePlan, same: Mapping[str, PictureSource], stated: Stated
) -> frozenset[ImageId]:
    """Takes out of the plan what it says nothing new of, of pictures that are as they were; returns these."""
    records = catalog.images({one.image_id for one in same.values()})
    kept = _kept(catalog, blobs, records.values(), stated)
    told = {one.image_id for name, one in same.items() if plan.rows[name] or name in plan.told}
    said = _captions(catalog, told)
    unchanged: set[ImageId] = set()
    for name, source in same.items():
        image_id = source.image_id
        of_picture = _Known(source, records.get(image_id), said.get(image_id, set()))
        if image_id in kept and of_picture.has(plan, name, stated.language):
            del plan.rows[name]
            unchanged.add(image_id)
    return frozenset(unchanged)


def _key(origin: Origin) -> tuple[str, str]:
    return text_of(str(origin.path)), text_of(origin.within)


def _is_as_it_was(source: PictureSource, origin: Origin) -> bool:
    return not source.gone and (source.size, source.modified) == (origin.size, origin.modified)


def _kept(catalog: Catalog, blobs: BlobStore, records: Iterable[ImageRecord], stated: Stated) -> set[ImageId]:
    """Returns those pictures that need not be taken in again.

    They are in the store, are what is stated, and nobody withdrew them but by themselves.
    """
    out = catalog.withheld.ids()
    settled = [
        one.id
        for one in records
        if one.id in out
        or (stated.follow and one.withdrawn)
        or not (one.withdrawn or (stated.in_gallery and not one.in_gallery))
        and stated.domain in (None, one.domain)
    ]
    stored = blobs.contains(settled)
    return {image_id for image_id, is_stored in zip(settled, stored, strict=True) if is_stored}


def _captions(catalog: Catalog, ids: Collection[ImageId]) -> dict[ImageId, set[tuple[str, str]]]:
    """Returns language and text of each caption of these pictures."""
    found: dict[ImageId, set[tuple[str, str]]] = {}
    for language in catalog.languages() if ids else ():
        for image_id, texts in catalog.captions_in(language, ids).items():
            found.setdefault(image_id, set()).update((language, text) for text in texts)
    return found


@dataclass(frozen=True)
class _Known:
    """What is known of a picture that lies where it lay."""

    source: PictureSource
    record: ImageRecord | None
    said: Collection[tuple[str, str]]  # language and text of its captions

    def has(self, plan: IntakePlan, name: str, language: str | None) -> bool:
        """Returns whether the plan says nothing new of it."""
        told = plan.told.get(name, Told())
        fields = self.source.fields
        if told.key not in ("", self.source.key) or any(
            fields.get(key) != one for key, one in told.fields.items()
        ):
            return False
        texts = {text for _, text in self.said}
        if told.facts is not None and not self._agrees(told.facts, texts):
            return False
        for row in plan.rows[name]:
            text, stated = _caption(row), _language(row, language)
            if (stated, text) not in self.said if stated else text not in texts:
                return False
        return True

    def _agrees(self, facts: PictureFacts, texts: Collection[str]) -> bool:
        record = self.record
        if record is None:
            return False
        pairs = (
            (facts.taken, record.taken),
            (facts.camera, record.camera),
            (facts.latitude, record.latitude),
            (facts.longitude, record.longitude),
        )
        are_known = all(caption.text in texts for caption in facts.captions)
        return are_known and all(new in (None, old) for new, old in pairs)


def _language(row: Row, otherwise: str | None) -> str | None:
    """Returns the tag of a row's language; None where it was, or is to be, detected."""
    tag = (row.language or "").strip() or otherwise
    try:
        return normalise_language(tag) if tag and tag.lower() != UNDETERMINED else otherwise
    except UnknownLanguage:
        return tag


def _caption(row: Row) -> str:
    try:
        return normalise_caption(row.caption or "").text
    except BadCaption:
        return ""
