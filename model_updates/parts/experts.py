"""Experts in every block of a frozen tower, and one router for each update: the inserts of MoE-Adapters.

``x <- x + MLP(LN(x)) + sum_{e of the two best} w_e E_e(x)`` with ``E(x) = 0.1 W_up relu(W_down x)`` on the stream
before the second norm. A router is asked once a block and input, at the class token of a picture or the end token of a
text; the logits are ``x_0 W_r``, in training with noise of size ``softplus(x_0 W_n) + 0.01``; the two best are
weighted by their softmax. Which update's router reads an input its own feature says, from a run of the tower without
experts (`parts/selectors.py`); what no selector knows runs as the plain tower does.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout, softplus

from model_updates.errors import BadStrategyOption
from model_updates.inserts import Insert, Owner, RunImages, RunTexts
from model_updates.parts.selectors import NOBODY, Selector, selected
from model_updates.parts.text_blocks import require_blocks, require_image_blocks, text_blocks, width_of
from model_updates.towers import image_tower, image_trunk, text_body, text_parts

CHOSEN = 2  # experts that read an input
SCALE = 0.1
LEAST_NOISE = 0.01


class Experts(Insert):
    """Experts, routers and selectors of one tower.

    Attributes:
        down: (blocks, experts, width, bottleneck), Kaiming-uniform.
        up: (blocks, experts, bottleneck, width), zero, so that the tower's output is unchanged at first.
        gates: W_r of each update, (blocks, width, experts).
        noises: W_n of each update.
        selectors: what knows each update's inputs.
        frozen: (blocks, experts) bool, those that earlier updates used most.
        used: (blocks, experts) int64, how often this update's router chose each in training.
        learning: number of the update whose router reads everything in training; None between updates.
    """

    def __init__(self, owner: Owner, config: Mapping[str, Any], blocks: int, width: int) -> None:
        super().__init__(owner, config)
        experts, bottleneck = int(config["experts"]), int(config["bottleneck"])
        self.down = nn.Parameter(torch.zeros(blocks, experts, width, bottleneck))
        self.up = nn.Parameter(torch.zeros(blocks, experts, bottleneck, width))
        self.gates, self.noises, self.selectors = nn.ParameterList(), nn.ParameterList(), nn.ModuleList()
        self.frozen: Tensor
        self.used: Tensor
        self.register_buffer("frozen", torch.zeros(blocks, experts, dtype=torch.bool))
        self.register_buffer("used", torch.zeros(blocks, experts, dtype=torch.int64))
        self.learning: int | None = None
        for _ in range(int(config["routers"])):
            self._add_router()

    def draw(self, generator: torch.Generator) -> None:
        """Fills W_down Kaiming-uniformly, as a linear layer of this width would be."""
        bound = 1 / math.sqrt(self.down.shape[2])
        with torch.no_grad():
            self.down.copy_((torch.rand(self.down.shape, generator=generator) * 2 - 1) * bound)

    def begin(self) -> None:
        """Adds the router of a new update, which chooses at random until it has learned, and lets it train."""
        self._add_router()
        self.config["routers"] = len(self.gates)
        self.learning = len(self.gates) - 1
        self.requires_grad_(False)
        for parameter in self.trained():
            parameter.requires_grad_(True)

    def trained(self) -> list[nn.Parameter]:
        """Returns what trains: the experts and the newest router."""
        return [self.down, self.up, self.gates[-1], self.noises[-1]]

    @property
    def _learns(self) -> bool:
        return self.training and self.learning is not None

    @property
    def newest_selector(self) -> Selector:
        """The selector of the update that learns, or of the last one."""
        newest = self.selectors[-1]
        if not isinstance(newest, Selector):
            raise TypeError(f"a selector is a Selector, found {type(newest).__name__}")
        return newest

    def hold_frozen(self) -> None:
        """Takes the gradients of frozen experts away."""
        for parameter in (self.down, self.up):
            if parameter.grad is not None:
                parameter.grad[self.frozen] = 0

    def end(self) -> None:
        """Freezes the two experts of each block that this update used most."""
        most = self.used.topk(min(CHOSEN, self.used.shape[1]), dim=1).indices
        self.frozen.scatter_(1, most, True)
        self.used.zero_()
        self.learning = None

    def _add_router(self) -> None:
        blocks, experts, width, _ = self.down.shape
        for routers in (self.gates, self.noises):
            routers.append(nn.Parameter(torch.zeros(blocks, width, experts, device=self.down.device)))
        selector = Selector(int(self.config["dim"]), int(self.config["hidden"]))
        self.selectors.append(selector.to(self.down.device).requires_grad_(False))

    def routers_of(self, count: int, feature: Callable[[], Tensor]) -> Tensor:
        """Returns the router that reads each of n inputs by (n, dim) features without experts; `NOBODY` for none."""
        if self.training and self.learning is not None:
            return torch.full((count,), self.learning, dtype=torch.int64, device=self.down.device)
        with torch.no_grad():
            return selected(list(self.selectors), feature())

    def weights(self, block: int, routers: Tensor, first: Tensor) -> Tensor:
        """Returns the (n, experts) weights of experts, two of them not 0, or all 0 where no router reads an input.

        `routers` (n,) says which router reads each input, `first` (n, width) is the token that routes it.
        """
        reads = routers.clamp(min=0)
        logits = torch.einsum("nw,nwe->ne", first.float(), self._of_block(self.gates, block)[reads])
        if self._learns:
            spread = torch.einsum("nw,nwe->ne", first.float(), self._of_block(self.noises, block)[reads])
            logits = logits + torch.randn_like(logits) * (softplus(spread) + LEAST_NOISE)
        logits = logits.float()  # a tower that trains on a GPU runs in bf16, and a softmax gives float32
        best, chosen = logits.topk(CHOSEN, dim=1)
        if self._learns:
            self.used[block] += torch.bincount(chosen.flatten(), minlength=logits.shape[1])
        weights = torch.zeros_like(logits).scatter(1, chosen, best.softmax(dim=1))
        return weights * (routers != NOBODY)[:, None]

    def added(self, block: int, stream: Tensor, weights: Tensor) -> Tensor:
        """Returns what the experts of a block add to a stream (n, length, width)."""
        out = torch.zeros_like(stream)
        share = float(self.config["dropout"])
        for expert in range(weights.shape[1]):
            rows = weights[:, expert].nonzero()[:, 0]
            if len(rows):
                hidden = dropout((stream[rows] @ self.down[block, expert]).relu(), share, self._learns)
                read = SCALE * weights[rows, expert, None, None] * (hidden @ self.up[block, expert])
                out = out.index_add(0, rows, read.to(out.dtype))
        return out

    @contextmanager
    def inside(
        self, blocks: Sequence[nn.Module], routers: Tensor, first: Callable[[Tensor], Tensor]
    ) -> Iterator[None]:
        """Adds the experts to the tower's blocks while the block of code runs.

        `routers` (n,) says which router reads each input; `first` picks the routing token (n, width) out of a stream.
        """
        with ExitStack() as stack:
            for number, block in enumerate(blocks):
                streams: list[Tensor] = []
                norm: nn.Module = block.ln_2  # type: ignore[assignment]
                stack.callback(norm.register_forward_pre_hook(_keeping(streams)).remove)
                stack.callback(
                    block.register_forward_hook(self._adding(number, streams, routers, first)).remove
                )
            yield

    def _adding(
        self, number: int, streams: list[Tensor], routers: Tensor, first: Callable[[Tensor], Tensor]
    ) -> Callable[[nn.Module, object, Tensor], Tensor]:
        def add(_: nn.Module, given: object, out: Tensor) -> Tensor:
            stream = streams.pop()
            return out + self.added(number, stream, self.weights(number, routers, first(stream)))

        return add

    def _of_block(self, routers: nn.ParameterList, block: int) -> Tensor:
        return torch.stack([router[block] for router in routers])


class ImageExperts(Experts):
    """Experts of open_clip's vision transformer, routed by the class token."""

    kind = "image-experts"
    tower = "image"

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes experts for a model's image tower.

        Raises:
            BadStrategyOption: the tower takes none.
        """
        tower: Any = image_tower(model)
        blocks = _with_norms(require_image_blocks(model))
        width = len(tower.class_embedding)
        dim = width if tower.proj is None else int(tower.proj.shape[1])
        return cls(owner, _fitted(config, dim), len(blocks), width).to(tower.class_embedding.device)

    def around_image(self, model: nn.Module, run: RunImages, pixels: Tensor) -> Tensor:
        """Runs the tower for the feature that chooses routers, and again with the experts."""
        routers = self.routers_of(len(pixels), lambda: image_trunk(model, pixels))
        with self.inside(require_image_blocks(model), routers, lambda stream: stream[:, 0]):
            return run(pixels)


class TextExperts(Experts):
    """Experts of open_clip's own text tower, routed by the end token."""

    kind = "text-experts"
    tower = "text"

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes experts for a model's text tower.

        Raises:
            BadStrategyOption: the tower takes none.
        """
        blocks = _with_norms(require_blocks(model))
        projection = getattr(text_parts(model), "text_projection", None)
        width = width_of(blocks[0])
        dim = int(projection.shape[1]) if isinstance(projection, Tensor) else width
        device = next(blocks[0].parameters()).device
        return cls(owner, _fitted(config, dim), len(blocks), width).to(device)

    def around_text(self, model: nn.Module, run: RunTexts, embedded: Tensor, ends: Tensor) -> Tensor:
        """Runs the body for the feature that chooses routers, and again with the experts."""
        routers = self.routers_of(len(embedded), lambda: text_body(model, embedded, ends))
        rows = torch.arange(len(embedded), device=embedded.device)
        with self.inside(text_blocks(model), routers, lambda stream: stream[rows, ends]):
            return run(embedded, ends)


def _fitted(config: Mapping[str, Any], dim: int) -> dict[str, Any]:
    """Says how long a feature is; an autoencoder with more than a quarter of it between would rebuild anything."""
    return {**config, "dim": dim, "hidden": min(int(config["hidden"]), max(1, dim // 4))}


def _with_norms(blocks: list[nn.Module]) -> list[nn.Module]:
    if not all(isinstance(getattr(block, "ln_2", None), nn.Module) for block in blocks):
        raise BadStrategyOption(
            f"experts read the stream before a block's second norm, and {type(blocks[0]).__name__} has none that we "
            "know; use evergreen"
        )
    return blocks


def _keeping(streams: list[Tensor]) -> Callable[[nn.Module, tuple[Any, ...]], None]:
    def keep(_: nn.Module, given: tuple[Any, ...]) -> None:
        streams.append(given[0])

    return keep
