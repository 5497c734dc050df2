"""Near-copies among the new pictures of an upload, and of pictures that the catalog has.

Two stages: sketches say which pictures are likely (`sketch.py`), and their thumbnails, laid over each other,
say whether they are the same (`same_picture.py`).
"""

import io
import logging
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from PIL import Image

from ingest.blobs import BlobStore
from ingest.catalog import Catalog
from ingest.errors import UnknownImage
from ingest.grouping import Anchor
from ingest.pair import ImageId
from ingest.records import SketchRecord
from ingest.same_picture import Detail, detail_of, same_picture
from ingest.sketch import as_rows, likely, sketch_of

logger = logging.getLogger(__name__)

# How many similar pictures are compared closely, nearest first; each copy of an emoji was among the nearest two.
_LOOKED_AT = 4
_KEPT = 1024  # details kept while pictures are compared; 18 kB each
_SHOWN = 12  # characters of an id in a sentence


@dataclass(frozen=True)
class Copies:
    """What was found."""

    # pairs of new pictures that are near-copies; enough of them to join all that belong together
    same: Sequence[tuple[ImageId, ImageId]] = ()
    # by new picture, the known ones that it is a near-copy of: one for each cluster
    known: Mapping[ImageId, tuple[Anchor, ...]] = field(default_factory=dict)


class CopyFinder:
    """Compares pictures by their sketches and thumbnails."""

    def __init__(self, catalog: Catalog, blobs: BlobStore) -> None:
        self._catalog = catalog
        self._blobs = blobs
        self._details: OrderedDict[ImageId, Detail] = OrderedDict()

    def sketch(self, image_id: ImageId) -> bytes:
        """Returns the sketch of a stored picture, made from its thumbnail; empty when that cannot be read."""
        try:
            return sketch_of(self._thumbnail(image_id))
        except (UnknownImage, OSError):
            return b""

    def find(self, sketches: Mapping[ImageId, bytes]) -> Copies:
        """Finds the near-copies of new pictures."""
        new = {image_id: sketch for image_id, sketch in sketches.items() if sketch}
        if not new:
            return Copies()
        self._sketch_older_pictures()
        known = [record for record in self._catalog.sketches() if record.id not in sketches]
        return Copies(self._among(new), self._known(new, known))

    def _among(self, new: Mapping[ImageId, bytes]) -> list[tuple[ImageId, ImageId]]:
        same: list[tuple[ImageId, ImageId]] = []
        compared: set[tuple[ImageId, ImageId]] = set()
        left = list(new)
        while True:
            # Each picture's nearest may all be copies alike: one of each thing is compared again with the others.
            joined = self._joined(left, new, compared)
            same += joined
            gone = {other for _, other in joined}
            left = [image_id for image_id in left if image_id not in gone]
            if not joined:
                return same

    def _joined(
        self, ids: Sequence[ImageId], new: Mapping[ImageId, bytes], compared: set[tuple[ImageId, ImageId]]
    ) -> list[tuple[ImageId, ImageId]]:
        """Returns `(one, other)` of copies among pictures, so that each thing has one that is never an other."""
        rows = as_rows([new[image_id] for image_id in ids])
        leader = list(range(len(ids)))
        joined: list[tuple[ImageId, ImageId]] = []
        # One more than is looked at: each picture is nearest to itself.
        for one, other in likely(rows, rows, _LOOKED_AT + 1):
            into, gone = sorted((leader[one], leader[other]))
            pair = (ids[min(one, other)], ids[max(one, other)])
            if into == gone or pair in compared:
                continue
            compared.add(pair)
            if self._same(*pair):
                joined.append((ids[into], ids[gone]))
                leader = [into if mark == gone else mark for mark in leader]
        return joined

    def _known(
        self, new: Mapping[ImageId, bytes], known: Sequence[SketchRecord]
    ) -> dict[ImageId, tuple[Anchor, ...]]:
        if not known:
            return {}
        ids = list(new)
        found: dict[ImageId, dict[str, Anchor]] = {}
        pairs = likely(as_rows(list(new.values())), as_rows([record.sketch for record in known]), _LOOKED_AT)
        for one, other in pairs:
            record = known[other]
            of_picture = found.setdefault(ids[one], {})
            if record.cluster not in of_picture and self._same(ids[one], record.id):
                of_picture[record.cluster] = Anchor(
                    record.cluster, record.split, f"the picture {record.id[:_SHOWN]}"
                )
        return {image_id: tuple(anchors.values()) for image_id, anchors in found.items() if anchors}

    def _sketch_older_pictures(self) -> None:
        """Sketches the pictures that an earlier release took in; once."""
        older = self._catalog.unsketched()
        if older:
            logger.info("sketching pictures of an earlier release: %d", len(older))
            self._catalog.set_sketches({image_id: self.sketch(image_id) for image_id in older})

    def _same(self, one: ImageId, other: ImageId) -> bool:
        try:
            return same_picture(self._detail(one), self._detail(other))
        except (UnknownImage, OSError):  # a picture whose thumbnail is lost is compared with none
            return False

    def _detail(self, image_id: ImageId) -> Detail:
        detail = self._details.get(image_id)
        if detail is None:
            detail = self._details[image_id] = detail_of(self._thumbnail(image_id))
            if len(self._details) > _KEPT:
                self._details.popitem(last=False)
        return detail

    def _thumbnail(self, image_id: ImageId) -> Image.Image:
        with Image.open(io.BytesIO(self._blobs.thumbnail(image_id))) as image:
            return image.convert("RGB")
