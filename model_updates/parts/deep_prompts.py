"""Prompts of several layers, the same for every input, in both towers: the inserts of CPE-CLIP.

The first layer's prompts are put among the tokens; before each further layer what has become of them is replaced by
that layer's own. Behind the start token of a text they are given positions like words; at the end of a picture's tokens
they have none. Those of the image tower are a linear map of those of the text tower, so that both learn together.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn

from model_updates.errors import BadStrategyOption
from model_updates.inserts import Insert, Owner, RunImages, RunTexts
from model_updates.parts.prompt_pool import behind_start
from model_updates.parts.text_blocks import require_blocks, require_image_blocks, text_blocks, width_of
from model_updates.towers import image_tower, text_parts

Replace = Callable[[Tensor, Tensor], Tensor]


class DeepTextPrompts(Insert):
    """Prompts (depth, length, width) of the text tower."""

    kind = "deep-text-prompts"
    tower = "text"

    def __init__(self, owner: Owner, config: Mapping[str, Any], width: int) -> None:
        super().__init__(owner, config)
        self.prompts = nn.Parameter(torch.zeros(int(config["depth"]), int(config["length"]), width))

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes prompts for open_clip's own text tower.

        Raises:
            BadStrategyOption: the tower is another one, has fewer layers, or would have no room for words.
        """
        blocks = require_blocks(model)
        positions: Tensor = text_parts(model).positional_embedding  # type: ignore[assignment]
        _require_depth(config, len(blocks))
        if int(config["length"]) > len(positions) - 3:
            raise BadStrategyOption(
                f"{config['length']} prompt tokens leave no room for words in a context of {len(positions)}; "
                "choose a smaller length, or use finetune"
            )
        return cls(owner, config, width_of(blocks[0])).to(positions.device)

    def draw(self, generator: torch.Generator) -> None:
        """Fills the prompts Xavier-uniformly."""
        _draw_into(self.prompts, generator)

    def around_text(self, model: nn.Module, run: RunTexts, embedded: Tensor, ends: Tensor) -> Tensor:
        """Runs the body with the prompts behind the start token."""
        first, *further = self.prompts
        longer, last = behind_start(model, embedded, ends, first.expand(embedded.shape[0], -1, -1))
        with _replaced(text_blocks(model), further, _behind_start):
            return run(longer, last)


class DeepImagePrompts(Insert):
    """Prompts (depth, length, width) of the image tower, a linear map of the text tower's.

    Attributes:
        map: from the text tower's width to this one's.
        prompts: what the map makes of the text tower's prompts; what pictures are read with between updates.
    """

    kind = "deep-image-prompts"
    tower = "image"

    def __init__(self, owner: Owner, config: Mapping[str, Any], width: int) -> None:
        super().__init__(owner, config)
        self.map = nn.Linear(int(config["from"]), width)
        self.prompts: Tensor
        shape = (int(config["depth"]), int(config["length"]), width)
        self.register_buffer("prompts", torch.zeros(shape))
        self._source: list[Tensor] = []  # in a list: it is a parameter of the other insert

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes prompts for open_clip's vision transformer.

        Raises:
            BadStrategyOption: the tower is another one, or has fewer layers.
        """
        _require_depth(config, len(require_image_blocks(model)))
        tower: Any = image_tower(model)
        return cls(owner, config, len(tower.class_embedding)).to(tower.class_embedding.device)

    def draw(self, generator: torch.Generator) -> None:
        """Fills the map's weight Xavier-uniformly; its bias is zero."""
        _draw_into(self.map.weight, generator)
        nn.init.zeros_(self.map.bias)

    def follow(self, source: DeepTextPrompts) -> None:
        """Maps the text tower's prompts anew in every run, until `settle`."""
        self._source = [source.prompts]

    def settle(self) -> None:
        """Keeps what the map makes of the text tower's prompts now."""
        with torch.no_grad():
            self.prompts.copy_(self.made())
        self._source = []

    def made(self) -> Tensor:
        """Returns the prompts (depth, length, width)."""
        if not self._source:
            return self.prompts
        made: Tensor = self.map(self._source[0])
        return made

    def around_image(self, model: nn.Module, run: RunImages, pixels: Tensor) -> Tensor:
        """Runs the tower with the prompts behind its last token."""
        first, *further = self.made()
        blocks = require_image_blocks(model)
        with _appended(blocks[0], first), _replaced(blocks, further, _at_the_end):
            return run(pixels)


def _draw_into(parameter: Tensor, generator: torch.Generator) -> None:
    """Fills a parameter Xavier-uniformly with what is drawn on the CPU, so that a seed means the same everywhere."""
    drawn = torch.empty(parameter.shape)
    nn.init.xavier_uniform_(drawn, generator=generator)
    with torch.no_grad():
        parameter.copy_(drawn)


def _require_depth(config: Mapping[str, Any], layers: int) -> None:
    if int(config["depth"]) > layers:
        raise BadStrategyOption(
            f"prompts of {config['depth']} layers do not go into a tower of {layers}; choose a smaller depth, or 0 "
            "to use as many as there are"
        )


def _behind_start(hidden: Tensor, prompts: Tensor) -> Tensor:
    return torch.cat([hidden[:, :1], prompts, hidden[:, 1 + prompts.shape[1] :]], dim=1)


def _at_the_end(hidden: Tensor, prompts: Tensor) -> Tensor:
    return torch.cat([hidden[:, : -prompts.shape[1]], prompts], dim=1)


@contextmanager
def _appended(block: nn.Module, prompts: Tensor) -> Iterator[None]:
    handle = block.register_forward_pre_hook(
        _changing(prompts, lambda hidden, rows: torch.cat([hidden, rows], dim=1))
    )
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _replaced(blocks: Sequence[nn.Module], further: Sequence[Tensor], replace: Replace) -> Iterator[None]:
    """Replaces the prompts before each block from the second on that has some of its own."""
    with ExitStack() as stack:
        for block, prompts in zip(blocks[1:], further, strict=False):
            stack.callback(block.register_forward_pre_hook(_changing(prompts, replace)).remove)
        yield


def _changing(prompts: Tensor, change: Replace) -> Callable[[nn.Module, tuple[Any, ...]], tuple[Any, ...]]:
    def changed(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        hidden = given[0]
        rows = prompts.to(hidden.dtype).expand(hidden.shape[0], -1, -1)
        return (change(hidden, rows), *given[1:])

    return changed
