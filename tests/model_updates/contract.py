"""What the contract suite asks of every strategy, and the updates that its claims share.

The default is asked twice, since what it teaches depends on what a chunk brings: `evergreen` meets a new language, as
every strategy does, and `evergreen-of-both` a new domain as well.

One strategy's first update is run once and looked at by many tests; so is its second, which starts from what the first
left. Nobody changes them: who goes on takes a copy.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from model_updates.batches import Batches
from model_updates.checked import explained
from model_updates.encoder import Encoder
from model_updates.features import FeatureCache, NoCache, Overlay
from model_updates.options import options_of
from model_updates.pair_sets import Batch
from model_updates.pairs import TrainingPair
from model_updates.parts.extended import Extended
from model_updates.parts.two_towers import TwoTowers
from model_updates.prospect import Prospect
from model_updates.strategies import STRATEGIES
from model_updates.strategy import State, Strategy, UpdateContext
from model_updates.trainer import TrainingReport, run_update
from model_updates.versions import load_state, load_version, write_version
from tests.model_updates.tiny import (
    DOMAIN,
    NEGATIVE,
    SKETCH,
    context_for,
    data_for,
    draw,
    quick,
    styled_pairs,
    tiny_encoder,
    toy_pairs,
)

_EMBEDDED = Overlay(NoCache())

BOTH = "evergreen-of-both"
CASES: Mapping[str, type[Strategy]] = {**STRATEGIES, BOTH: STRATEGIES["evergreen"]}

# Put together of strategies that are asked themselves, as `finetune+er` and `teir+lora` are, which are asked in every
# run: what these add is that no pair of parts is at odds.
PUT_TOGETHER = frozenset(name for name in CASES if name.endswith("+er") or name.startswith("teir+")) - {
    "finetune+er",
    "teir+lora",
}

# Of those who train whole towers, the plain one and one of each kind that weighs, keeps or merges them; the others do
# with a tower's running statistics and routes what one of these does.
WHOLE_OF_EACH_KIND = frozenset({"finetune", "ewc", "incclip", "afec", "ctp", "lwf", "ties", "ema-merge"})

# Solved at once: there are no terms, no step in which it could be cut off, and nothing that a seed would draw.
IN_CLOSED_FORM = frozenset({"acil", "ranpac", "ridge-heads"})

# Terms that hold an encoder where it was: zero, or without a gradient (cross-entropy forms), while it is as it was.
# Others teach, and may be anything but one that falls when the encoder leaves a place where it was at rest.
HOLDS = frozenset({"consolidation", "cross-topology", "same-topology", "distillation", "stay"})
# Terms of a strategy that hold and yet are not at rest, with the reason.
NOT_AT_REST = {
    ("c-clip", "consolidation"): "a contrast with the old features through a fresh projector",
    ("ctp", "momentum"): "a contrast with the slow model's features and those in the queue",
    ("co2l", "distillation"): "the old distribution of neighbours is the sharper one",
    ("dkr", "distillation"): "teaches the rows that neither the old nor the new model has right",
    ("afec", "active-forgetting"): "draws towards a model that learns the new chunk freely",
}
# Beside this term the others are weighted; it needs no weight of its own.
FIRST_HAND = frozenset({"contrastive", "contrast"})
# Options that speak of a weight, and yet weigh no term, with the reason; of one strategy alone where that is named.
WEIGHS_NO_TERM = {
    "weight_decay": "the optimizer's",
    "incclip.norm_bound": "bounds the weights of the towers",
    "ema-merge.weight": "of an update in the mean of all updates",
    "ema-merge+er.weight": "the same",
}
# Weighs a part of a term: it scales the whole of it where the other part is left out.
ALONE: Mapping[tuple[str, str], Mapping[str, float]] = {
    ("ucir", "weight"): {"margin_weight": 0.0},
    ("ucir", "margin_weight"): {"weight": 0.0},
}
# Strategies of several terms without an option to weigh them, with the reason.
LEAVES_WEIGHTS = {"evergreen": "its parts keep their own defaults, and are asked themselves"}
# Both towers train whole, and yet a text tower with a tokenizer of its own will not do: these make texts of embeddings.
MAKES_TEXTS = frozenset({"incclip"})
# What these give a language needs no table that grows: where none can, a module of the language is all that trains.
MODULES_ALONE = frozenset({"lora", "mla", "p-tuning", "evergreen"})


def asked(names: Iterable[str]) -> list[Any]:
    """Strategies to ask, those put together of others with `-m slow`."""
    return [pytest.param(name, marks=[pytest.mark.slow] if name in PUT_TOGETHER else []) for name in names]


def holds(name: str, term: str) -> bool:
    """Whether a strategy's term must be at rest while nothing has moved."""
    return term in HOLDS and not any((part, term) in NOT_AT_REST for part in [name, *name.split("+")])


def trains_whole_towers(name: str) -> bool:
    """Whether a strategy, or the one that it extends, trains every parameter of both towers."""
    kind = CASES[name]
    return issubclass(kind.host_kind if issubclass(kind, Extended) else kind, TwoTowers)


@dataclass(frozen=True)
class Update:
    """An update that has run: the encoder before and after it, the strategy, and what there is to know of it."""

    before: Encoder
    after: Encoder
    strategy: Strategy
    report: TrainingReport
    steps: int


class PowerCutError(RuntimeError):
    """The machine goes off in the middle of an update."""


def made(name: str, *, cut_after: int | None = None, **options: Any) -> Strategy:
    """A strategy with its quick options, which counts its steps and may be cut off after some.

    Args:
        name: of `CASES`.
        cut_after: steps that are finished before the machine goes off; None for never.
        **options: beside the quick ones.
    """
    kind = CASES[name]

    def after_step(self: Any) -> None:
        kind.after_step(self)
        self.steps_done += 1
        if self.steps_done == cut_after:
            raise PowerCutError

    counting = type(kind.__name__, (kind,), {"after_step": after_step, "steps_done": 0})
    strategy: Strategy = counting(options_of(kind, {**quick(kind), **options}))
    return strategy


def context_of(
    encoder: Encoder, pairs: Sequence[TrainingPair], *, earlier: Sequence[TrainingPair] = (), seed: int = 3
) -> UpdateContext:
    """A context with everything in it that the product gives."""
    languages = frozenset({"en", *(pair.language for pair in earlier)})
    taught = {(pair.image_id, pair.language) for pair in pairs}
    # Of two domains, so that there are old pictures of another one than is taught.
    gallery = [*toy_pairs("en"), *styled_pairs(NEGATIVE)]
    known = [pair for pair in gallery if (pair.image_id, pair.language) not in taught]
    return replace(
        context_for(encoder, pairs, languages=languages, seed=seed),
        learned_domains=frozenset(encoder.image_routes),
        update_number=2 if earlier else 1,
        load_image=draw,
        open_earlier=lambda: earlier,
        open_known=lambda: known,
        open_reference=lambda chunk: toy_pairs("en"),
    )


def run(strategy: Strategy, context: UpdateContext, checkpoints: Path | None = None) -> TrainingReport:
    """Runs an update with validation pairs, of every domain that is taught."""
    validation = [*toy_pairs(), *(pair for pair in context.pairs if pair.domain != DOMAIN)]
    return run_update(
        strategy,
        context,
        lambda frozen: data_for(strategy, frozen, validation=validation, cache=cache_for(strategy)),
        checkpoints=checkpoints,
    )


def cache_for(strategy: Strategy) -> FeatureCache:
    """What was embedded for one update need not be for the next; of text alone it is counted what is embedded."""
    return _EMBEDDED if "image" in strategy.touches else NoCache()


@functools.cache
def first_update(name: str, architecture: str = "tiny") -> Update:
    """The first chunk, taught to an encoder that knows English; to towers of another architecture for one epoch."""
    encoder = tiny_encoder(architecture=architecture)
    is_short = architecture != "tiny" and "epochs" in quick(CASES[name])
    before, strategy = encoder.copy(), made(name, **({"epochs": 1} if is_short else {}))
    report = run(strategy, first_context(name, encoder))
    return Update(before, encoder, strategy, report, steps_of(strategy))


@functools.cache
def second_update(name: str) -> Update:
    """The second chunk, taught to what the first update left, with what it carried, both read from a version."""
    first = first_update(name)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "version"
        write_version(folder, first.after, {}, {name: first.strategy.carried()})
        encoder, carried = load_version(folder).encoder, load_state(folder, name)
    strategy = made(name)
    carry(strategy, carried or State())
    report = run(strategy, second_context(name, encoder))
    return Update(first.after, encoder, strategy, report, steps_of(strategy))


def update_of(name: str, update: int) -> Update:
    return first_update(name) if update == 1 else second_update(name)


def brought(name: str, update: int) -> tuple[str, str]:
    """The language and the domain that a chunk is in; of several, those that it brings."""
    language = "de" if update == 1 else "fr"
    if name != BOTH:
        return language, DOMAIN
    return language, NEGATIVE if update == 1 else SKETCH


def first_context(name: str, encoder: Encoder, *, seed: int = 3) -> UpdateContext:
    """A chunk in German; of `BOTH` with negatives, in English, beside it."""
    return context_of(encoder, _chunk(name, 1), seed=seed)


def second_context(name: str, encoder: Encoder, *, new_word: str = "Karton") -> UpdateContext:
    """French that nobody knows, of the same words and a new one; of `BOTH` with sketches, in English, beside it."""
    pairs = [replace(pair, text=pair.text.replace("Papier", new_word)) for pair in _chunk(name, 2)]
    return context_of(encoder, pairs, earlier=_chunk(name, 1))


def _chunk(name: str, update: int) -> list[TrainingPair]:
    language, domain = brought(name, update)
    pairs = toy_pairs(language)
    # Every second one, so that half of each batch is of the domain.
    return pairs if name != BOTH else [*pairs[::2], *styled_pairs(domain)]


def carry(strategy: Strategy, state: State) -> None:
    if state.tensors or state.facts:
        strategy.carry(replace(copy.deepcopy(state), update=1))


def steps_of(strategy: Any) -> int:
    return int(strategy.steps_done)


@dataclass(frozen=True)
class Begun:
    """A strategy that is ready for its first step, and the batch of that step."""

    strategy: Strategy
    context: UpdateContext
    batch: Batch

    def terms(self) -> dict[str, Tensor]:
        return self.strategy.terms(self.batch)

    def loss(self) -> Tensor:
        return torch.stack(list(self.terms().values())).sum()

    @property
    def parameters(self) -> list[nn.Parameter]:
        return [parameter for group in self.strategy.parameter_groups() for parameter in group.parameters]


def begin(name: str, *, update: int = 1, new_word: str = "Karton", **options: Any) -> Begun:
    """Begins the first or the second update of a strategy as the trainer does, up to its first batch.

    Args:
        name: of `CASES`.
        update: 1, or 2 for one that starts from what the first left.
        new_word: of the second chunk; one that is known leaves the vocabulary as it was.
        **options: beside the quick ones.
    """
    strategy = made(name, **options)
    if update == 1:
        context = first_context(name, tiny_encoder())
    else:
        first = first_update(name)
        carry(strategy, first.strategy.carried())
        context = second_context(name, first.after.copy(), new_word=new_word)
    data = data_for(strategy, context, cache=cache_for(strategy))
    torch.manual_seed(context.seed)
    strategy.before_update(context)
    strategy.take(data)
    strategy.parameter_groups()
    context.encoder.train()
    batches = Batches(
        data.train,
        context.encoder,
        size=8,
        load_image=data.load_image if strategy.reads_pictures else None,
        memory=data.memory,
        replay=strategy.replay,
    )
    strategy.before_epoch(0, batches)
    return Begun(strategy, context, next(iter(batches.epoch(0))))


@dataclass(frozen=True)
class Stepped(Begun):
    """A strategy after the backward pass of its first step, and the terms of that."""

    taken: Mapping[str, Tensor]


@functools.cache
def stepped(name: str, update: int) -> Stepped:
    """Begins an update and goes backward once; many tests look at what that leaves, and nobody goes on from it."""
    begun = begin(name, update=update)
    terms = begun.terms()
    torch.stack(list(terms.values())).sum().backward()  # type: ignore[no-untyped-call]
    return Stepped(begun.strategy, begun.context, begun.batch, terms)


def gradient_norm(term: Tensor, parameters: Sequence[nn.Parameter]) -> float:
    """The length of a term's gradient over all parameters; 0 for a term that none of them reaches."""
    if not term.requires_grad:
        return 0.0
    found = torch.autograd.grad(term, list(parameters), retain_graph=True, allow_unused=True)
    return math.sqrt(sum(float(part.square().sum()) for part in found if part is not None))


@contextmanager
def moved(parameters: Sequence[nn.Parameter], share: float = 0.05) -> Iterator[None]:
    """Moves every parameter a little while the block runs, the same way each time."""
    generator = torch.Generator().manual_seed(5)
    before = [parameter.detach().clone() for parameter in parameters]
    with torch.no_grad():
        for parameter in parameters:
            parameter.add_(share * torch.randn(parameter.shape, generator=generator))
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value in zip(parameters, before, strict=True):
                parameter.copy_(value)


def speaks_of_a_weight(name: str) -> list[str]:
    """The options of a strategy that have the word in their name or their meaning, and are a number."""
    kind = STRATEGIES[name]
    values, meanings = dataclasses.asdict(kind.Options()), explained(kind.Options)
    return [
        option
        for option, value in values.items()
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and "weight" in re.split(r"[\W_]+", f"{option} {meanings.get(option, '')}")
    ]


def weights_of(name: str) -> dict[str, float]:
    """The options that weigh a term, with a value above 0 each: their default where it is one."""
    defaults = STRATEGIES[name].Options()
    return {
        option: value if (value := getattr(defaults, option)) > 0 else 1.0
        for option in speaks_of_a_weight(name)
        if not {option, f"{name}.{option}"} & WEIGHS_NO_TERM.keys()
    }


def prospect_of(encoder: Encoder) -> Prospect:
    """German and English captions for an encoder that knows English."""
    return Prospect(
        encoder=encoder,
        languages=frozenset({"en", "de"}),
        domains=frozenset({DOMAIN}),
        learned_languages=frozenset({"en"}),
        learned_domains=frozenset(),
    )
