"""L2P: both towers frozen; a pool of prompts learns, and each input chooses its own.

Idea: prompts are small pieces of input that steer a frozen tower. A pool of them with keys lets inputs of different
kinds find different prompts without anybody saying which update they belong to.

Formula: ``L = L_contrastive - 0.1 * mean_batch sum_k cos(query, key_k)`` for each tower, the query being the feature
of the frozen tower without prompts. Source: Wang et al., CVPR 2022; pool 40, length 5, top 5 as compared with in
C-CLIP (ICLR 2025). For CLIP we put a pool into each tower, as no paper says how: behind the class token, and behind
the start token, which leaves 25 words less. Keys and prompts start from U(-1, 1) and do not decay; the temperature is
the model's.

Kept in the encoder: the two pools, which every input reads from then on (two runs of a tower for one), so that the
gallery is embedded again after each update.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from model_updates.checked import Count, NotNegative
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.inserts import ENCODER
from model_updates.pair_sets import Batch
from model_updates.parts.frozen_towers import FrozenTowers
from model_updates.parts.prompt_pool import ImagePrompts, PromptPool, TextPrompts
from model_updates.parts.two_towers import RunOptions
from model_updates.strategy import Epochs, Family, ParameterGroup, Schedule, UpdateContext


@dataclass(frozen=True)
class L2pOptions(RunOptions):
    """Options of `l2p`."""

    pool: Count = 40  # prompts in each tower's pool (40).
    length: Count = 5  # tokens of a prompt (5).
    top: Count = 5  # prompts that an input takes (5).
    pull: NotNegative = 0.1  # weight of the cosine between queries and chosen keys (0.1).

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.top > self.pool:
            raise BadStrategyOption(f"top is at most pool, got top={self.top}, pool={self.pool}")


class L2p(FrozenTowers):
    """Learning to prompt, in both towers."""

    name = "l2p"
    summary = "Freezes both towers and learns a pool of prompts; every query then costs two runs of a tower."
    paper = "Wang et al., CVPR 2022, as compared with in C-CLIP (ICLR 2025)"
    family = Family.MODULES
    trains = "a pool of prompts in each tower"
    keeps = "nothing: the pools are part of the encoder"
    overhead = "two runs of each tower for every input"
    options: L2pOptions

    def before_update(self, context: UpdateContext) -> None:
        """Freezes the towers and puts the pools in, or goes on with those of earlier updates."""
        super().before_update(context)
        encoder = context.encoder
        self._pools = [insert for insert in encoder.inserts if isinstance(insert, PromptPool)]
        if not self._pools:
            generator = torch.Generator().manual_seed(context.seed)
            self._pools = self.built(encoder.model)
            for pool in self._pools:
                pool.draw(generator)
            encoder.inserts.extend(self._pools)
        for pool in self._pools:
            pool.requires_grad_(True)
        encoder.forget_fingerprints()

    def built(self, model: nn.Module) -> list[PromptPool]:
        config = {"size": self.options.pool, "length": self.options.length, "top": self.options.top}
        return [ImagePrompts.build(ENCODER, config, model), TextPrompts.build(ENCODER, config, model)]

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns keys and prompts, which do not decay: decay would move those that nobody chose."""
        return [ParameterGroup([p for pool in self._pools for p in pool.parameters()], weight_decay=0.0)]

    def schedule(self, encoder: Encoder) -> Schedule:
        return self.options.cosine(encoder, small=3e-2, large=3e-3, weight_decay=0.0)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the contrastive term and the pull of keys towards queries."""
        for pool in self._pools:
            pool.forget()
        terms = super().terms(batch)
        pulls = torch.stack([pool.pull for pool in self._pools]).sum()
        return terms | {"keys": -self.options.pull * pulls}

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        for pool in self._pools:
            pool.forget()

    def notes(self) -> list[str]:
        return [f"{len(pool.keys)} prompts in the {pool.tower} tower." for pool in self._pools]
