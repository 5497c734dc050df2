"""Re-ranking: the first hits of a search, laid one by one beside the text by the release's fusion encoder.

The towers alone say how alike a text and a picture are as wholes; the fusion encoder (`model_updates/fusion/`) reads
words and patches together and gives the log-odds that they belong together. The first 50 hits are put in the order of
``scale * cosine + log-odds``: both are log-odds of a kind, and what one alone puts wrongly the other may know; of a
fusion encoder that has learned little the cosine is the better half (docs/log.md). What it reads of a picture is
computed from the stored picture when it is first needed, and kept.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from model_updates.encoder import Encoder
from model_updates.fusion.encoder import fusion_of
from model_updates.fusion.matching import Matcher, Seen
from model_updates.routes import BASE

MOST_BYTES = 256 << 20


class Reranker:
    """A release's fusion encoder with what it has read of pictures so far.

    `routes` are those of the pictures that do not take the base route.
    """

    def __init__(
        self, encoder: Encoder, load_image: Callable[[str], Image.Image], routes: Mapping[str, str]
    ) -> None:
        self._encoder, self._load, self._routes = encoder, load_image, routes
        self._matcher: Matcher | None = None
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._bytes = 0
        self._turn = threading.Lock()

    @classmethod
    def of(
        cls, encoder: Encoder, load_image: Callable[[str], Image.Image], routes: Mapping[str, str]
    ) -> Reranker | None:
        """Returns a re-ranker where the encoder has a fusion encoder."""
        return None if fusion_of(encoder) is None else cls(encoder, load_image, routes)

    def log_odds(self, text: str, language: str, image_ids: Sequence[str]) -> NDArray[np.float32]:
        """Returns (n,) float32 log-odds that a text belongs to each picture.

        Raises:
            NoFusion: the fusion encoder learned with other towers.
        """
        with self._turn:
            if self._matcher is None:
                self._matcher = Matcher(self._encoder)
            seen = self._read(self._matcher, image_ids)
        return self._matcher.log_odds(text, language, [seen[image_id] for image_id in image_ids])

    def _read(self, matcher: Matcher, image_ids: Sequence[str]) -> dict[str, Seen]:
        seen = {image_id: self._seen[image_id] for image_id in image_ids if image_id in self._seen}
        lacking = [image_id for image_id in image_ids if image_id not in seen]
        for route in dict.fromkeys(self._routes.get(image_id, BASE) for image_id in lacking):
            mine = [image_id for image_id in lacking if self._routes.get(image_id, BASE) == route]
            read = matcher.read([self._load(image_id) for image_id in mine], route)
            seen |= dict(zip(mine, read, strict=True))
        for image_id in image_ids:
            self._keep(image_id, seen[image_id])
        return seen

    def _keep(self, image_id: str, read: Seen) -> None:
        if image_id not in self._seen:
            self._seen[image_id] = read
            self._bytes += _size(read)
        self._seen.move_to_end(image_id)
        while self._bytes > MOST_BYTES:
            self._bytes -= _size(self._seen.popitem(last=False)[1])


def _size(read: Seen) -> int:
    return sum(part.numel() * part.element_size() for part in read)
