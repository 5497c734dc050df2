"""Domain adapters: every new domain gets small image-side modules of its own, so that no other picture can move.

Idea: pictures of a domain take a route of their own through the image tower: low-rank deltas on its weights, or, where
the tower's trunk features are cached, a head of the domain's own. The tower and all texts stay as they are, so every
learned language gains the domain at once, and the vectors of all other pictures are bit-identical.

Formula: ``L = contrast + a * visibility + b * displacement`` (`parts.domain_terms`).
Source: our own; LoRA (ICLR 2022) for the deltas. Adapters per domain are known from MoE-Adapters (CVPR 2024); there a
router mixes experts for every input, here a picture's domain chooses one and the base stays one of the choices.

Beside the chunk stands a fixed sample of what the gallery knows: old pictures and old captions by their cached
features, in all learned languages. Pairs of the same domain learned earlier are trained on again, since their pictures
move with the adapter.

Kept between updates: the adapters and the router (`parts.router`), part of the encoder.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import torch
from torch import Tensor
from torch.nn.functional import normalize

from model_updates.checked import Checked, Count, CountOrZero, NotNegative, Within
from model_updates.encoder import Encoder
from model_updates.inserts import domain
from model_updates.pair_sets import Batch, UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.adapters import Adapter, adapter_for, maps_features
from model_updates.parts.domain_memory import Earlier, even_sample, trunk_rows
from model_updates.parts.domain_terms import (
    MOST_TEXTS,
    all_held,
    caption_numbers,
    contrast,
    found_held,
    joined,
    known,
    visibility,
)
from model_updates.parts.router import renew_router
from model_updates.prospect import Prospect, listed
from model_updates.strategy import (
    Epochs,
    Family,
    Foresight,
    ParameterGroup,
    Schedule,
    Strategy,
    Tolerance,
    UpdateContext,
)
from model_updates.towers import is_small


@dataclass(frozen=True)
class AdapterDefaults:
    """What suits an adapter of some kind; `scale` is the inverse temperature, None the model's own.

    A delta in the tower has room to step aside (docs/log.md: weight 5 costs the old style ten first places, 20 none); a
    head has little, and with 20 photographs' own captions found two points less.

    Nothing but the new domain can come to harm by a longer training of a delta, and few validation pictures say little:
    of 18, the best epoch of eight was by chance the second, and half as much was learned by the fourth, which one
    standard error allowed, as by the last; of 14, all were found after the first. So an epoch is kept that is the last
    within two standard errors or two pictures.
    """

    epochs: int
    batch_size: int
    learning_rate: float
    weight_decay: float
    displacement: float
    scale: float | None = None
    tolerance: Tolerance = Tolerance()


# Deltas measured on the emoji style `line` (docs/log.md), heads on the photographs of flickr8k.
SMALL_TOWER = AdapterDefaults(
    epochs=22,
    batch_size=128,
    learning_rate=3e-3,
    weight_decay=0.0,
    displacement=20.0,
    tolerance=Tolerance(errors=2, pictures=2),
)
TOWER = replace(SMALL_TOWER, epochs=15, learning_rate=1e-3)
HEAD = AdapterDefaults(
    epochs=8, batch_size=1024, learning_rate=5e-4, weight_decay=0.05, displacement=5.0, scale=16.0
)
# A tower's forwards are what an update costs: beyond 2,700 pairs there are fewer epochs (not measured beyond 2,000).
TOWER_PAIRS, TOWER_FEWEST_EPOCHS = 60_000, 5
# A head costs next to nothing a step, so a small chunk takes as many steps as a large one, in smaller batches.
HEAD_STEPS, HEAD_SMALLEST_BATCH = 272, 64
KIND_DEFAULT = -1.0
MANY_PAIRS = 512  # a batch that has enough texts to tell apart by itself


@dataclass(frozen=True)
class DomainAdaptersOptions(Checked):
    """Options of `domain-adapters`."""

    rank: Count = 16  # of low-rank deltas; alpha is twice the rank.
    visibility: NotNegative = 1.0  # weight of being found beside the old pictures.
    # weight of leaving old captions their own picture; -1 means the default of the adapter's kind.
    displacement: Annotated[float, Within("[0, inf)", default=KIND_DEFAULT)] = KIND_DEFAULT
    # at most so many pairs of other domains stand beside the chunk, the same number of each slice.
    known_pairs: CountOrZero = 6000
    # at most so many earlier pairs of the same domain are trained on again.
    earlier_pairs: CountOrZero = 1000
    epochs: CountOrZero = 0  # 0 means the default of the adapter's kind.
    # 0 means the default of the adapter's kind.
    batch_size: Annotated[int, Within("[2, inf)", default=0)] = 0
    learning_rate: NotNegative = 0.0  # 0 means the default of the adapter's kind.


class DomainAdapters(Strategy):
    """Trains one adapter for each domain of the chunk, and nothing else."""

    name = "domain-adapters"
    summary = (
        "Gives each domain a small image adapter of its own; no other picture and no text can change. "
        "Only the domain's pictures are embedded again."
    )
    can_forget = False
    paper = "our own; low-rank deltas of LoRA, ICLR 2022"
    family = Family.OURS
    trains = "an adapter for each new domain"
    keeps = "nothing: the adapters are part of the encoder; of a domain taught again, earlier pairs are learned again"
    overhead = "two terms on cached features"
    embeds_again = "those of the new domains"
    needs = frozenset({"text_features"})
    touches = frozenset({"image"})
    options: DomainAdaptersOptions

    def __init__(self, options: DomainAdaptersOptions | None = None) -> None:
        super().__init__(options)
        self._adapters: dict[str, Adapter] = {}
        self._went_on: list[str] = []
        self._pairs = 0

    @property
    def reads_pictures(self) -> bool:
        """Unless every adapter maps cached trunk features."""
        return any(adapter.runs_in_tower for adapter in self._adapters.values())

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses captions that nobody can read yet: an adapter learns how pictures look from what captions say."""
        if prospect.languages & prospect.learned_languages:
            return None
        return (
            f"no caption of this chunk is in a language that is learned ({listed(prospect.languages)} is not), so they "
            f"cannot say to {self.name} what its pictures show. Use evergreen, which teaches the language too"
        )

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns what the gallery knows: earlier pairs of the chunk's domains, and a sample of every other slice."""
        taught = {pair.domain for pair in context.pairs}
        found = context.open_known()
        learned = {(pair.image_id, pair.language, pair.text) for pair in context.open_earlier()}
        own = [
            pair
            for pair in found
            if pair.domain in taught and (pair.image_id, pair.language, pair.text) in learned
        ]
        others = [pair for pair in found if pair.domain not in taught]
        return (*even_sample(own, self.options.earlier_pairs), *even_sample(others, self.options.known_pairs))

    def before_update(self, context: UpdateContext) -> None:
        """Freezes everything and gives each domain of the chunk its adapter, a new one or the one it has."""
        encoder = self._encoder = context.encoder
        for _, parameter in encoder.parameters():
            parameter.requires_grad_(False)
        torch.manual_seed(context.seed)
        had = set(encoder.image_routes)
        self._pairs = len(context.pairs)
        self._adapters = {
            name: adapter_for(encoder, domain(name), rank=self.options.rank)
            for name in sorted({pair.domain for pair in context.pairs})
        }
        self._went_on = sorted(had & set(self._adapters))
        self._seed = context.seed
        encoder.forget_fingerprints()

    def take(self, data: UpdateData) -> None:
        """Receives the chunk's texts, the old pictures and captions, and the domain's own earlier pairs."""
        device = self._encoder.device
        taught, remembered = caption_numbers(data.train.pairs, data.memory.pairs)
        self._taught = known(data.train, taught).to(device)
        memory = known(data.memory, remembered).to(device)
        own = [n for n, pair in enumerate(data.memory.pairs) if pair.domain in self._adapters]
        others = sorted(set(range(len(memory))) - set(own))
        self._old = memory.rows(torch.tensor(others, dtype=torch.int64, device=device))
        if maps_features(self._encoder):
            self._held = found_held(self._old, self._scale)
        else:
            domains = [data.memory.pairs[n].domain for n in others]
            crowd = len({pair.image_id for pair in data.train.pairs}) + len(
                {data.memory.pairs[n].image_id for n in own}
            )
            self._held = all_held(self._old, domains, self._scale, crowd=crowd)
        self._earlier = Earlier(self._encoder, data, memory, own, pictures=self.reads_pictures)
        generator = torch.Generator().manual_seed(self._seed)
        some = torch.randperm(len(self._taught), generator=generator)[:MOST_TEXTS]
        self._told_apart = self._taught.rows(some.to(device))
        self._trunks = trunk_rows(data)

    def parameter_groups(self) -> list[ParameterGroup]:
        return [ParameterGroup([p for a in self._adapters.values() for p in a.parameters()])]

    def foreseen(self, context: UpdateContext) -> Foresight:
        """Returns what adapters of the chunk's domains would cost; their pictures alone move."""
        epochs = self.options.epochs or defaults_for(context.encoder, len(context.pairs)).epochs
        domains = frozenset(pair.domain for pair in context.pairs)
        return Foresight(epochs, not maps_features(context.encoder), moves_pictures=True, domains=domains)

    def schedule(self, encoder: Encoder) -> Schedule:
        usual = defaults_for(encoder, self._pairs)
        return Schedule(
            epochs=self.options.epochs or usual.epochs,
            batch_size=self.options.batch_size or usual.batch_size,
            learning_rate=self.options.learning_rate or usual.learning_rate,
            weight_decay=usual.weight_decay,
            betas=(0.9, 0.99),
            decay="cosine",
            tolerance=usual.tolerance,
        )

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        pairs = self._taught.rows(batch.row)
        rows = [self._forward(batch.images, batch.trunk, batch.domains)]
        told_apart = [self._told_apart] if len(self._taught) <= MOST_TEXTS else [self._told_apart, pairs]
        if len(pairs) >= MANY_PAIRS:
            told_apart = [pairs]
        again = self._earlier.drawn(batch.row)
        if again is not None:
            rows.append(self._forward(again.images, again.trunk, again.domains))
            told_apart.append(again.pairs)
            pairs = joined([pairs, again.pairs])
        pictures = normalize(torch.cat(rows).float(), dim=-1)
        scale = self._scale
        terms = {"contrast": contrast(pictures, pairs, joined(told_apart), scale)}
        if len(self._old):
            terms["visibility"] = self.options.visibility * visibility(pictures, pairs, self._old, scale)
        if len(self._held):
            given = self.options.displacement
            weight = defaults_for(self._encoder).displacement if given == KIND_DEFAULT else given
            terms["displacement"] = weight * self._held.displacement(pictures, pairs, scale)
        return terms

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        """Rounds the adapters to the precision they are stored in, and fits the router anew."""
        for adapter in self._adapters.values():
            adapter.settle()
        renew_router(context.encoder, self._trunks)

    def notes(self) -> list[str]:
        return [
            f"{name}: {'its adapter went on learning' if name in self._went_on else 'a new adapter'}, "
            f"{sum(p.numel() for p in adapter.parameters()):,} values; no other picture and no text could change."
            for name, adapter in self._adapters.items()
        ]

    @property
    def _scale(self) -> float:
        """The inverse temperature: the kind's own, or the model's, which stays as it is."""
        given = defaults_for(self._encoder).scale
        return given or float(self._encoder.model.logit_scale.exp())  # type: ignore[operator]

    def _forward(self, images: Tensor | None, trunk: Tensor, domains: Sequence[str]) -> Tensor:
        if images is None:
            return self._encoder.project(trunk, domains)
        return self._encoder.forward_images(images, domains)


def defaults_for(encoder: Encoder, pairs: int = 0) -> AdapterDefaults:
    """Returns what suits the adapters of an encoder, for a chunk of so many pairs (0: a large one)."""
    if maps_features(encoder):
        batch = min(HEAD.batch_size, max(HEAD_SMALLEST_BATCH, pairs // 16)) if pairs else HEAD.batch_size
        steps = max(1, -(-pairs // batch))
        return replace(HEAD, batch_size=batch, epochs=max(HEAD.epochs, min(40, HEAD_STEPS // steps)))
    usual = SMALL_TOWER if is_small(encoder.dim) else TOWER
    epochs = max(TOWER_FEWEST_EPOCHS, TOWER_PAIRS // pairs) if pairs else usual.epochs
    return replace(usual, epochs=min(usual.epochs, epochs))
