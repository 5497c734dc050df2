"""The data of an update: frozen towers run once, batches in a seeded order."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from model_updates import batches
from model_updates.batches import Batches, gather, teacher
from model_updates.errors import NothingToLearn
from model_updates.features import NoCache
from model_updates.pair_sets import Batch
from model_updates.pairs import TrainingPair
from model_updates.strategy import Replay
from tests.model_updates.tiny import context_for, data_for, draw, make_strategy, tiny_encoder, toy_pairs


def test_frozen_features_are_those_of_the_encoder_before_the_update() -> None:
    encoder, pairs = tiny_encoder(), toy_pairs()
    data = data_for(make_strategy("c-clip"), context_for(encoder, pairs), validation=pairs[:3])
    images = encoder.image_features([draw(pair.image_id) for pair in pairs])
    assert np.allclose(data.train.image_features.numpy(), images, atol=1e-5)
    assert np.allclose(data.validation.image_features.numpy(), images[:3], atol=1e-5)
    assert data.train.text_features is not None
    texts = encoder.text_features([pair.text for pair in pairs], "de")
    assert np.allclose(data.train.text_features.numpy(), texts, atol=1e-5)
    english = encoder.text_features([pair.english or "" for pair in pairs], "en")
    assert np.allclose(data.train.english_features.numpy(), english, atol=1e-5)


def test_english_captions_are_their_own_english_and_are_read_once() -> None:
    encoder, pairs = tiny_encoder(), toy_pairs("en")
    data = data_for(make_strategy("c-clip"), context_for(encoder, pairs))
    assert data.train.english_features is data.train.text_features
    english = encoder.text_features([pair.english or "" for pair in pairs], "en")
    assert np.allclose(data.train.english_features.numpy(), english, atol=1e-5)
    other = data_for(make_strategy("c-clip"), context_for(encoder, [*pairs, *toy_pairs()]))
    assert other.train.english_features is not other.train.text_features
    assert np.allclose(other.train.english_features[len(pairs) :].numpy(), english, atol=1e-5)


def test_text_features_are_gathered_only_for_a_strategy_that_needs_them() -> None:
    context = context_for(tiny_encoder(), toy_pairs())
    assert data_for(make_strategy("teir"), context).train.text_features is None


def test_each_picture_runs_once_through_the_frozen_tower() -> None:
    pairs = toy_pairs() + toy_pairs("en")
    context = context_for(tiny_encoder(), pairs)
    data_for(make_strategy("teir"), context, validation=pairs[:4])
    assert context.open_previous().image_forwards == 16


def test_a_pair_without_english_has_a_zero_row_and_says_so() -> None:
    pairs = [*toy_pairs()[:3], TrainingPair("red dot", "ein Punkt", "de", "drawn", None)]
    data = data_for(make_strategy("teir"), context_for(tiny_encoder(), pairs))
    assert data.train.has_english.tolist() == [True, True, True, False]
    assert not data.train.english_features[3].any()
    assert data.train.english_features[:3].any(dim=1).all()
    assert data.train.english_share == 0.75


def test_pairs_of_one_picture_share_its_number() -> None:
    pairs = toy_pairs()[:2] + toy_pairs("en")[:2]
    data = data_for(make_strategy("teir"), context_for(tiny_encoder(), pairs))
    assert data.train.image_index.tolist() == [0, 1, 0, 1]


def test_what_is_known_is_watched_where_it_can_be_forgotten_unless_told_not_to() -> None:
    known = toy_pairs("en")
    context = replace(context_for(tiny_encoder(), toy_pairs()), open_known=lambda: known)

    def watched(name: str, *, watch: bool = True) -> int:
        strategy = make_strategy(name)
        data = gather(
            context.pairs,
            (),
            strategy=strategy,
            context=context,
            load_image=draw,
            cache=NoCache(),
            watch_known=watch,
        )
        return 0 if data.known is None else len(data.known.pairs)

    assert (watched("teir"), watched("teir", watch=False), watched("language-tables")) == (16, 0, 0)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_pairs_are_too_few(count: int) -> None:
    strategy, context = make_strategy("teir"), context_for(tiny_encoder(), toy_pairs())
    with pytest.raises(NothingToLearn, match=f"{count} training pairs are too few"):
        gather(toy_pairs()[:count], [], strategy=strategy, context=context, load_image=draw, cache=NoCache())


def test_the_anchor_teaches_until_the_text_body_has_moved() -> None:
    anchor = tiny_encoder()
    previous = anchor.copy()
    with torch.no_grad():
        previous.model.visual.proj.add_(1)  # type: ignore[union-attr,operator]
        previous.model.token_embedding.weight.add_(1)  # type: ignore[union-attr,operator]
    assert teacher(anchor, previous) is anchor
    with torch.no_grad():
        previous.model.get_parameter("text_projection").add_(1)
    assert teacher(anchor, previous) is previous


def test_an_epoch_holds_every_pair_once_in_an_order_of_its_seed() -> None:
    encoder = tiny_encoder()
    data = data_for(make_strategy("teir"), context_for(encoder, toy_pairs()))
    made = Batches(data.train, encoder, size=5, load_image=None)

    def order(seed: int) -> list[int]:
        return torch.cat([batch.image_index for batch in made.epoch(seed)]).tolist()

    assert len(made) == len(list(made.epoch(0))) == 3
    assert len(order(0)) == 15, "a rest of one pair has nothing to be contrasted with"
    assert order(0) == order(0) != order(1)
    assert len(set(order(0))) == 15


def test_rows_of_a_batch_belong_together() -> None:
    encoder = tiny_encoder()
    data = data_for(make_strategy("c-clip"), context_for(encoder, toy_pairs()))
    batch = next(iter(Batches(data.train, encoder, size=4, load_image=draw).epoch(2)))
    chosen = batch.image_index
    assert torch.equal(batch.image_features, data.train.image_features[chosen])
    assert batch.images is not None
    pictures = encoder.prepare_images([draw(data.train.pairs[n].image_id) for n in chosen.tolist()])
    assert torch.equal(batch.images, pictures)
    texts = [data.train.pairs[n].text for n in chosen.tolist()]
    assert torch.equal(batch.tokens, encoder.tokenize(texts, "de"))
    assert batch.replayed is not None
    assert not batch.replayed.any()


def test_pictures_beyond_the_memory_limit_are_decoded_in_every_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, seen = tiny_encoder(), []
    data = data_for(make_strategy("finetune"), context_for(encoder, toy_pairs()))

    def load(image_id: str) -> object:
        seen.append(image_id)
        return draw(image_id)

    kept = Batches(data.train, encoder, size=8, load_image=load)  # type: ignore[arg-type]
    first = [batch.images for batch in kept.epoch(0)]
    assert len(seen) == 16
    monkeypatch.setattr(batches, "PREPARED_BYTES", 0)
    decoded = Batches(data.train, encoder, size=8, load_image=load)  # type: ignore[arg-type]
    second = [batch.images for batch in decoded.epoch(0)]
    assert len(seen) == 32
    assert all(
        a is not None and b is not None and torch.equal(a, b) for a, b in zip(first, second, strict=True)
    )


def test_each_text_is_read_with_its_own_languages_table() -> None:
    encoder = tiny_encoder()
    assert encoder.vocabulary is not None
    encoder.vocabulary.grow_table("de", [], ["ein roter Kreis"])
    pairs = [TrainingPair("red dot", "rot", language, "drawn") for language in ("de", "en")]
    german, english = batches.tokenise(encoder, pairs)
    assert german == encoder.vocabulary.encode(["rot"], "de")[0]
    assert english == encoder.vocabulary.encode(["rot"], "en")[0]
    assert german != english


def batches_with_memory(replay: Replay) -> list[Batch]:
    encoder, pairs = tiny_encoder(), toy_pairs()
    strategy, context = make_strategy("teir"), context_for(encoder, pairs[:10])
    strategy.memory = lambda context: pairs[10:]  # type: ignore[method-assign]
    data = data_for(strategy, context)
    made = Batches(data.train, encoder, size=4, load_image=None, memory=data.memory, replay=replay)
    batches = list(made.epoch(1))
    assert len(batches) == len(made)
    return batches


def test_replayed_pairs_follow_those_of_the_chunk_as_many_as_they_are() -> None:
    batches = batches_with_memory(Replay.BESIDE)
    assert [batch.replayed.tolist() for batch in batches] == [
        [False] * 4 + [True] * 4,
        [False] * 4 + [True] * 4,
        [False] * 2 + [True] * 2,
    ]
    assert sorted(int(row) for batch in batches for row in batch.row[~batch.replayed]) == list(range(10))
    assert all(int(row) >= 10 for batch in batches for row in batch.row[batch.replayed])
    assert all(len(set(batch.row.tolist())) == len(batch.row) for batch in batches)


def test_joined_pairs_are_part_of_the_epoch() -> None:
    batches = batches_with_memory(Replay.JOINED)
    assert sorted(int(row) for batch in batches for row in batch.row) == list(range(16))
    assert sum(int(batch.replayed.sum()) for batch in batches) == 6


def test_a_memory_that_is_not_replayed_reaches_no_batch() -> None:
    batches = batches_with_memory(Replay.NONE)
    assert sorted(int(row) for batch in batches for row in batch.row) == list(range(10))


def test_some_rows_of_a_batch_keep_what_belongs_to_them() -> None:
    batch = batches_with_memory(Replay.NONE)[0]
    some = batch.select([2, 0])
    assert some.row.tolist() == [int(batch.row[2]), int(batch.row[0])]
    assert torch.equal(some.image_features, batch.image_features[[2, 0]])
    assert some.languages == (batch.languages[2], batch.languages[0])
