"""A pool of prompts in a tower's input, chosen by each input's own feature: the insert of L2P.

The input runs through the frozen tower once without prompts; its feature is the query. The k keys nearest to it by
cosine name the prompts that are put into the second run: behind the class token of a picture, behind the start token
of a text. A text then has that many words less.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from model_updates.errors import BadStrategyOption
from model_updates.inserts import Insert, Owner, RunImages, RunTexts
from model_updates.towers import image_tower, text_parts, token_table


class PromptPool(Insert):
    """Keys (size, dim) and prompts (size, length, width) of one tower.

    A batch whose inputs take several routes runs in several groups; what training looks at is of all since `forget`.
    """

    def __init__(self, owner: Owner, config: Mapping[str, Any], dim: int, width: int) -> None:
        super().__init__(owner, config)
        size, length = int(config["size"]), int(config["length"])
        self.keys = nn.Parameter(torch.zeros(size, dim))
        self.prompts = nn.Parameter(torch.zeros(size, length, width))
        self.cosines: list[Tensor] = []  # between each query and its chosen keys, (n, top) a group
        self.choices: list[Tensor] = []  # the prompts that each input chose, (n, top) int64 a group

    def draw(self, generator: torch.Generator) -> None:
        """Fills keys and prompts from U(-1, 1), as the reference does."""
        with torch.no_grad():
            for parameter in (self.keys, self.prompts):
                parameter.copy_(torch.rand(parameter.shape, generator=generator) * 2 - 1)

    def tokens(self, query: Tensor) -> Tensor:
        """Returns the (n, top * length, width) prompts for queries (n, dim), and keeps what was chosen."""
        cosines = normalize(query.detach().float(), dim=-1) @ normalize(self.keys, dim=-1).T
        best, chosen = cosines.topk(int(self.config["top"]), dim=1)
        if best.requires_grad:  # the keys train; not in validation, nor in another strategy's update
            self.cosines.append(best)
            self.choices.append(chosen)
        return self.prompts[chosen].flatten(1, 2)

    @property
    def pull(self) -> Tensor:
        """Mean over inputs of the summed cosines between a query and its chosen keys; what training maximises."""
        return torch.cat(self.cosines).sum(dim=1).mean()

    @property
    def chosen(self) -> Tensor:
        """The prompts that inputs chose, (n, top) int64, group by group."""
        return torch.cat(self.choices)

    def forget(self) -> None:
        """Drops what training looked at, which holds its whole graph."""
        self.cosines.clear()
        self.choices.clear()

    @property
    def added(self) -> int:
        """How many tokens an input gains."""
        return int(self.config["top"]) * int(self.config["length"])


class ImagePrompts(PromptPool):
    """Prompts behind the class token of a ViT."""

    kind = "image-prompts"
    tower = "image"

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes a pool for open_clip's vision transformer.

        Raises:
            BadStrategyOption: the tower is none.
        """
        tower: Any = image_tower(model)
        if not hasattr(tower, "class_embedding") or not hasattr(tower, "transformer"):
            raise BadStrategyOption(
                f"prompts go into transformer towers, and {type(tower).__name__} is none that we know; "
                "use evergreen"
            )
        dim = int(tower.proj.shape[1]) if tower.proj is not None else len(tower.class_embedding)
        return cls(owner, config, dim, len(tower.class_embedding)).to(tower.class_embedding.device)

    def around_image(self, model: nn.Module, run: RunImages, pixels: Tensor) -> Tensor:
        """Runs the tower for the query, and again with the prompts."""
        with torch.no_grad():
            query = run(pixels)
        with _behind_first(image_tower(model), self.tokens(query)):
            return run(pixels)


class TextPrompts(PromptPool):
    """Prompts behind the start token of a text tower that takes embeddings."""

    kind = "text-prompts"
    tower = "text"

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes a pool for a text tower with a projection into the joint space.

        Raises:
            BadStrategyOption: the prompts would leave no room for words, or the tower has no projection.
        """
        table, parts = token_table(model), text_parts(model)
        projection = getattr(parts, "text_projection", None)
        positions = getattr(parts, "positional_embedding", None)
        if table is None or not isinstance(projection, Tensor) or not isinstance(positions, Tensor):
            raise BadStrategyOption(
                "prompts need open_clip's own text tower; this encoder has another. Use evergreen"
            )
        pool = cls(owner, config, int(projection.shape[1]), int(table.shape[1]))
        if pool.added > len(positions) - 3:
            raise BadStrategyOption(
                f"{pool.added} prompt tokens leave no room for words in a context of {len(positions)}; "
                "choose a smaller length or top"
            )
        return pool.to(table.device)

    def around_text(self, model: nn.Module, run: RunTexts, embedded: Tensor, ends: Tensor) -> Tensor:
        """Runs the body for the query, and again with the prompts; what no longer fits is cut before the end token."""
        with torch.no_grad():
            query = run(embedded, ends)
        return run(*behind_start(model, embedded, ends, self.tokens(query)))


def behind_start(model: nn.Module, embedded: Tensor, ends: Tensor, prompts: Tensor) -> tuple[Tensor, Tensor]:
    """Returns embedded texts with prompts behind the start token, and where they end now.

    What no longer fits the context is cut before the end token. Embedded tokens are (n, length, width), `ends` (n,)
    int64 the position of each text's last, prompts (n, added, width).
    """
    positions: Tensor = text_parts(model).positional_embedding  # type: ignore[assignment]
    room = len(positions) - prompts.shape[1]
    last = ends.clamp(max=room - 1)
    rows = torch.arange(embedded.shape[0], device=embedded.device)
    words = embedded[:, :room].clone()
    words[rows, last] = embedded[rows, ends]
    return torch.cat([words[:, :1], prompts.to(embedded.dtype), words[:, 1:]], dim=1), last + prompts.shape[1]


@contextmanager
def _behind_first(tower: nn.Module, tokens: Tensor) -> Iterator[None]:
    transformer: nn.Module = tower.transformer  # type: ignore[assignment]

    def put_in(_: nn.Module, given: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        hidden = given[0]
        prompted = torch.cat([hidden[:, :1], tokens.to(hidden.dtype), hidden[:, 1:]], dim=1)
        return (prompted, *given[1:])

    handle = transformer.register_forward_pre_hook(put_in)
    try:
        yield
    finally:
        handle.remove()
