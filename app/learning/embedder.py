"""Where pictures are embedded: the protocol, and what does so in this process."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from app.home.workspace import Workspace
from model_updates.features import NoCache, trunk_features
from model_updates.search_encoder import Rows, SearchEncoder


class ImageBatch(NamedTuple):
    """Pictures that go through the image tower together."""

    route: str
    ids: Sequence[str]


Keep = Callable[[ImageBatch, Rows], None]
"""Is given the trunk features of a batch, (n, trunk_dim) float32."""


class Embedder(Protocol):
    """Where pictures are embedded."""

    def __call__(self, batches: Sequence[ImageBatch], keep: Keep) -> None:
        """Embeds batches in any order, and has the trunk features of each kept."""
        ...


@dataclass(frozen=True)
class Here:
    """Embeds in this process."""

    workspace: Workspace
    encoder: SearchEncoder

    def __call__(self, batches: Sequence[ImageBatch], keep: Keep) -> None:
        """Embeds one batch after the other."""
        load = self.workspace.load_image
        for batch in batches:
            keep(batch, trunk_features(self.encoder, batch.ids, load, NoCache(), route=batch.route))
