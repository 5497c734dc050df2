"""The table that all languages share: the oracle vocabulary, and what old texts read after it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from ingest.errors import UnknownChunk
from model_updates.errors import BadStrategyOption, NothingToLearn
from model_updates.pairs import TrainingPair
from model_updates.parts.shared_table import merge_into_shared, oracle_merges
from model_updates.strategies.teir import Teir
from model_updates.towers import token_table
from model_updates.vocabulary import Vocabulary
from tests.model_updates.tiny import (
    ENGLISH_TEXTS,
    context_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

FRENCH = "un cercle rouge sur papier"


ORACLE = "all"


def oracle(chunk: str) -> list[TrainingPair]:
    """A chunk with captions of all languages to come, one of them a language that is not taught yet."""
    if chunk != ORACLE:
        raise UnknownChunk(chunk)
    french = TrainingPair("red circle", FRENCH, "fr", "drawn")
    return [*toy_pairs("en"), *toy_pairs(), french, french]


@pytest.mark.parametrize("name", ["cll-clip", "cll-clip+joint", "teir+mla"])
def test_an_oracle_grows_the_table_once_and_segments_nothing_anew_later(name: str) -> None:
    encoder = tiny_encoder()
    assert encoder.vocabulary is not None
    before = encoder.vocabulary.size
    teach(encoder, make_strategy(name, oracle=ORACLE), toy_pairs(), reference=oracle)
    grown = encoder.vocabulary.size
    assert grown > before
    rows = encoder.vocabulary.encode([FRENCH, *ENGLISH_TEXTS])
    french = [TrainingPair(pair.image_id, FRENCH, "fr", pair.domain, pair.english) for pair in toy_pairs()]
    report = teach(encoder, make_strategy(name, oracle=ORACLE), french, reference=oracle)
    assert encoder.vocabulary.size == grown
    assert encoder.vocabulary.encode([FRENCH, *ENGLISH_TEXTS]) == rows
    assert "segmented otherwise than before, by language: en 0.0 %." in report.notes[0]


def test_an_update_says_which_known_captions_it_segments_anew() -> None:
    encoder = tiny_encoder()
    assert encoder.vocabulary is not None
    merges = [("w", "o"), ("wo", "r")]
    vocabulary = Vocabulary.from_merges([], context_length=16)
    known = [TrainingPair("a", "word", "de", "drawn"), TrainingPair("b", "cat", "de", "drawn")]
    context = replace(context_for(encoder, toy_pairs()), open_known=lambda: known)
    _, said = merge_into_shared(vocabulary, {"fr": tuple(merges)}, context)
    assert said.endswith("by language: de 50.0 %, en 0.0 %.")


def test_the_control_trains_all_that_reads_a_text_and_no_picture_moves() -> None:
    encoder = tiny_encoder()
    before = {name: value.clone() for name, value in encoder.model.named_parameters()}
    image, read = encoder.image_fingerprint(), encoder.encode_texts(ENGLISH_TEXTS)
    teach(encoder, make_strategy("cll-clip", body_rate=1e-3), toy_pairs())
    moved = {
        name
        for name, value in encoder.model.named_parameters()
        if not torch.equal(value[: len(before[name])] if value.ndim else value, before[name])
    }
    texts = {name for name in before if not name.startswith("visual.") and not name.startswith("logit")}
    assert moved == texts
    assert encoder.image_fingerprint() == image
    assert not np.allclose(encoder.encode_texts(ENGLISH_TEXTS), read, atol=1e-3)
    with pytest.raises(BadStrategyOption, match="body_rate is not negative"):
        make_strategy("cll-clip", body_rate=-1.0)


def test_rows_of_languages_to_come_wait_until_they_are_taught() -> None:
    encoder, used = tiny_encoder(), make_strategy("teir", oracle=ORACLE)
    assert isinstance(used, Teir)
    teach(encoder, used, toy_pairs(), reference=oracle)
    assert encoder.vocabulary is not None
    waiting = [
        row for row in encoder.vocabulary.encode(["cercle rouge"])[0][1:-1] if used.rows.lambdas[row] == 0
    ]
    assert waiting
    assert all(int(used.rows.counts[row]) in {0, 1} for row in waiting)
    again = make_strategy("teir", oracle=ORACLE)
    again.carry(used.carried())
    context = context_for(encoder, [TrainingPair("red circle", "cercle rouge", "fr", "drawn")])
    again.before_update(replace(context, open_reference=oracle))
    assert isinstance(again, Teir)
    assert all(again.rows.lambdas[row] > 0 for row in waiting)


def test_an_oracle_has_the_size_that_is_asked_for() -> None:
    captions = tuple(pair.text for pair in oracle(ORACLE))
    assert len(oracle_merges(captions, 560)) == 560 - 512
    assert len(oracle_merges(captions, 520)) == 520 - 512


def test_an_oracle_that_is_not_there_is_said() -> None:
    with pytest.raises(UnknownChunk, match="another"):
        teach(tiny_encoder(), make_strategy("cll-clip", oracle="another"), reference=oracle)
    with pytest.raises(NothingToLearn, match="no reference chunks, and 'all' was asked for"):
        teach(tiny_encoder(), make_strategy("cll-clip", oracle=ORACLE))
    with pytest.raises(BadStrategyOption, match="512 byte symbols"):
        make_strategy("cll-clip", oracle_vocabulary=512)


def test_a_merge_that_comes_later_fires_on_old_text() -> None:
    vocabulary = Vocabulary.from_merges([("c", "a"), ("ca", "t</w>"), ("d", "o")], context_length=16)
    before = vocabulary.encode(["dog"])[0]
    vocabulary.grow_shared([("do", "g</w>")])
    after = vocabulary.encode(["dog"])[0]
    assert (len(before), len(after)) == (4, 3)
    assert after[1] == vocabulary.size - 1, "a row that is new, and that no mask on old rows protects"


def test_captions_whose_rows_did_not_change_keep_their_features() -> None:
    encoder = tiny_encoder()
    assert encoder.vocabulary is not None
    text = ["a red circle on paper"]
    rows, features = encoder.vocabulary.encode(text), encoder.text_features(text)
    strategy = make_strategy("cll-clip")
    strategy.before_update(context_for(encoder, toy_pairs()))
    table = token_table(encoder.model)
    assert table is not None
    assert len(table) == encoder.vocabulary.size
    assert encoder.vocabulary.encode(text) == rows
    encoder.train(False)
    assert torch.equal(torch.from_numpy(encoder.text_features(text)), torch.from_numpy(features))
