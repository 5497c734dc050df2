"""Modules in the blocks of a frozen text tower: a bottleneck, low-rank deltas, or prefixes; inserts of one language."""

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, Self

import torch
from torch import Tensor, nn

from model_updates.inserts import Insert, Owner, RunTexts, RunTokens
from model_updates.parts.low_rank import low_rank_pairs, overlaid
from model_updates.parts.text_blocks import after_mlp, prefixed, require_blocks, text_blocks, width_of
from model_updates.towers import text_parts


class InsideText(Insert):
    """Base of inserts that lie in the layers of a text tower, whatever the tower takes."""

    tower = "text"

    @abstractmethod
    def __init__(self, owner: Owner, config: Mapping[str, Any], places: Any) -> None:
        super().__init__(owner, config)

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes the insert for the blocks of a model's text tower."""
        blocks = require_blocks(model)
        return cls(owner, config, blocks).to(next(blocks[0].parameters()).device)

    @abstractmethod
    def inside(self, model: nn.Module) -> AbstractContextManager[object]:
        """Puts the insert into the tower while the block of code runs."""

    def around_text(self, model: nn.Module, run: RunTexts, embedded: Tensor, ends: Tensor) -> Tensor:
        with self.inside(model):
            return run(embedded, ends)

    def around_tokens(self, model: nn.Module, run: RunTokens, tokens: Tensor) -> Tensor:
        with self.inside(model):
            return run(tokens)


class TextBottlenecks(InsideText):
    """``h + W_up relu(W_down h)`` behind the MLP of every block (Houlsby et al., ICML 2019); W_up starts at zero."""

    kind = "text-bottlenecks"

    def __init__(self, owner: Owner, config: Mapping[str, Any], blocks: list[nn.Module]) -> None:
        super().__init__(owner, config, blocks)
        self.bottlenecks = nn.ModuleList(
            bottleneck(width_of(block), int(config["reduction"])) for block in blocks
        )

    def inside(self, model: nn.Module) -> AbstractContextManager[object]:
        """Adds the bottlenecks to what the MLPs give out."""
        return after_mlp(text_blocks(model), list(self.bottlenecks))


def bottleneck(width: int, reduction: int) -> nn.Sequential:
    """Returns ``W_up relu(W_down h)`` for rows of a width, zero at first."""
    up = nn.Linear(max(1, width // reduction), width)
    nn.init.zeros_(up.weight)
    nn.init.zeros_(up.bias)
    return nn.Sequential(nn.Linear(width, max(1, width // reduction)), nn.ReLU(), up)


class TextLowRank(InsideText):
    """``W x + (alpha / r) B A x`` for the query and the value projection of every block (Hu et al., ICLR 2022).

    Attributes:
        down: two (rank, width) matrices A for each block, query first; Kaiming-uniform.
        up: two (width, rank) matrices B for each block; zero, so that the tower's output is unchanged to the bit.
    """

    kind = "text-low-rank"

    def __init__(self, owner: Owner, config: Mapping[str, Any], blocks: list[nn.Module]) -> None:
        super().__init__(owner, config, blocks)
        shapes = [(width_of(block), width_of(block)) for block in blocks for _ in "qv"]
        self.down, self.up = low_rank_pairs(shapes, int(config["rank"]))

    def inside(self, model: nn.Module) -> AbstractContextManager[object]:
        transformer: nn.Module = text_parts(model).transformer  # type: ignore[assignment]
        return overlaid(transformer, self.sums(text_blocks(model)))

    def sums(self, blocks: list[nn.Module]) -> dict[str, Tensor]:
        """Returns the fused projection (3 width, width) of each block with the deltas on queries and values."""
        factor = float(self.config["alpha"]) / float(self.config["rank"])
        deltas = [factor * up @ down for up, down in zip(self.up, self.down, strict=True)]
        summed = {}
        for number, (block, query, value) in enumerate(zip(blocks, deltas[::2], deltas[1::2], strict=True)):
            weight = block.get_parameter("attn.in_proj_weight")
            fused = torch.cat([query, torch.zeros_like(query), value])
            summed[f"resblocks.{number}.attn.in_proj_weight"] = weight + fused
        return summed


class TextPrefixes(InsideText):
    """Keys and values before all tokens of every block (P-Tuning v2; Liu et al., ACL 2022).

    While a language is learned for the first time they come out of an embedding and a network of two layers with a
    tanh, which steadies training; `folded` keeps what comes out and drops both.

    Attributes:
        prefixes: (blocks, 2, length, width) keys and values, once folded.
        rows: (length, width) what the network makes them of, before.
    """

    kind = "text-prefixes"

    def __init__(self, owner: Owner, config: Mapping[str, Any], blocks: list[nn.Module]) -> None:
        super().__init__(owner, config, blocks)
        length, width = int(config["length"]), width_of(blocks[0])
        self._shape = (len(blocks), 2, length, width)
        if config["folded"]:
            self.prefixes = nn.Parameter(torch.zeros(self._shape))
        else:
            hidden = int(config["hidden"])
            self.rows = nn.Parameter(torch.randn(length, width))
            self.network = nn.Sequential(
                nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, 2 * len(blocks) * width)
            )

    def inside(self, model: nn.Module) -> AbstractContextManager[object]:
        return prefixed(text_blocks(model), [(keys, values) for keys, values in self.made()])

    def made(self) -> Tensor:
        """Returns the prefixes (blocks, 2, length, width)."""
        if self.config["folded"]:
            return self.prefixes
        blocks, pair, length, width = self._shape
        made: Tensor = self.network(self.rows)
        return made.view(length, blocks, pair, width).permute(1, 2, 0, 3)

    def folded(self, model: nn.Module) -> Self:
        """Returns an insert with the same outputs that holds the prefixes alone."""
        made = self.build(self.owner, {**self.config, "folded": True}, model)
        with torch.no_grad():
            made.prefixes.copy_(self.made())
        return made
