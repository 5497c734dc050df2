"""What the catalog knows of pictures: records, places, groups and sketches."""

from collections.abc import Collection, Generator, Iterable, Mapping
from dataclasses import fields
from typing import Unpack

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import bindparam, func, or_, select, tuple_, update

from ingest.dialect import values_of
from ingest.engines import writing
from ingest.grouping import Anchor
from ingest.pair import ImageId, Split
from ingest.records import ImageRecord, SketchRecord
from ingest.schema import chunks, images
from ingest.selection import Conditions, held_out, images_counted, images_where
from ingest.tables import TableQueries, grouped
from ingest.withheld import withheld

_AT_ONCE = 500  # rows that are read ahead
# Whose domain, split and group hold for pictures to come. One that a person took out may come back as it was.
_SETTLED = or_(~images.c.withdrawn, images.c.id.in_(select(withheld.c.image_id)))


class ImageQueries(TableQueries):
    """The part of `Catalog` that is about pictures; see there for what withdrawn ones and `chunks` mean."""

    def gallery_ids(self) -> list[ImageId]:
        """Returns the ids of all gallery images in the order they came."""
        return self._column(select(images.c.id).where(images.c.in_gallery).order_by(images.c.seq))

    def gallery_size(self) -> int:
        """Returns how many gallery images there are."""
        with self._engine.connect() as connection:
            every = select(func.count()).select_from(images)
            outside = every.where(
                ~images.c.in_gallery
            )  # an index has these, and the other count is a sum of pages
            return connection.execute(every).scalar_one() - connection.execute(outside).scalar_one()

    def gallery_domains(self) -> dict[ImageId, str]:
        """Returns the domains of all gallery images, in the order they came."""
        query = select(images.c.id, images.c.domain).where(images.c.in_gallery).order_by(images.c.seq)
        return {image_id: domain for image_id, domain in self._rows(query)}

    def gallery_domain_counts(self) -> dict[str, int]:
        """Returns how many gallery images are of each domain."""
        query = select(images.c.domain, func.count()).where(images.c.in_gallery).group_by(images.c.domain)
        return {domain: count for domain, count in self._rows(query)}

    def outside_gallery(self) -> list[ImageId]:
        """Returns the ids of all images that are none of the gallery: withheld, withdrawn or gone, or never shown."""
        return self._column(select(images.c.id).where(~images.c.in_gallery))

    def outside_mark(self) -> int:
        """Returns what changes, in this process, whenever `outside_gallery` does. Of 100,000 it takes 50 ms."""
        found = select(images.c.id).where(~images.c.in_gallery).order_by(images.c.id).subquery()
        return hash(self._column(select(func.aggregate_strings(found.c.id, "")))[0])

    def newest(
        self,
        *,
        by_taken: bool = False,
        after: ImageId = "",
        up_to: ImageId = "",
        groups: Collection[str] | None = None,
        **given: Unpack[Conditions],
    ) -> Generator[list[ImageId]]:
        """Yields the ids of all gallery images for which all conditions hold, some at a time, the last that came first.

        Close it where not all are taken. By when they were taken, those of which that is not known come last. With
        `after`, which may be of a withdrawn image, only those behind it, or with `up_to` those before it and itself;
        nothing where it is not known. With `groups` only those that are of one, as `groups` names them.
        """
        order = [images.c.taken, images.c.seq] if by_taken else [images.c.seq]
        query = images_where(given).where(images.c.in_gallery).order_by(*(one.desc() for one in order))
        if after or up_to:
            place = select(*order).where(images.c.id == (after or up_to)).scalar_subquery()
            query = query.where(tuple_(*order) < place if after else tuple_(*order) >= place)
        if groups is not None:
            names = values_of(groups)  # the first of a group, whose name it gave, may not be said to be of it
            query = query.where(or_(images.c.cluster.in_(names), images.c.id.in_(names)))
        streamed = {"yield_per": _AT_ONCE}
        with (
            self._engine.connect() as connection,
            connection.execute(query, execution_options=streamed) as found,
        ):
            yield from map(list, found.scalars().partitions(_AT_ONCE))

    def ids_beginning(self, beginning: str, *, limit: int) -> list[ImageId]:
        """Returns ids, also of withdrawn images, that begin so; ids are lower-case hexadecimal digits."""
        query = select(images.c.id).where(images.c.id >= beginning, images.c.id < f"{beginning}g")
        return self._column(query.order_by(images.c.id).limit(limit))

    def image(self, image_id: ImageId) -> ImageRecord | None:
        """Returns what is known of an image, or None."""
        return self.images([image_id]).get(image_id)

    def images(self, ids: Iterable[ImageId]) -> dict[ImageId, ImageRecord]:
        """Returns the records of those ids that are known, also of withdrawn ones."""
        names = [one.name for one in fields(ImageRecord) if one.name not in {"chunk_id", "sketch"}]
        columns = [*(images.c[name] for name in names), chunks.c.id.label("chunk_id")]
        query = select(*columns).join(chunks, images.c.chunk == chunks.c.seq)
        found: dict[ImageId, ImageRecord] = {}
        with self._engine.connect() as connection:
            for group in grouped(ids):
                for row in connection.execute(query.where(images.c.id.in_(group))):
                    found[row.id] = ImageRecord(**{**row._mapping, "split": Split(row.split)})
        return found

    def domains_of(self, ids: Iterable[ImageId]) -> dict[ImageId, str]:
        """Returns the domains of those ids that are known, also of withdrawn ones."""
        query = select(images.c.id, images.c.domain)
        return {
            i: name for some in grouped(ids) for i, name in self._rows(query.where(images.c.id.in_(some)))
        }

    def newest_chunk_of(self, ids: Iterable[ImageId]) -> str:
        """Returns the id of the newest chunk that brought any of these pictures; empty where none did."""
        newest = (0, "")
        query = select(chunks.c.seq, chunks.c.id).join(images, images.c.chunk == chunks.c.seq)
        for group in grouped(ids):
            found = self._rows(query.where(images.c.id.in_(group)).order_by(chunks.c.seq.desc()).limit(1))
            newest = max([newest, *((row.seq, row.id) for row in found)])
        return newest[1]

    def ids_where(self, **given: Unpack[Conditions]) -> set[ImageId]:
        """Returns the images for which all conditions hold.

        Raises:
            BadOption: the filter cannot be read.
        """
        return set(self._column(images_where(given)))

    def packed_ids_where(self, **given: Unpack[Conditions]) -> NDArray[np.bytes_]:
        """Returns the (n,) ids of `ids_where` as fixed-width text: of many, in a third of the time."""
        found = images_where(given).subquery()
        with self._engine.connect() as connection:
            joined = connection.scalar(select(func.aggregate_strings(found.c.id, ",")))
        return np.array(joined.encode().split(b",") if joined else [], dtype=np.bytes_)

    def test_images(self, domain: str, *, chunks: Collection[str] | None = None) -> list[ImageId]:
        """Returns all held-out images of a domain in the order they came: what recall is measured on."""
        query = select(images.c.id).where(held_out(domain), images_counted(chunks))
        return self._column(query.order_by(images.c.seq))

    def groups(self, ids: Iterable[ImageId]) -> dict[ImageId, str]:
        """Returns by image the name of its group: pictures of one thing share it, one that is alone has its id.

        Ids that are not known are alone.
        """
        found: dict[ImageId, str] = {}
        with self._engine.connect() as connection:
            for group in grouped(ids):
                found.update({image_id: image_id for image_id in group})
                query = select(images.c.id, images.c.cluster).where(images.c.id.in_(group))
                rows = connection.execute(query.where(images.c.cluster.is_not(None)))
                found.update({image_id: cluster for image_id, cluster in rows})
        return found

    def clusters(self, *, limit: int, offset: int = 0) -> tuple[int, list[tuple[str, tuple[ImageId, ...]]]]:
        """Returns how many clusters have several gallery pictures, and some with their pictures, largest first."""
        size = func.count().label("size")
        several = (
            select(images.c.cluster, size, func.min(images.c.seq).label("first"))
            .where(images.c.in_gallery, images.c.cluster.is_not(None))
            .group_by(images.c.cluster)
            .having(size > 1)
        ).subquery()
        some = select(several.c.cluster).order_by(several.c.size.desc(), several.c.first)
        with self._engine.connect() as connection:
            total = connection.execute(select(func.count()).select_from(several)).scalar_one()
            found: dict[str, list[ImageId]] = {
                cluster: [] for cluster in connection.scalars(some.limit(limit).offset(offset))
            }
            for group in grouped(found):
                query = select(images.c.cluster, images.c.id).where(
                    images.c.cluster.in_(group), images.c.in_gallery
                )
                for cluster, image_id in connection.execute(query.order_by(images.c.seq)):
                    found[cluster].append(image_id)
        return total, [(cluster, tuple(ids)) for cluster, ids in found.items()]

    def known_groups(self, names: Iterable[str]) -> dict[str, Anchor]:
        """Returns those stated groups that have a picture; one is in one split.

        Where an earlier release split a group all the same, the held-out part decides.
        """
        found: dict[str, Anchor] = {}
        with self._engine.connect() as connection:
            for some in grouped(names):
                query = select(images.c.group, images.c.cluster, images.c.split)
                query = query.where(images.c.group.in_(some), _SETTLED).order_by(images.c.seq)
                for name, cluster, split in connection.execute(query):
                    if name not in found or split == Split.TEST.value:
                        found[name] = Anchor(cluster, Split(split))
        return found

    def sketches(self) -> list[SketchRecord]:
        """Returns what near-copies of the pictures are found by, except of those that are nearly flat."""
        query = select(
            images.c.id, func.coalesce(images.c.cluster, images.c.id), images.c.split, images.c.sketch
        ).where(_SETTLED, func.length(images.c.sketch) > 0)
        splits = {member.value: member for member in Split}
        rows = self._rows(query.order_by(images.c.seq))
        return [SketchRecord(i, cluster, splits[split], sketch) for i, cluster, split, sketch in rows]

    def unsketched(self) -> list[ImageId]:
        """Returns the images that have no sketch yet: those that an earlier release took in."""
        return self._column(select(images.c.id).where(images.c.sketch.is_(None)).order_by(images.c.seq))

    def set_sketches(self, sketches: Mapping[ImageId, bytes]) -> None:
        """Keeps the sketches of images that are known."""
        statement = update(images).where(images.c.id == bindparam("image")).values(sketch=bindparam("made"))
        with writing(self._engine) as connection:
            connection.execute(statement, [{"image": i, "made": sketch} for i, sketch in sketches.items()])
