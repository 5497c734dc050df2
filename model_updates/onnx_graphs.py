"""Parts of an encoder as torch follows them into graphs, for `graph_skeletons`; inserts of a route are in them.

A graph of texts begins after the token table, which is data, and one of pictures after preprocessing. The router, the
fusion encoder and language profiles are in none, as they are part of no vector.
"""

from collections.abc import Sequence
from functools import partial

from torch import Tensor, nn

from model_updates.inserts import Insert, RunImages, RunTexts, RunTokens
from model_updates.towers import foreign_text_features, image_head, image_trunk, text_body


class Tower(nn.Module):
    """A part of an encoder as torch follows it into a graph."""

    def __init__(self, model: nn.Module, inserts: Sequence[Insert]) -> None:
        super().__init__()
        self.model = model
        self.outwards = list(reversed(inserts))
        self.registered = nn.ModuleList(inserts)  # so that the graph holds their tensors


class TextGraph(Tower):
    """Embedded tokens (n, length, width) and the place of each text's last (n,) to raw features (n, dim)."""

    def forward(self, embedded: Tensor, ends: Tensor) -> Tensor:
        """Runs the text body, with its inserts in it."""
        run: RunTexts = partial(text_body, self.model)
        for insert in self.outwards:
            run = partial(insert.around_text, self.model, run)
        return run(embedded, ends)


class TokensGraph(Tower):
    """Tokens (n, longest) of a tokenizer that is not ours to raw features (n, dim)."""

    def forward(self, tokens: Tensor) -> Tensor:
        """Runs the whole text tower, with its inserts around it."""
        run: RunTokens = partial(foreign_text_features, self.model)
        for insert in self.outwards:
            run = partial(insert.around_tokens, self.model, run)
        return run(tokens)


class TrunkGraph(Tower):
    """Prepared pixels (n, 3, size, size) to trunk features (n, trunk_dim)."""

    def forward(self, pixels: Tensor) -> Tensor:
        """Runs the image tower, with its inserts in it."""
        run: RunImages = partial(image_trunk, self.model)
        for insert in self.outwards:
            run = partial(insert.around_image, self.model, run)
        return run(pixels)


class HeadGraph(Tower):
    """Trunk features (n, trunk_dim) to raw features (n, dim)."""

    def forward(self, trunk: Tensor) -> Tensor:
        """Runs the head, with its inserts around it."""
        run: RunImages = partial(image_head, self.model)
        for insert in self.outwards:
            run = partial(insert.around_head, run)
        return run(trunk)
