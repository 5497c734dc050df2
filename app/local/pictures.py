"""Single pictures of a home."""

from __future__ import annotations

import mimetypes
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from app.desk.errors import BadQuery, NotAllowed
from app.desk.hits import HitCaption
from app.desk.pictures import Item, ItemResult, ItemResults, NewItem, Original, PictureSide, TakenOut, Things
from app.desk.troubles import OWN_ERRORS, trouble_of
from app.local.chunks import Chunks
from ingest.errors import BadOption, UnknownImage
from ingest.pair import ImageId
from ingest.sentence import phrase
from ingest.withheld import Withheld

if TYPE_CHECKING:
    from app.jobs.intake import SentItem

_ID = re.compile("[0-9a-f]{64}")


class Pictures(Chunks):
    """What shows single pictures, adds some, takes some out and puts them back."""

    def picture(self, image: str) -> bytes:
        from app.query.results import picture_to_look_at

        self.require_shown(image)
        return picture_to_look_at(self.workspace, image)

    def original(self, image: str) -> Original:
        self.require_shown(image)
        if not self.may_see_places():
            raise NotAllowed(
                phrase(
                    "Your account may not have the files of pictures; the setting `places_for` says which may."
                )
            )
        record = self.catalog.image(image)
        data = self.workspace.blobs.original(image)
        ending = record.format.lower() if record else "bin"
        seen = self.seen_at([image]).get(image, ())
        name = next((one.label for one in seen if one.label), f"{image[:16]}.{ending}")
        media = mimetypes.guess_type(f"a.{ending}")[0] or "application/octet-stream"
        return Original(name, media, data)

    def thumbnail(self, image: str, size: PictureSide = PictureSide.SMALL) -> bytes:
        from ingest.images import thumbnail

        self.require_shown(image)
        blobs = self.workspace.blobs
        if size is PictureSide.SMALL:
            return blobs.thumbnail(image)
        return thumbnail(blobs.image(image, side=size), size)

    def item_thumbnail(self, item: str) -> bytes:
        from app.learning.pictures import picture

        return self.thumbnail(picture(self.workspace, item).record.id)

    def require_shown(self, image: str) -> None:
        """Refuses what is no picture's id, and a picture that somebody took out.

        Raises:
            UnknownImage: it is not spelt as an id is, of which the store knows other spellings; or it was taken out,
                and who asks may not see it.
        """
        if not _ID.fullmatch(image):
            raise UnknownImage(f"There is no picture {image[:64]!r}.")
        if not self.may_see_all() and image in self.catalog.withheld.ids():
            raise UnknownImage(f"Picture {image[:24]} was taken out.")

    def item(self, item: str) -> Item:
        from app.learning.pictures import picture

        known = picture(self.workspace, item)
        record = known.record
        self.require_shown(record.id)
        return Item(
            id=record.id,
            domain=record.domain,
            split=record.split.value,
            chunk=record.chunk_id,
            width=record.width,
            height=record.height,
            format=record.format,
            in_gallery=record.in_gallery,
            captions=tuple(HitCaption(one.language, one.text) for one in known.captions),
            withheld=_taken_out(known.withheld) if known.withheld else None,
            taken=record.taken,
            camera=record.camera,
            sources=self.seen_at([record.id]).get(record.id, ()),
            latitude=record.latitude if self.may_see_places() else None,
            longitude=record.longitude if self.may_see_places() else None,
        )

    def add_items(
        self, items: Sequence[NewItem], name: str = "items", domain: str = "", gallery: bool = True
    ) -> ItemResults:
        from app.jobs.intake import packed
        from ingest.intake import IntakeOptions

        sent: list[SentItem] = []
        results = [
            self._tried(partial(self._sent, one, n, sent), 202) for n, one in enumerate(items, start=1)
        ]
        if not sent:
            return ItemResults(tuple(results))
        options = IntakeOptions(domain=domain or None, name=name.strip() or "items", in_gallery=gallery)
        file = packed(sent, self.home.inbox)
        return ItemResults(tuple(results), self.take_in(file, options, sent_as=name))

    def take_out(self, ids: Sequence[str], why: str) -> ItemResults:
        from app.learning import pictures

        def change(names: Sequence[ImageId]) -> list[ImageId]:
            return pictures.take_out(self.workspace, names, by=self.by, why=why)

        return self._changed(ids, pictures.takeable(self.workspace), change, "were taken out")

    def put_back(self, ids: Sequence[str]) -> ItemResults:
        from app.learning import pictures

        def change(names: Sequence[ImageId]) -> list[ImageId]:
            return pictures.put_back(self.workspace, names)

        return self._changed(ids, pictures.returnable(self.workspace), change, "came back")

    def taken_out(self) -> list[TakenOut]:
        return [_taken_out(one) for one in self.catalog.withheld.all()]

    def copies(self, limit: int = 100, offset: int = 0) -> Things:
        from app.learning import inventory

        total, found = inventory.things(self.workspace, limit=limit, offset=offset)
        return Things(total, tuple(found))

    def _changed(
        self,
        names: Iterable[str],
        find: Callable[[str], ImageId],
        change: Callable[[Sequence[ImageId]], list[ImageId]],
        what: str,
    ) -> ItemResults:
        """Changes pictures all at once; one that cannot be changed does not keep the others from it."""
        from app.jobs import requests

        results = [self._tried(partial(find, name), 200) for name in names]
        done = change(list(dict.fromkeys(one.id for one in results if one.id)))
        results = [replace(one, changed=one.id in done) for one in results]
        if not done:
            return ItemResults(tuple(results))
        self.changed_gallery()
        job = requests.pictures_job(self.workspace, why=f"{len(done)} pictures {what}", by=self.by)
        return ItemResults(tuple(results), self._followed(job))

    def _tried(self, act: Callable[[], ImageId], status: int) -> ItemResult:
        try:
            return ItemResult(status, act(), changed=status == 202)
        except OWN_ERRORS as error:
            return ItemResult(**trouble_of(error).answered())

    def _sent(self, one: NewItem, number: int, sent: list[SentItem]) -> ImageId:
        """Checks one picture and keeps it; returns its id."""
        from app.jobs.intake import checked
        from app.query.asking import picture_bytes
        from app.query.grammar import Kind, Term

        captions = [(language, text) for language, texts in one.captions.items() for text in texts]
        if one.caption:
            captions.append((one.language, one.caption))
        elif one.language:
            raise BadQuery("`language` is that of `caption`, and there is none.")
        data = picture_bytes(one.image, Term(Kind.IMAGE, f"image {number}"))
        with self.packing():  # a large picture takes hundreds of megabytes while it is decoded
            found = checked(data, captions)
        if found.image_id in self.catalog.withheld.ids():
            raise BadOption(
                "This picture was taken out by a person. Put it back first, if it is to be shown again."
            )
        sent.append(found)
        return found.image_id


def _taken_out(found: Withheld) -> TakenOut:
    return TakenOut(found.image_id, found.since, found.by, found.why)
