"""CTP: compatible momentum contrast and topology preservation.

Idea: beside the model in training stands a slow one that takes from it and from the model before in equal parts; what
is learned must also contrast with the slow one's features. And how the pairs of a batch lie to each other, picture to
text and each among its own kind, stays as the model before saw it, while all of them together may move.

Formula: ``L = L_ITA + L^c_ITA + L_c + L_s``, all weights 1, temperature 0.07, fixed. L_ITA is the symmetric InfoNCE of
the batch; L^c_ITA contrasts it with the slow model's features of the batch and of a queue of the last 1024; L_c and L_s
are the KL divergences of cross-modal and same-modal similarities from the model before, a row's similarity to itself
left out of L_s. The slow model: ``theta_c <- 0.9 theta_c + 0.05 theta_{t-1} + 0.05 theta_t`` before each step. Source:
CTP (ICCV 2023), eq. 1, 3, 4 and 6 to 10; in its code the first task goes without L_c and L_s, with a plain moving
average of 0.995.

Each part can be switched off, as in the paper's tables 2 and 3: ``momentum_contrast=0`` (no CMC), ``cross_topology=0``,
``same_topology=0``, ``follows=previous`` (only theta_{t-1}) or ``current`` (only theta_t), ``queue=0``,
``suppress_diagonal=no``.

Where we differ: the paper starts from nothing, so that its first task has nothing to preserve; our first update starts
from an encoder that people search with and is one like any other (``from_scratch=yes`` is the paper's). Chunks are so
small that a queue still holds a pair's own features when it comes again: what shows the same picture is no negative,
nor are two captions of one picture in a batch. The model's temperature is set to the fixed one, since later readers of
its cosines go by it. Rates and epochs are those of all our two-tower strategies, as the paper's are its baselines'
(1e-4 from ImageNet and BERT weights, 5 epochs). The old model's features are the cached ones: there is no augmentation.

With ``fusion=yes`` the paper's other half learns too: a fusion encoder over words and patches guesses hidden words
(L_mlm, and L^c_mlm from the slow model, eq. 2 and 5) and tells pairs from others; see `model_updates.fusion`. It moves
the towers with it, stays in the encoder beside them, and search can re-rank its first hits by it.

Carried between updates: the queue. The slow model starts anew from the encoder before each update.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.checked import CountOrZero, NotNegative, OneOf, Share, Within
from model_updates.encoder import Encoder
from model_updates.fusion.encoder import towers_digest
from model_updates.fusion.teaching import FusionTeaching
from model_updates.fusion.tokens import Read, no_tokens, read_pairs
from model_updates.pair_sets import Batch
from model_updates.parts.momentum_contrast import NOBODY, FeatureQueue, MomentumModel, queue_contrast
from model_updates.parts.topology import cross_modal_topology, same_modal_topology
from model_updates.parts.two_towers import TwoTowerOptions, TwoTowers, contrast
from model_updates.prospect import Prospect
from model_updates.strategy import Epochs, Family, ParameterGroup, State, UpdateContext
from model_updates.towers import is_scale, is_small

Pair = tuple[Tensor, Tensor]
SHARES_OF_OLD = {"both": 0.5, "previous": 1.0, "current": 0.0}


@dataclass(frozen=True)
class CtpOptions(TwoTowerOptions):
    """Adds the terms and the slow model to the options of two towers."""

    temperature: Annotated[float, Within("[0.01, 1]")] = 0.07  # of every term, fixed (paper: 0.07).
    momentum: Share = 0.9  # how much of the slow model stays in a step (paper: 0.9).
    # what the slow model moves towards: "both", "previous" or "current".
    follows: Annotated[str, OneOf(*SHARES_OF_OLD)] = "both"
    queue: CountOrZero = 1024  # features of the slow model kept as negatives (paper: 1024); 0 keeps none.
    momentum_contrast: NotNegative = 1.0  # weight of the contrast with the slow model; 0 goes without it.
    cross_topology: NotNegative = 1.0  # weight of the similarities of pictures to texts; 0 goes without.
    # weight of the similarities among pictures and among texts; 0 goes without.
    same_topology: NotNegative = 1.0
    suppress_diagonal: bool = True  # leave a row's similarity to itself out of the latter.
    # the encoder of the first update knows nothing yet: no topology there, and a slow model that follows the
    # current one at `first_momentum`.
    from_scratch: bool = False
    first_momentum: Share = 0.995  # of that update (paper's code: 0.995), and of a fusion encoder's first.
    # also teach a fusion encoder, which search can re-rank with; about three times the work.
    fusion: bool = False
    fusion_layers: CountOrZero = 0  # of a new one; 0 means 6 as in the paper, 2 for small encoders.
    fusion_rate: NotNegative = 5.0  # learning-rate factor of the fusion encoder, which starts from nothing.


class Ctp(TwoTowers):
    """Compatible momentum contrast with topology preservation."""

    name = "ctp"
    summary = (
        "Trains both towers beside a slow model between old and new, and keeps how pairs lie to each other."
    )
    paper = "CTP, ICCV 2023, eq. 1 and 3 to 10"
    family = Family.DISTILLATION
    trains = "both towers"
    keeps = "a queue of 1024 pairs' features"
    overhead = "a slow model in memory and its forward pass (CTP: 4.0 h against 3.4 h)"
    needs = frozenset({"text_features"})
    options: CtpOptions

    def __init__(self, options: CtpOptions | None = None) -> None:
        super().__init__(options)
        self._carried_queue: FeatureQueue | None = None
        self._queue: FeatureQueue | None = None
        self._slow: MomentumModel | None = None
        self._fresh: tuple[Tensor, Tensor, Tensor] | None = None
        self._fusion: FusionTeaching | None = None

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses two text spaces, and towers whose tokens a fusion encoder cannot read, where one is asked for."""
        return super().fits(prospect) or (no_tokens(prospect.encoder) if self.options.fusion else None)

    def before_update(self, context: UpdateContext) -> None:
        """Fixes the temperature, starts the slow model, takes up the queue, and puts a fusion encoder in."""
        super().before_update(context)
        options, encoder = self.options, context.encoder
        for name, parameter in encoder.model.named_parameters():
            if is_scale(name):
                parameter.requires_grad_(False)
        encoder.model.logit_scale.fill_(-math.log(options.temperature))  # type: ignore[operator]
        self._preserves = not (options.from_scratch and context.update_number == 1)
        moves = (options.momentum, SHARES_OF_OLD[options.follows])
        if not self._preserves:
            moves = (options.first_momentum, 0.0)
        self._slow = self._queue = self._fusion = None
        if options.momentum_contrast:
            self._slow = MomentumModel(context.open_previous(), momentum=moves[0], share_of_old=moves[1])
            self._queue = self._first_queue(encoder.dim, context.seed).to(encoder.device)
        if options.fusion:
            self._fusion = FusionTeaching.begin(
                encoder,
                layers=options.fusion_layers or (2 if is_small(encoder.dim) else 6),
                seed=context.seed,
                slow=moves if options.momentum_contrast else None,
                first=options.first_momentum,
            )

    def _first_queue(self, dim: int, seed: int) -> FeatureQueue:
        kept = self._carried_queue
        if kept is None or kept.images.shape != (self.options.queue, dim):
            return FeatureQueue.random(self.options.queue, dim, seed)
        return FeatureQueue(
            kept.images.clone(), kept.texts.clone(), torch.full_like(kept.pictures, NOBODY), kept.pointer
        )

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns those of two towers without the temperature, which is fixed, and the fusion encoder's."""
        groups = super().parameter_groups()
        for group in groups:
            group.parameters = [parameter for parameter in group.parameters if parameter.requires_grad]
        if self._fusion is not None:
            own, rate = list(self._fusion.fusion.parameters()), self.options.fusion_rate
            groups.append(ParameterGroup([p for p in own if p.ndim >= 2], rate))
            groups.append(ParameterGroup([p for p in own if p.ndim < 2], rate, weight_decay=0.0))
        return groups

    def _move_slow_models(self) -> None:
        if self._slow is not None:
            self._slow.step(self._encoder.model)
        if self._fusion is not None and self._fusion.slow is not None:
            self._fusion.slow.step(self._fusion.fusion)

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Moves the slow model; returns the contrasts with the batch and with it, both topologies, and the fusion's."""
        self._move_slow_models()
        scale, with_tokens = 1 / self.options.temperature, self._fusion is not None
        images, texts = read_pairs(self._encoder, batch, tokens=with_tokens)
        new = _unit(images, texts)
        terms = {"contrastive": contrast(self._encoder, *new, batch)}
        slow: tuple[Encoder, Read] | None = None
        if self._slow is not None and self._queue is not None:
            with torch.no_grad():
                slow_images, slow_texts = read_pairs(self._slow.encoder, batch, tokens=with_tokens)
            slow, keys = (self._slow.encoder, slow_images), _unit(slow_images, slow_texts)
            momentum = queue_contrast(new, keys, self._queue, batch.image_index, scale)
            terms["momentum"] = self.options.momentum_contrast * momentum
            self._fresh = (*keys, batch.image_index)
        if self._preserves and batch.text_features is not None:
            terms |= self._topology(new, (batch.image_features, batch.text_features), batch.image_index)
        if self._fusion is not None:
            terms |= self._fusion.terms(batch, images, texts, slow, scale)
        if "slow-words" in terms:
            terms["slow-words"] = self.options.momentum_contrast * terms["slow-words"]
        return terms

    def _topology(self, new: Pair, old: Pair, image_index: Tensor) -> dict[str, Tensor]:
        options, scale = self.options, 1 / self.options.temperature
        terms = {}
        if options.cross_topology:
            terms["cross-topology"] = options.cross_topology * cross_modal_topology(new, old, scale)
        if options.same_topology:
            same = same_modal_topology(
                new, old, scale, image_index=image_index, suppress=options.suppress_diagonal
            )
            terms["same-topology"] = options.same_topology * same
        return terms

    def after_step(self) -> None:
        """Puts the slow model's features of the batch into the queue."""
        super().after_step()
        if self._queue is not None and self._fresh is not None:
            self._queue.push(*self._fresh)
        self._fresh = None

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Keeps the queue, and drops the slow model."""
        if self._queue is not None and self.options.queue:
            self._carried_queue = self._queue.to(torch.device("cpu"))
        if self._fusion is not None:
            self._fusion.fusion.config["towers"] = towers_digest(context.encoder)
        self._slow = self._queue = self._fresh = self._fusion = None

    def notes(self) -> list[str]:
        if not self.options.fusion:
            return []
        return ["A fusion encoder learned beside the towers; searches can ask to be re-ranked by it."]

    def progress(self) -> dict[str, Tensor]:
        if self._slow is None or self._queue is None:
            return {}
        slow = (
            self._fusion.slow.progress() if self._fusion is not None and self._fusion.slow is not None else {}
        )
        return self._slow.progress() | self._queue.progress() | slow

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        if self._slow is not None and self._queue is not None:
            self._slow.load_progress(progress)
            self._queue.load_progress(progress)
            if self._fusion is not None and self._fusion.slow is not None:
                self._fusion.slow.load_progress(progress)

    def carried(self) -> State:
        if self._carried_queue is None:
            return State()
        kept = self._carried_queue
        return State({"images": kept.images, "texts": kept.texts}, {"pointer": kept.pointer})

    def carry(self, state: State) -> None:
        """Takes the queue of the updates so far; whose pictures it shows nobody knows any more."""
        images, texts = (state.tensors[name].clone() for name in ("images", "texts"))
        nobody = torch.full((len(images),), NOBODY)
        self._carried_queue = FeatureQueue(images, texts, nobody, int(state.facts["pointer"]))


def _unit(images: Read, texts: Read) -> Pair:
    return normalize(images.features, dim=-1), normalize(texts.features, dim=-1)
