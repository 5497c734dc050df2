"""Embedding many pictures: on a Ray cluster, where the settings name one and this machine would take long.

What comes of it is put into the feature cache, under the fingerprint of what made it and the picture's id, before
somebody reads it there: it may come in any order, and twice. The batches are those of the loop in
`model_updates.features`, which embeds what the cache lacks then, for the last bits of a vector may depend on them.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.home.workspace import Workspace
from app.learning.embedder import Embedder, Here, ImageBatch
from app.learning.ray_embedding import OnRay
from model_updates.features import CHUNK, IMAGE
from model_updates.routes import BASE
from model_updates.search_encoder import IMAGE_BATCH, Rows, SearchEncoder

WORTH_SECONDS = 60.0  # a cluster takes some ten to begin
TRIED = 2  # batches that are embedded here: the first pays for what is set up once, the second is timed


@dataclass(frozen=True)
class Bulk:
    """Embeds many pictures of a home under an encoder."""

    workspace: Workspace
    encoder: SearchEncoder
    version: str  # that it was published as or read from; "" where this process alone has it
    progress: Callable[[int, int], None]  # is told (pictures embedded, pictures to embed)

    def fill(self, ids: Sequence[str], routes: Mapping[str, str] | None = None) -> None:
        """Has a cluster embed those pictures whose trunk features the cache lacks, where this machine would take long.

        Those that image features are made of on `routes`; without, those of the base route.

        Raises:
            ClusterUnusable: it does not answer, or fails. What came of it is kept.
        """
        # What was trained on a card is still there, and embeds there.
        is_on_card = str(getattr(self.encoder, "device", "cpu")) != "cpu"
        if not (self.workspace.settings.ray and self.version) or is_on_card:
            return
        # The largest first, by which the others are judged.
        batches = sorted(self._lacking(ids, routes), key=lambda batch: -len(batch.ids))
        tried, rest = batches[:TRIED], batches[TRIED:]
        done, total, left = 0, _pictures(batches), _pictures(rest)

        def keep(batch: ImageBatch, rows: Rows) -> None:
            nonlocal done
            made_by = self.encoder.trunk_fingerprint(batch.route)
            self.workspace.features.put(made_by, IMAGE, batch.ids, rows)
            done += len(batch.ids)
            self.progress(done, total)

        here, each = Here(self.workspace, self.encoder), 0.0
        for batch in tried if rest else ():
            began = time.monotonic()
            here([batch], keep)
            each = (time.monotonic() - began) / len(batch.ids)
        if each * left > WORTH_SECONDS:
            embed: Embedder = OnRay(self.workspace, self.encoder, self.version, tried[-1])
            embed(rest, keep)
            self.encoder.image_forwards += left

    def _lacking(self, ids: Sequence[str], routes: Mapping[str, str] | None) -> Iterator[ImageBatch]:
        """Yields what the cache lacks, cut as `model_updates.features` cuts it."""
        by_route: dict[str, list[str]] = {}
        for image_id in dict.fromkeys(ids):
            by_route.setdefault((routes or {}).get(image_id, BASE), []).append(image_id)
        encoder = self.encoder
        for route, chosen in by_route.items():
            trunk = encoder.trunk_fingerprint(route), encoder.trunk_dim
            image = encoder.image_fingerprint(route), encoder.dim
            wanted = self._unkept(chosen, *(trunk if routes is None else image))
            for part in _cut(wanted, CHUNK):
                for batch in _cut(self._unkept(part, *trunk), IMAGE_BATCH):
                    yield ImageBatch(route, batch)

    def _unkept(self, ids: Sequence[str], made_by: str, dim: int) -> list[str]:
        found: list[str] = []
        for part in _cut(ids, CHUNK):
            _, known = self.workspace.features.get(made_by, IMAGE, part, dim)
            found += [one for one, is_known in zip(part, known.tolist(), strict=True) if not is_known]
        return found


def _pictures(batches: Sequence[ImageBatch]) -> int:
    return sum(len(batch.ids) for batch in batches)


def _cut(ids: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))
