"""Evergreen: what a chunk brings decides what is taught, and nothing of another language or domain may move.

Idea: a language that is new gets a token table (`language-tables`), or where the text tower brings a tokenizer of its
own, low-rank deltas in the tower (`lora`); a domain that is new gets an adapter, and one that has an adapter goes on
training it (`domain-adapters`), or where features of pictures are kept, a head in closed form (`ridge-heads`); words
that are new in a known language get rows (`new-words`). Each of these belongs to one route, so every vector of every
other language and domain is bit-identical, which fingerprints prove.

What is taught, in detail. Beside captions in a new language, captions in known ones are taught only where their domain
is new: else they stand beside the new ones as what is known. A domain that the encoder knows without an adapter (the
base encoder's own, or one that another strategy taught) gets none for pairs with new words; where there is no new word
either, it gets one, for then the chunk can only teach how its pictures look. Its pictures alone are embedded again.

Formula: those of the strategies it is made of; each keeps its own rate and weight decay.
Source: our own.

Kept between updates: tables, rows, deltas and adapters, part of the encoder.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Annotated, Any, TypeVar

import torch
from torch import Tensor

from model_updates.checked import Checked, CountOrZero, NotNegative, Within
from model_updates.encoder import Encoder
from model_updates.pair_sets import Batch, UpdateData
from model_updates.pairs import TrainingPair
from model_updates.parts.adapters import maps_features
from model_updates.parts.table_rows import TeachingOptions
from model_updates.prospect import Prospect
from model_updates.strategies.domain_adapters import DomainAdapters, DomainAdaptersOptions
from model_updates.strategies.language_lora import LanguageLora, LanguageLoraOptions
from model_updates.strategies.language_tables import LanguageTables
from model_updates.strategies.new_words import NewWords, NewWordsOptions, has_new_words
from model_updates.strategies.ridge_heads import RidgeHeads
from model_updates.strategy import (
    BOTH_TOWERS,
    Epochs,
    Family,
    Foresight,
    ParameterGroup,
    Schedule,
    Strategy,
    UpdateContext,
)

AnyOptions = TypeVar("AnyOptions")


@dataclass(frozen=True)
class EvergreenOptions(Checked):
    """Options of `evergreen`; all else is as in the strategies it is made of."""

    epochs: CountOrZero = 0  # 0 means each part's default, the longest of them where there are several.
    batch_size: Annotated[int, Within("[2, inf)", default=0)] = 0  # 0 means the first part's default.
    learning_rate: NotNegative = 0.0  # 0 means each part's default.
    rank: int = 16  # of a domain's adapter.
    vocabulary: int = 10_000  # BPE entries learned on a new language's captions.
    # at most so many earlier pairs of a domain that is taught again are trained on again.
    earlier_pairs: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.adapters()
        self.tables()

    def adapters(self) -> DomainAdaptersOptions:
        """Returns the options of the adapters."""
        return self._given_to(DomainAdaptersOptions, rank=self.rank, earlier_pairs=self.earlier_pairs)

    def tables(self) -> TeachingOptions:
        """Returns the options of the language tables."""
        return self._given_to(TeachingOptions, vocabulary=self.vocabulary)

    def deltas(self) -> LanguageLoraOptions:
        """Returns the options of a language's deltas in a foreign text tower."""
        return self._given_to(LanguageLoraOptions)

    def words(self) -> NewWordsOptions:
        """Returns the options of new words."""
        return self._given_to(NewWordsOptions)

    def _given_to(self, kind: Callable[..., AnyOptions], **own: Any) -> AnyOptions:
        size = {"batch_size": self.batch_size} if self.batch_size else {}
        return kind(epochs=self.epochs, learning_rate=self.learning_rate, **size, **own)


@dataclass
class _Part:
    """One of the strategies, and the pairs of the chunk that it teaches."""

    strategy: Strategy
    rows: list[int]
    factor: float = 1.0

    @cached_property
    def place(self) -> dict[int, int]:
        """The part's own number of each of its rows; asked in every step, so made once."""
        return {row: position for position, row in enumerate(self.rows)}


class Evergreen(Strategy):
    """Composes language tables, domain adapters and new words by what a chunk brings."""

    name = "evergreen"
    summary = (
        "Gives what is new modules of its own: a language a word table, a domain an image adapter, new words a row "
        "each. Nothing of another language or domain can change. The default."
    )
    can_forget = False
    paper = "our own"
    family = Family.OURS
    trains = "rows of new languages and words, adapters of new domains"
    keeps = "nothing: both are part of the encoder; of a domain taught again, earlier pairs are learned again"
    overhead = "none"
    embeds_again = "those of new domains"
    language_at_query = True
    needs = frozenset({"text_features"})
    options: EvergreenOptions

    def __init__(self, options: EvergreenOptions | None = None) -> None:
        super().__init__(options)
        self._parts: list[_Part] = []
        self._schedules: list[Schedule] = []
        self._of: Sequence[TrainingPair] | None = None

    @property
    def reads_pictures(self) -> bool:
        """Whether an adapter runs in the image tower."""
        return any(part.strategy.reads_pictures for part in self._parts)

    def taught(
        self,
        pairs: Sequence[TrainingPair],
        learned_languages: Collection[str],
        learned_domains: Collection[str],
    ) -> Sequence[TrainingPair]:
        """Returns all pairs, or those in new languages and new domains where there is a new language."""
        if all(pair.language in learned_languages for pair in pairs):
            return pairs
        return [p for p in pairs if p.language not in learned_languages or p.domain not in learned_domains]

    def fits(self, prospect: Prospect) -> str | None:
        """Refuses new languages where neither a token table nor deltas can be made for them."""
        if prospect.languages <= prospect.learned_languages:
            return None
        return self._teacher(prospect.encoder).fits(prospect)

    def memory(self, context: UpdateContext) -> Sequence[TrainingPair]:
        """Returns what an adapter of the chunk's domains wants to stand beside it."""
        self._decide(context)
        return tuple(pair for part in self._parts for pair in part.strategy.memory(_narrowed(context, part)))

    def before_update(self, context: UpdateContext) -> None:
        """Decides what is taught, and prepares each part."""
        for _, parameter in context.encoder.parameters():
            parameter.requires_grad_(False)
        if self._of is not context.pairs:  # what all earlier captions say is read once
            self._decide(context)
        for part in self._parts:
            trained = [p for _, p in context.encoder.parameters() if p.requires_grad]
            part.strategy.before_update(_narrowed(context, part))
            for parameter in trained:  # a part freezes all that is not its own
                parameter.requires_grad_(True)
        # A schedule may follow the pairs that a part was given, so it comes after.
        self._schedules = [part.strategy.schedule(context.encoder) for part in self._parts]
        for part, schedule in zip(self._parts, self._schedules, strict=True):
            part.factor = schedule.learning_rate / self._schedules[0].learning_rate

    def take(self, data: UpdateData) -> None:
        for part in self._parts:
            part.strategy.take(replace(data, train=data.train.select(part.rows)))

    def parameter_groups(self) -> list[ParameterGroup]:
        """Returns the parts' groups, each with its own rate and decay."""
        return [
            ParameterGroup(
                group.parameters,
                rate_factor=group.rate_factor * part.factor,
                weight_decay=schedule.weight_decay if group.weight_decay is None else group.weight_decay,
            )
            for part, schedule in zip(self._parts, self._schedules, strict=True)
            for group in part.strategy.parameter_groups()
        ]

    def foreseen(self, context: UpdateContext) -> Foresight:
        """Returns what those parts would do that the chunk needs."""
        parts = [part.strategy.foreseen(_narrowed(context, part)) for part in self._compose(context)]
        return Foresight(
            epochs=max((part.epochs for part in parts), default=0),
            reads_pictures=any(part.reads_pictures for part in parts),
            moves_pictures=any(part.moves_pictures for part in parts),
            domains=frozenset[str]().union(*(part.domains or () for part in parts)),
        )

    def schedule(self, encoder: Encoder) -> Schedule:
        """Returns the first part's schedule, with the epochs and the tolerance of the part that asks for most."""
        return replace(
            self._schedules[0],
            epochs=max(schedule.epochs for schedule in self._schedules),
            tolerance=reduce(or_, (schedule.tolerance for schedule in self._schedules)),
        )

    def terms(self, batch: Batch) -> dict[str, Tensor]:
        """Returns the terms of each part on its own rows of the batch; a part without two of them waits."""
        terms: dict[str, Tensor] = {}
        for part in self._parts:
            chosen = [n for n, row in enumerate(batch.row.tolist()) if row in part.place]
            if len(chosen) > 1:
                own = batch.select(chosen)
                renumbered = [part.place[row] for row in own.row.tolist()]
                own = replace(own, row=torch.tensor(renumbered, device=batch.row.device))
                terms |= part.strategy.terms(own)
        if not terms:  # a last small batch with one row of each part
            nothing = [p.sum() * 0 for group in self.parameter_groups() for p in group.parameters]
            return {"nothing": torch.stack(nothing).sum()}
        return terms

    def after_backward(self, learning_rate: float) -> None:
        for part in self._parts:
            part.strategy.after_backward(learning_rate * part.factor)

    def after_step(self) -> None:
        for part in self._parts:
            part.strategy.after_step()

    def after_update(self, context: UpdateContext, batches: Epochs) -> None:
        for part in self._parts:
            part.strategy.after_update(_narrowed(context, part), batches)

    def notes(self) -> list[str]:
        return [f"{part.strategy.name}: {note}" for part in self._parts for note in part.strategy.notes()]

    def progress(self) -> dict[str, Tensor]:
        return {
            f"{part.strategy.name}.{name}": value
            for part in self._parts
            for name, value in part.strategy.progress().items()
        }

    def load_progress(self, progress: Mapping[str, Tensor]) -> None:
        for part in self._parts:
            prefix = f"{part.strategy.name}."
            own = {k.removeprefix(prefix): v for k, v in progress.items() if k.startswith(prefix)}
            if own:
                part.strategy.load_progress(own)

    def _teacher(self, encoder: Encoder) -> Strategy:
        """Returns what teaches a new language: a table of its own, or where no table can grow, deltas."""
        if encoder.vocabulary is None:
            return LanguageLora(self.options.deltas())
        return LanguageTables(self.options.tables())

    def _decide(self, context: UpdateContext) -> None:
        self._parts, self._of = self._compose(context), context.pairs
        self.touches = frozenset[str]().union(*(part.strategy.touches for part in self._parts)) or BOTH_TOWERS

    def _compose(self, context: UpdateContext) -> list[_Part]:
        """Returns what teaches which pairs of the chunk."""
        tables, adapted, others = [], [], []
        routes = context.encoder.image_routes
        for row, pair in enumerate(context.pairs):
            if pair.language not in context.learned_languages:
                tables.append(row)
            elif pair.domain in routes or pair.domain not in context.learned_domains:
                adapted.append(row)
            else:
                others.append(row)
        known = replace(context, pairs=[context.pairs[row] for row in others])
        if others and not has_new_words(context.encoder, known):
            adapted, others = sorted(adapted + others), []
        pictures = _Part(self._painter(context.encoder), adapted)
        texts = [
            _Part(self._teacher(context.encoder), tables),
            _Part(NewWords(self.options.words()), others),
        ]
        # The first part's schedule is followed, and nothing of a head in closed form is trained.
        parts = [*texts, pictures] if isinstance(pictures.strategy, RidgeHeads) else [pictures, *texts]
        return [part for part in parts if part.rows]

    def _painter(self, encoder: Encoder) -> Strategy:
        """Returns what teaches how pictures look: heads in closed form where features are kept, else adapters."""
        return RidgeHeads() if maps_features(encoder) else DomainAdapters(self.options.adapters())


def _narrowed(context: UpdateContext, part: _Part) -> UpdateContext:
    return replace(context, pairs=[context.pairs[row] for row in part.rows])
