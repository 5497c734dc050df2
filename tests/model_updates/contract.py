"""What the contract suite asks of every strategy, and the updates that its claims share.

One strategy's first update is run once and looked at by many tests; so is its second, which starts from what the first
left. Nobody changes them: who goes on takes a copy.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.options import options_of
from model_updates.pairs import Batch, TrainingPair
from model_updates.prospect import Prospect
from model_updates.strategies import STRATEGIES
from model_updates.strategy import State, Strategy, UpdateContext
from model_updates.strategy_pages import explained_options
from model_updates.trainer import TrainingReport, run_update
from tests.model_updates.tiny import DOMAIN, context_for, data_for, draw, tiny_encoder, toy_pairs

# What each term is for, by its name. One that teaches may be anything; one that holds an encoder where it was must be
# zero, or have no gradient (cross-entropy forms), while the encoder is as it was.
TEACHES = frozenset({"contrastive", "contrast", "cross-modal", "cross-lingual", "keys", "replay"})
HOLDS = frozenset({"consolidation", "cross-topology", "same-topology", "distillation", "stay"})
# Terms of a strategy that hold and yet are not at rest, with the reason.
NOT_AT_REST = {
    ("c-clip", "consolidation"): "a contrast with the old features through a fresh projector",
    ("ctp", "momentum"): "a contrast with the slow model's features and those in the queue",
    ("co2l", "distillation"): "the old distribution of neighbours is the sharper one",
    ("dkr", "distillation"): "teaches the rows that neither the old nor the new model has right",
    ("afec", "active-forgetting"): "draws towards a model that learns the new chunk freely",
}
# Both towers train whole, and yet a text tower with a tokenizer of its own will not do: these make texts of embeddings.
MAKES_TEXTS = frozenset({"incclip"})


def holds(name: str, term: str) -> bool:
    """Whether a strategy's term must be at rest while nothing has moved.

    Raises:
        AssertionError: nobody has said what the term is for.
    """
    parts = name.split("+")
    if any((part, term) in NOT_AT_REST for part in [name, *parts]) or term in TEACHES:
        return False
    assert term in HOLDS, (
        f"{name} has a term {term!r}: say in tests/model_updates/contract.py whether it teaches or holds"
    )
    return True


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
    """A registered strategy with its quick options, which counts its steps and may be cut off after some.

    Args:
        name: in the registry.
        cut_after: steps that are finished before the machine goes off; None for never.
        **options: beside the quick ones.
    """
    kind = STRATEGIES[name]

    def after_step(self: Any) -> None:
        kind.after_step(self)
        self.steps_done += 1
        if self.steps_done == cut_after:
            raise PowerCutError

    counting = type(kind.__name__, (kind,), {"after_step": after_step, "steps_done": 0})
    strategy: Strategy = counting(options_of(kind, {**kind.quick, **options}))
    return strategy


def context_of(
    encoder: Encoder, pairs: Sequence[TrainingPair], *, earlier: Sequence[TrainingPair] = (), seed: int = 3
) -> UpdateContext:
    """A context with everything in it that the product gives."""
    languages = frozenset({"en", *(pair.language for pair in earlier)})
    anchor = encoder.copy()
    return replace(
        context_for(encoder, pairs, languages=languages, anchor=anchor, seed=seed),
        learned_domains=frozenset(encoder.image_routes),
        update_number=2 if earlier else 1,
        load_image=draw,
        open_earlier=lambda: earlier,
        open_known=lambda: toy_pairs("en"),
        open_reference=lambda chunk: toy_pairs("en"),
    )


def run(strategy: Strategy, context: UpdateContext, checkpoints: Path | None = None) -> TrainingReport:
    """Runs an update with validation pairs."""
    return run_update(
        strategy,
        context,
        lambda frozen: data_for(strategy, frozen, validation=toy_pairs()),
        checkpoints=checkpoints,
    )


@functools.cache
def first_update(name: str, architecture: str = "tiny") -> Update:
    """German, taught to an encoder that knows English."""
    encoder = tiny_encoder(architecture=architecture)
    before, strategy = encoder.copy(), made(name)
    report = run(strategy, context_of(encoder, toy_pairs()))
    return Update(before, encoder, strategy, report, steps_of(strategy))


@functools.cache
def second_update(name: str) -> Update:
    """French (the same words), taught to what the first update left, with what it carried."""
    first = first_update(name)
    encoder, strategy = first.after.copy(), made(name)
    carry(strategy, first.strategy.carried())
    report = run(strategy, second_context(encoder))
    return Update(first.after, encoder, strategy, report, steps_of(strategy))


def second_context(encoder: Encoder, *, new_word: str = "Karton") -> UpdateContext:
    """A chunk in a language that nobody knows, of known words and a new one."""
    pairs = [replace(pair, text=pair.text.replace("Papier", new_word)) for pair in toy_pairs("fr")]
    return context_of(encoder, pairs, earlier=toy_pairs())


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
        name: in the registry.
        update: 1, or 2 for one that starts from what the first left.
        new_word: of the second chunk; one that is known leaves the vocabulary as it was.
        **options: beside the quick ones.
    """
    strategy = made(name, **options)
    if update == 1:
        context = context_of(tiny_encoder(), toy_pairs())
    else:
        first = first_update(name)
        carry(strategy, first.strategy.carried())
        context = second_context(first.after.copy(), new_word=new_word)
    data = data_for(strategy, context)
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
    return Begun(strategy, context, strategy.prepare_batch(next(iter(batches.epoch(0)))))


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


def weights_of(name: str) -> dict[str, float]:
    """The options that are documented as the weight of a term, with their defaults."""
    kind = STRATEGIES[name]
    defaults = kind.Options()
    meanings: Mapping[str, str] = explained_options(kind.Options)
    return {
        option: float(getattr(defaults, option))
        for option, meaning in meanings.items()
        if "weight of the" in meaning and not isinstance(getattr(defaults, option), bool)
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
