"""cll-clip+joint: everything again, from the base's table."""

from dataclasses import replace

import pytest
import torch

from model_updates.batches import Batches
from model_updates.encoder import Encoder
from model_updates.errors import BadStrategyOption
from model_updates.pairs import TrainingPair
from model_updates.strategy import Strategy
from model_updates.trainer import TrainingReport, run_update
from model_updates.vocabulary import SHARED
from tests.model_updates.tiny import (
    assert_same_state,
    context_for,
    data_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)


def french() -> list[TrainingPair]:
    return [TrainingPair(p.image_id, f"voici {p.text}", "fr", p.domain, p.english) for p in toy_pairs()]


def taught_again(encoder: Encoder, strategy: Strategy, base: Encoder) -> TrainingReport:
    """Teaches French, with the German pairs of before in the catalog."""
    context = replace(context_for(encoder, french(), anchor=base), open_earlier=toy_pairs)
    return run_update(strategy, context, lambda frozen: data_for(strategy, frozen))


def test_it_starts_from_the_base_whatever_was_learned_in_between() -> None:
    base, straight = tiny_encoder(), tiny_encoder()
    taught_again(straight, make_strategy("cll-clip+joint"), base)
    for earlier in ("cll-clip", "language-tables"):
        encoder = tiny_encoder()
        teach(encoder, make_strategy(earlier))
        report = taught_again(encoder, make_strategy("cll-clip+joint"), base)
        assert_same_state(encoder.state(), straight.state())
        assert encoder.vocabulary is not None
        assert straight.vocabulary is not None
        assert encoder.vocabulary.to_json() == straight.vocabulary.to_json()
        assert set(encoder.vocabulary.tables) == {SHARED}
        assert report.notes[-1] == "32 earlier and English pairs were learned beside the chunk."


def test_old_pairs_are_part_of_the_epoch_and_old_words_of_the_vocabulary() -> None:
    encoder, strategy = tiny_encoder(), make_strategy("cll-clip+joint")
    context = replace(context_for(encoder, french()), open_earlier=lambda: [*toy_pairs(), *french()[:3]])
    data = data_for(strategy, context)
    strategy.before_update(context)
    assert len(data.memory) == 32, "what the chunk has again is not there twice"
    batches = Batches(
        data.train, encoder, size=8, load_image=None, memory=data.memory, replay=strategy.replay
    )
    tags = [tag for batch in batches.epoch(0) for tag in batch.languages]
    assert [tags.count(tag) for tag in ("fr", "de", "en")] == [16, 16, 16]
    assert encoder.vocabulary is not None
    assert len(encoder.vocabulary.encode(["schwarzer"])[0]) < len("schwarzer")


def test_the_base_itself_stays_as_it_is() -> None:
    base, encoder = tiny_encoder(), tiny_encoder()
    before = {key: value.clone() for key, value in base.state().items()}
    rows = base.vocabulary.size if base.vocabulary is not None else 0
    taught_again(encoder, make_strategy("cll-clip+joint"), base)
    assert_same_state(base.state(), before)
    assert base.vocabulary is not None
    assert base.vocabulary.size == rows
    assert encoder.vocabulary is not None
    assert encoder.vocabulary.size > rows
    table = encoder.model.get_parameter("token_embedding.weight")
    assert len(table) == encoder.vocabulary.size
    assert not torch.equal(table.detach()[:rows], before["token_embedding.weight"])


def test_the_size_of_each_languages_vocabulary_is_refused_where_it_would_change_nothing() -> None:
    with pytest.raises(BadStrategyOption, match="Say oracle_vocabulary=600"):
        make_strategy("cll-clip+joint", vocabulary=600)
