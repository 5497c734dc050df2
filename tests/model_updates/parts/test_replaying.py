"""Experience replay: what is kept, how it comes back, and on what it can be laid."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from model_updates.batches import Batches
from model_updates.errors import BadStrategyOption
from model_updates.pairs import TrainingPair
from model_updates.parts.replaying import with_er
from model_updates.strategies import STRATEGIES
from model_updates.strategies.ewc import Ewc
from model_updates.strategy import Replay, State, Strategy
from model_updates.trainer import run_update
from tests.model_updates.tiny import (
    DOMAIN,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)


def kept_by(strategy: Strategy) -> list[TrainingPair]:
    return list(strategy.memory(context_for(tiny_encoder(), toy_pairs())))


def pairs_named(first: int, count: int) -> list[TrainingPair]:
    return [TrainingPair(str(n), str(n), "en", DOMAIN) for n in range(first, first + count)]


def offered(chunks: list[list[TrainingPair]], seed: int, **options: Any) -> Any:
    """Lets a memory see chunks, without any training."""
    strategy: Any = make_strategy("finetune+er", **options)
    for chunk in chunks:
        context = dataclasses.replace(context_for(tiny_encoder(), chunk), seed=seed)
        strategy.beside.after_update(context, [])
    return strategy


@pytest.mark.parametrize("options", [{"memory_size": 6}, {"memory_size": 0, "memory_share": 0.2}])
def test_every_pair_of_every_chunk_is_kept_equally_often(options: dict[str, Any]) -> None:
    chunks, runs = [pairs_named(0, 10), pairs_named(10, 20)], 1_500
    strategy, kept = offered([], 0, **options), [0] * 30
    contexts = [context_for(tiny_encoder(), chunk) for chunk in chunks]
    for seed in range(runs):
        memory = strategy.beside
        memory.kept, memory.seen = (), 0
        for context in contexts:
            memory.kept = tuple(memory.choose(dataclasses.replace(context, seed=seed)))
            memory.seen += len(context.pairs)
        assert len(memory.kept) == 6
        for pair in memory.kept:
            kept[int(pair.image_id)] += 1
    # Over four standard deviations around 0.2; thirty such intervals fail together less than once in 500 changes of the
    # draws, and the draws are fixed.
    assert all(0.158 <= count / runs <= 0.242 for count in kept)


def test_a_share_of_what_was_seen_grows_with_it() -> None:
    sizes = [
        len(offered([pairs_named(40 * n, 40) for n in range(chunks)], 1, memory_size=0).beside.kept)
        for chunks in range(4)
    ]
    assert sizes == [0, 4, 8, 12]


def test_a_smaller_memory_than_the_last_keeps_a_part_of_it() -> None:
    large = offered([pairs_named(0, 40)], 1, memory_size=20)
    small: Any = make_strategy("finetune+er", memory_size=5)
    small.carry(large.carried())
    kept = small.beside.choose(context_for(tiny_encoder(), pairs_named(40, 2)))
    assert len(kept) == 5
    assert set(kept) <= {*large.beside.kept, *pairs_named(40, 2)}


@pytest.mark.parametrize(("way", "sizes"), [("joined", [8, 8, 6]), ("beside", [14, 14])])
def test_the_memory_joins_the_epoch_or_stands_beside_every_batch(way: str, sizes: list[int]) -> None:
    encoder, first = tiny_encoder(), make_strategy("finetune+er")
    teach(encoder, first, toy_pairs("en"))
    second = make_strategy("finetune+er", replay=way)
    second.carry(first.carried())
    data = data_for(second, context_for(encoder, toy_pairs()))
    batches = Batches(data.train, encoder, size=8, load_image=None, memory=data.memory, replay=second.replay)
    seen = list(batches.epoch(0))
    assert [len(batch.row) for batch in seen] == sizes
    languages = {
        language
        for batch in seen
        for language, old in zip(batch.languages, batch.replayed.tolist(), strict=True)
        if old
    }
    assert languages == {"en"}


def test_replayed_pairs_are_trained_on() -> None:
    """An update on German pairs lowers the loss of the English ones it replays, beside one that does not."""
    taught, first = tiny_encoder(), make_strategy("finetune+er", epochs=10, memory_size=16)
    teach(taught, first, toy_pairs("en"))
    losses = {}
    for name in ("finetune", "finetune+er"):
        encoder = taught.copy()
        second = make_strategy(name, epochs=10, **({} if name == "finetune" else {"memory_size": 16}))
        if first.carried().facts and name == "finetune+er":
            second.carry(first.carried())
        teach(encoder, second, toy_pairs())
        judge = make_strategy("finetune")
        context = context_for(encoder, toy_pairs("en"))
        data = data_for(judge, context)
        judge.before_update(context)
        batch = next(iter(Batches(data.train, encoder, size=16, load_image=data.load_image).epoch(0)))
        with torch.no_grad():
            losses[name] = float(judge.terms(batch)["contrastive"])
    assert losses["finetune+er"] < losses["finetune"]


@pytest.mark.parametrize("name", ["finetune+er", "er", "der", "mof", "tic"])
def test_what_was_withdrawn_is_not_replayed_and_the_rest_is(name: str) -> None:
    first = make_strategy(name, epochs=1, **({} if name == "tic" else {"memory_size": 8}))
    encoder = tiny_encoder()
    teach(encoder, first, toy_pairs("en"))
    second = make_strategy(name, epochs=1, **({} if name == "tic" else {"memory_size": 8}))
    second.carry(first.carried())
    withdrawn = set(kept_by(second)[::2])

    def still_counted(pairs: Sequence[TrainingPair]) -> list[int]:
        return [n for n, pair in enumerate(pairs) if pair not in withdrawn]

    context = dataclasses.replace(context_for(encoder, toy_pairs()), still_counted=still_counted)
    kept = [pair for pair in kept_by(second) if pair not in withdrawn]
    assert list(second.memory(context)) == kept != []
    run_update(second, context, lambda context: data_for(second, context))
    third = kept_by(second)
    assert set(third) & set(toy_pairs())
    assert not withdrawn & set(third)


def test_what_a_strategy_carries_itself_comes_along() -> None:
    kind = with_er(Ewc)
    first = kind(kind.Options(epochs=1, batch_size=8, memory_size=4))
    teach(tiny_encoder(), first)
    second, alone = kind(kind.Options(epochs=1, batch_size=8)), Ewc()
    second.carry(first.carried())
    assert set(second.carried().facts) == {"memory", "updates"}
    alone.carry(State(first.carried().tensors, {"updates": 1}))
    assert second.carried().tensors.keys() == alone.carried().tensors.keys()
    assert len(kept_by(second)) == 4


def test_a_first_update_carries_nothing_before_its_end() -> None:
    assert make_strategy("finetune+er").carried() == State()
    assert kept_by(make_strategy("finetune+er")) == []


@pytest.mark.parametrize("name", ["finetune+er", "er"])
def test_pairs_that_a_newer_release_kept_with_more_are_read(name: str) -> None:
    pair = TrainingPair("a", "ein Hund", "de", "photo", "a dog")
    newer = {"pairs": [dataclasses.asdict(pair) | {"weight": 2.0}], "seen": 1}
    strategy: Any = make_strategy(name)
    strategy.carry(State(facts={"memory": newer, **newer}))
    assert [*(strategy.kept.pairs if name == "er" else kept_by(strategy))] == [pair]


def test_it_is_named_and_described_after_what_it_is_laid_on() -> None:
    made = STRATEGIES["finetune+er"]
    assert (made.name, made.replay, made.keeps) == ("finetune+er", Replay.JOINED, "a sample of the pairs")
    fields = [field.name for field in dataclasses.fields(made.Options)]
    assert fields[-3:] == ["memory_size", "memory_share", "replay"]
    assert "epochs" in fields


def test_a_strategy_with_a_memory_of_its_own_gets_no_second_one() -> None:
    with pytest.raises(ValueError, match="der replays already"):
        with_er(STRATEGIES["der"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"memory_size": -1}, "memory_size is not negative"),
        ({"memory_share": 0.0}, "above 0"),
        ({"memory_share": 1.5}, "at most 1"),
        ({"replay": "none"}, "'joined' or 'beside'"),
        ({"epochs": 0}, "epochs is at least 1"),
    ],
)
def test_unusable_options_are_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(BadStrategyOption, match=words):
        STRATEGIES["finetune+er"].Options(**given)
