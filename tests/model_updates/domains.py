"""Two domains of drawn pictures: eight that are known, and eight that a chunk brings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from model_updates.batches import gather
from model_updates.encoder import Encoder
from model_updates.features import NoCache
from model_updates.pairs import TrainingPair
from model_updates.strategy import Strategy
from model_updates.trainer import TrainingReport, run_update
from tests.model_updates.tiny import DOMAIN, context_for, draw, toy_pairs

NEW = "sketch"
KNOWN_IDS = [pair.image_id for pair in toy_pairs("en")][:8]
NEW_IDS = [pair.image_id for pair in toy_pairs("en")][8:]


def known_pairs(language: str = "en") -> list[TrainingPair]:
    """Eight pairs of the known domain."""
    return toy_pairs(language)[:8]


def new_pairs(language: str = "en", domain: str = NEW) -> list[TrainingPair]:
    """Eight pairs of other pictures, in a domain of their own."""
    return [replace(pair, domain=domain) for pair in toy_pairs(language)[8:]]


def evolve(
    encoder: Encoder,
    strategy: Strategy,
    pairs: Sequence[TrainingPair],
    *,
    known: Sequence[TrainingPair] = (),
    languages: Sequence[str] = ("en",),
    domains: Sequence[str] = (DOMAIN,),
    seed: int = 3,
) -> TrainingReport:
    """Runs one update beside known pairs, in place."""
    context = replace(
        context_for(encoder, pairs, languages=frozenset(languages), seed=seed),
        learned_domains=frozenset(domains),
        load_image=draw,
        open_known=lambda: known,
        open_earlier=lambda: known,
    )
    return run_update(
        strategy,
        context,
        lambda frozen: gather(pairs, (), strategy=strategy, context=frozen, load_image=draw, cache=NoCache()),
    )
