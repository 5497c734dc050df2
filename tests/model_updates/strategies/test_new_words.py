"""New words: a text without one of them keeps its rows, and its vector to the bit."""

from dataclasses import replace

import numpy as np
import pytest

from model_updates.encoder import Encoder
from model_updates.errors import NothingToLearn
from model_updates.pairs import TrainingPair
from model_updates.strategies.new_words import new_words
from model_updates.vocabulary import Vocabulary
from tests.model_updates.domains import evolve, known_pairs
from tests.model_updates.tiny import (
    DOMAIN,
    ENGLISH_TEXTS,
    context_for,
    image_ids,
    make_strategy,
    tiny_encoder,
)

OTHERS = [*ENGLISH_TEXTS, "zebrafinchs on paper", "a zebra", "zebra finch", "Ein roter Kreis", "日本", ""]


def chunk() -> list[TrainingPair]:
    texts = [f"a Zebrafinch {n % 2} on paper" if n < 4 else ENGLISH_TEXTS[n] for n in range(8)]
    return [
        TrainingPair(image_id, text, "en", DOMAIN, text)
        for image_id, text in zip(image_ids(), texts, strict=False)
    ]


def taught() -> Encoder:
    encoder = tiny_encoder()
    evolve(encoder, make_strategy("new-words"), chunk(), known=known_pairs())
    return encoder


def vocabulary_of(encoder: Encoder) -> Vocabulary:
    assert encoder.vocabulary is not None
    return encoder.vocabulary


def test_texts_without_a_new_word_are_bit_identical() -> None:
    before, after = tiny_encoder(), taught()
    assert vocabulary_of(after).encode(OTHERS) == vocabulary_of(before).encode(OTHERS)
    assert np.array_equal(after.text_features(OTHERS, "en"), before.text_features(OTHERS, "en"))


def test_a_text_with_one_changes_and_has_one_row_for_it() -> None:
    before, after = tiny_encoder(), taught()
    text = ["a ZEBRAFINCH, on paper"]
    assert vocabulary_of(after).size == vocabulary_of(before).size + 1
    assert len(vocabulary_of(after).encode(text)[0]) < len(vocabulary_of(before).encode(text)[0])
    assert not np.array_equal(after.text_features(text, "en"), before.text_features(text, "en"))
    assert after.text_fingerprint("en") != before.text_fingerprint("en")


def test_a_language_with_a_table_of_its_own_is_untouched() -> None:
    encoder = tiny_encoder()
    german = [TrainingPair(p.image_id, "ein Ding auf Papier", "de", DOMAIN, p.text) for p in chunk()]
    evolve(encoder, make_strategy("language-tables"), german)
    fingerprint, features = encoder.text_fingerprint("de"), encoder.text_features(["Zebrafinch"], "de")
    evolve(encoder, make_strategy("new-words"), chunk(), known=known_pairs(), languages=("en", "de"))
    assert encoder.text_fingerprint("de") == fingerprint
    assert np.array_equal(encoder.text_features(["Zebrafinch"], "de"), features)


def test_a_word_of_an_earlier_caption_is_not_new() -> None:
    earlier = [TrainingPair("black dot", "the zebrafinch", "en", DOMAIN)]
    with pytest.raises(NothingToLearn, match="every word of this chunk is known already"):
        evolve(tiny_encoder(), make_strategy("new-words"), chunk(), known=[*known_pairs(), *earlier])


def test_the_words_survive_a_restart() -> None:
    vocabulary = vocabulary_of(taught())
    again = Vocabulary.from_json(vocabulary.to_json())
    texts = ["a zebrafinch 1", *OTHERS]
    assert again.encode(texts) == vocabulary.encode(texts)
    assert again.segmentation("")[0] == vocabulary.segmentation("")[0]


def test_the_end_of_a_contraction_is_no_word() -> None:
    text = "the zebrafinch's nest"
    pairs = [TrainingPair(image_id, text, "en", DOMAIN, text) for image_id in image_ids()[:4]]
    context = replace(context_for(tiny_encoder(), pairs), open_known=known_pairs)
    assert "zebrafinch</w>" in new_words(vocabulary_of(context.encoder), context)["en"]
    assert "'s</w>" not in new_words(vocabulary_of(context.encoder), context)["en"]


def test_growing_by_no_word_or_a_known_one_changes_nothing() -> None:
    vocabulary = vocabulary_of(taught())
    before = vocabulary.to_json()
    assert len(vocabulary.grow_words("en", []).new_rows) == 0
    assert len(vocabulary.grow_words("en", ["zebrafinch</w>"]).new_rows) == 0
    assert vocabulary.to_json() == before
