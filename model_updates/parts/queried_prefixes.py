"""Prefixes of a text tower that each text chooses by its own feature: the inserts of DualPrompt and CODA-Prompt.

A text runs through the tower once without them; its feature is the query, without gradients. What the query finds is
put before the keys and values of some blocks in the second run.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from model_updates.inserts import Insert, Owner, RunTexts
from model_updates.parts.text_blocks import Prefix, prefixed, require_blocks, text_blocks, width_of
from model_updates.strategy import Epochs, ParameterGroup, Part, UpdateContext
from model_updates.towers import text_parts


class QueriedPrefixes(Insert):
    """Base of inserts that look prefixes up by a text's own feature."""

    tower = "text"

    @abstractmethod
    def __init__(self, owner: Owner, config: Mapping[str, Any], dim: int, width: int) -> None:
        super().__init__(owner, config)

    @classmethod
    def build(cls, owner: Owner, config: Mapping[str, Any], model: nn.Module) -> Self:
        """Makes prefixes of zeros for a model's text tower."""
        blocks = require_blocks(model)
        width, projection = width_of(blocks[0]), getattr(text_parts(model), "text_projection", None)
        if isinstance(projection, nn.Linear):
            projection = projection.weight.T
        dim = int(projection.shape[1]) if isinstance(projection, Tensor) else width
        return cls(owner, config, dim, width).to(next(blocks[0].parameters()).device)

    @abstractmethod
    def found(self, query: Tensor) -> list[Prefix]:
        """Returns the prefixes of the first blocks for queries (n, dim)."""

    def around_text(self, model: nn.Module, run: RunTexts, embedded: Tensor, ends: Tensor) -> Tensor:
        """Runs the body for the query, and again with what it found."""
        with torch.no_grad():
            query = run(embedded, ends)
        blocks = text_blocks(model)
        prefixes = self.found(query.float())
        with prefixed(blocks[: len(prefixes)], prefixes):
            return run(embedded, ends)


class DualPrompts(QueriedPrefixes):
    """General prefixes for every text in the first blocks, and those of one expert in the blocks after them.

    Attributes:
        general: (blocks, 2, length, width) keys and values for all texts.
        keys: (tasks, dim), what an expert is found by: the nearest by cosine.
        experts: (tasks, blocks, 2, length, width) keys and values of each.
        task: the expert that training says is the right one; None lets each text find its own.
        distances: `1 - cosine` to the key of the right expert for each text since it was last emptied, (n,) each.
    """

    kind = "text-dual-prompts"

    def __init__(self, owner: Owner, config: Mapping[str, Any], dim: int, width: int) -> None:
        super().__init__(owner, config, dim, width)
        tasks = len(config["tasks"])
        self.general = nn.Parameter(_zeros(config["general_blocks"], 2, config["general_length"], width))
        self.keys = nn.Parameter(_zeros(tasks, dim))
        self.experts = nn.Parameter(_zeros(tasks, config["expert_blocks"], 2, config["expert_length"], width))
        self.task: int | None = None
        self.distances: list[Tensor] = []

    @staticmethod
    def configuration(model: nn.Module, *, general: int, expert: int) -> dict[str, Any]:
        """Returns the configuration without a task: general prefixes in two blocks, experts in the next three.

        A tower of fewer blocks keeps at least one for experts.

        `general` and `expert` count the keys, and the values, of a prefix.
        """
        blocks = len(require_blocks(model))
        first = min(2, blocks - 1)
        return {
            "general_blocks": first,
            "general_length": general,
            "expert_blocks": min(3, blocks - first),
            "expert_length": expert,
            "tasks": [],
        }

    def with_tasks(self, names: list[str], model: nn.Module, generator: torch.Generator) -> Self:
        """Returns the same prefixes with an expert for each name that has none, drawn from U(-1, 1)."""
        fresh = [name for name in names if name not in self.config["tasks"]]
        made = self.build(self.owner, {**self.config, "tasks": [*self.config["tasks"], *fresh]}, model)
        with torch.no_grad():
            for name, parameter in made.named_parameters():
                own = self.get_parameter(name)
                parameter.copy_(torch.rand(parameter.shape, generator=generator) * 2 - 1)
                if name != "general" or self.config["tasks"]:
                    parameter[: len(own)] = own
        return made

    @contextmanager
    def told(self, task: int) -> Iterator[None]:
        """Reads the texts inside the block with one expert, whatever they would find."""
        self.task = task
        try:
            yield
        finally:
            self.task = None

    def found(self, query: Tensor) -> list[Prefix]:
        """Returns the general prefixes, then those of the expert that training names or the query is nearest to."""
        cosines = normalize(query, dim=-1) @ normalize(self.keys, dim=-1).T
        if self.task is None:
            chosen = cosines.argmax(dim=1)
        else:
            chosen = torch.full_like(cosines[:, 0], self.task, dtype=torch.int64)
            self.distances.append(1 - cosines[:, self.task])
        general = [(keys, values) for keys, values in self.general]
        experts = self.experts[chosen].transpose(0, 1)
        return [*general, *((block[:, 0], block[:, 1]) for block in experts)]


class CodaPrompts(QueriedPrefixes):
    """One prefix a block, the sum of all components weighted by how well each fits the query.

    Component m weighs ``cos(query * A_m, K_m)``; the first half of the sum is keys, the second values.

    Attributes:
        prompts: (blocks, components, length, width) P.
        keys: (blocks, components, dim) K.
        attention: (blocks, components, dim) A.
        past: how many components, the oldest, get no gradient.
    """

    kind = "text-coda-prompts"

    def __init__(self, owner: Owner, config: Mapping[str, Any], dim: int, width: int) -> None:
        super().__init__(owner, config, dim, width)
        blocks, components = int(config["blocks"]), int(config["components"])
        self.prompts = nn.Parameter(_zeros(blocks, components, config["length"], width))
        self.keys = nn.Parameter(_zeros(blocks, components, dim))
        self.attention = nn.Parameter(_zeros(blocks, components, dim))
        self.past = 0

    @staticmethod
    def configuration(model: nn.Module, *, length: int) -> dict[str, Any]:
        """Returns the configuration without a component: one prefix in each of the first five blocks."""
        return {"blocks": min(5, len(require_blocks(model))), "components": 0, "length": length}

    def with_components(self, count: int, model: nn.Module, generator: torch.Generator) -> Self:
        """Returns the same components and so many new ones, at right angles to the earlier ones; those alone train."""
        past = int(self.config["components"])
        made = self.build(self.owner, {**self.config, "components": past + count}, model)
        with torch.no_grad():
            for name, parameter in made.named_parameters():
                for block, own in zip(parameter, self.get_parameter(name), strict=True):
                    fresh = orthogonal_rows(own.flatten(1), count, block[0].numel(), generator)
                    block.copy_(torch.cat([own, fresh.view(count, *block.shape[1:]).to(own)]))
        made.past = past
        return made

    def found(self, query: Tensor) -> list[Prefix]:
        """Returns each block's weighted sum of components."""
        prefixes = []
        held = (self._held(rows) for rows in (self.prompts, self.keys, self.attention))
        for prompts, keys, attention in zip(*held, strict=True):
            looked_at = normalize(query[:, None] * attention, dim=-1)
            weights = (looked_at * normalize(keys, dim=-1)).sum(dim=-1)
            summed = torch.einsum("nm,mlw->nlw", weights, prompts)
            half = summed.shape[1] // 2
            prefixes.append((summed[:, :half], summed[:, half:]))
        return prefixes

    def _held(self, parameter: Tensor) -> Tensor:
        return torch.cat([parameter[:, : self.past].detach(), parameter[:, self.past :]], dim=1)


def orthogonal_rows(earlier: Tensor, count: int, size: int, generator: torch.Generator) -> Tensor:
    """Returns (count, size) unit rows at right angles to each other and to earlier ones, by Gram and Schmidt.

    Where there are more rows than dimensions, a small encoder after many updates, only as many of the newest earlier
    ones count as leave room.
    """
    count_earlier = max(0, min(len(earlier), size - count))
    basis = earlier[len(earlier) - count_earlier :].double().cpu()
    # Earlier rows have trained: they are no longer at right angles to each other.
    basis = torch.linalg.qr(basis.T).Q.T if len(basis) else basis
    rows = torch.zeros(0, size, dtype=torch.float64)
    for _ in range(count):
        known = torch.cat([basis, rows])
        drawn = torch.randn(size, generator=generator, dtype=torch.float64)
        for _twice in range(2):  # once more takes away what rounding left
            drawn = drawn - known.T @ (known @ drawn)
        rows = torch.cat([rows, normalize(drawn, dim=0)[None]])
    return rows.float()


def _zeros(*shape: Any) -> Tensor:
    return torch.zeros(*map(int, shape))


Grown = Callable[[QueriedPrefixes | None, UpdateContext, torch.Generator], QueriedPrefixes]
"""The prompts with room for what an update teaches, made of those of earlier updates, if there are any."""


class SharedPrompts(Part):
    """Prompts in the text tower that every text chooses from, beside the shared token table; an update grows them.

    They belong to the encoder: no query has to say its language, and every text runs through the tower twice. They do
    not decay, since decay would move those that an update leaves alone.
    """

    def __init__(self, kind: type[QueriedPrefixes], grown: Grown) -> None:
        self._kind, self._grown = kind, grown

    def before_update(self, context: UpdateContext) -> None:
        """Grows the prompts by what this update needs."""
        inserts = context.encoder.inserts
        had = next((insert for insert in inserts if isinstance(insert, self._kind)), None)
        self._trained = self._grown(had, context, torch.Generator().manual_seed(context.seed))
        self._trained.requires_grad_(True)
        if had is None:
            inserts.append(self._trained)
        else:
            inserts[inserts.index(had)] = self._trained
        context.encoder.forget_fingerprints()

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the prompts, which do not decay."""
        return [ParameterGroup(list(self._trained.parameters()), weight_decay=0.0)]

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        self._trained.requires_grad_(False)
