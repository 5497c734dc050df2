"""Language tables: what one language learns cannot touch another."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from model_updates.encoder import Encoder
from model_updates.pairs import TrainingPair
from model_updates.parts.own_rows import close_rows
from model_updates.parts.translations import translations
from model_updates.towers import token_table
from tests.model_updates.tiny import (
    ENGLISH_TEXTS,
    context_for,
    make_strategy,
    teach,
    tiny_encoder,
    toy_pairs,
)

FRENCH = [text.replace("ein", "un").replace("auf", "sur") for text in (pair.text for pair in toy_pairs())]


def taught(*languages: str) -> Encoder:
    encoder = tiny_encoder()
    for language in languages:
        teach(encoder, make_strategy("language-tables"), toy_pairs(language))
    return encoder


@pytest.mark.parametrize("language", ["en", "fr", "ja"])
def test_other_languages_keep_their_fingerprint_and_every_bit_of_their_vectors(language: str) -> None:
    encoder = taught("fr")
    fingerprint, vectors = encoder.text_fingerprint(language), encoder.text_features(ENGLISH_TEXTS, language)
    teach(encoder, make_strategy("language-tables"), toy_pairs("de"))
    assert encoder.text_fingerprint(language) == fingerprint
    assert np.array_equal(encoder.text_features(ENGLISH_TEXTS, language), vectors)


def test_the_languages_own_fingerprint_and_vectors_change() -> None:
    encoder = taught("de")
    fingerprint, vectors = encoder.text_fingerprint("de"), encoder.text_features(FRENCH, "de")
    teach(encoder, make_strategy("language-tables"), toy_pairs("de"), seed=9)
    assert encoder.text_fingerprint("de") != fingerprint
    assert not np.array_equal(encoder.text_features(FRENCH, "de"), vectors)


def test_no_row_of_before_moves() -> None:
    encoder = taught("fr")
    before = token_table(encoder.model)
    assert before is not None
    old = before.detach().clone()
    teach(encoder, make_strategy("language-tables"), toy_pairs("de"))
    after = token_table(encoder.model)
    assert after is not None
    assert torch.equal(after.detach()[: len(old)], old)
    assert len(after) > len(old)


def test_a_second_chunk_of_a_language_adds_rows_only_for_new_tokens() -> None:
    encoder = taught("de")
    rows = encoder.vocabulary.size if encoder.vocabulary else 0
    strategy = make_strategy("language-tables")
    teach(encoder, strategy, toy_pairs("de"))
    assert encoder.vocabulary is not None
    assert encoder.vocabulary.size == rows


def test_the_note_counts_the_rows_that_could_move() -> None:
    strategy = make_strategy("language-tables")
    report = teach(tiny_encoder(), strategy)
    assert "token rows belong to the chunk's languages" in report.notes[0]


def begun(pairs: Sequence[TrainingPair]) -> tuple[Encoder, Tensor]:
    """An encoder whose update in German has not made a step yet, and its token table."""
    context = context_for(tiny_encoder(), pairs)
    make_strategy("language-tables").before_update(context)
    close_rows(context.encoder.model)
    table = token_table(context.encoder.model)
    assert table is not None
    return context.encoder, table.detach()


def test_rows_start_at_the_english_words_that_translate_them() -> None:
    pairs = toy_pairs("de")
    encoder, table = begun(pairs)
    assert encoder.vocabulary is not None
    german = [row[1:-1] for row in encoder.vocabulary.encode([pair.text for pair in pairs], "de")]
    english = [row[1:-1] for row in encoder.vocabulary.encode([pair.english or "" for pair in pairs], "en")]
    found = translations(german, english)
    for row in {row for rows in german for row in rows}:
        mine = found.foreign == row
        mean = (table[found.english[mine]] * torch.from_numpy(found.share[mine])[:, None]).sum(dim=0)
        assert torch.allclose(table[row], mean.to(table), atol=1e-6)


def test_rows_without_an_english_caption_start_where_they_overlap() -> None:
    # A letter that stands alone is a token of the shared table, too.
    encoder, table = begun([replace(p, english=None, text=f"{p.text} x") for p in toy_pairs("de")])
    assert encoder.vocabulary is not None
    shared, own = (encoder.vocabulary.tables[name].rows for name in ("", "de"))
    overlapping = [token for token in own if token in shared and own[token] != shared[token]]
    assert overlapping
    assert all(torch.equal(table[own[token]], table[shared[token]]) for token in overlapping)


def test_each_language_of_a_chunk_starts_from_its_own_captions_in_whatever_order_they_come() -> None:
    german, french = (
        toy_pairs("de"),
        [replace(p, language="fr", text=f"voici {p.text}") for p in toy_pairs("de")],
    )
    both = [pair for beside in zip(german, french, strict=True) for pair in beside]
    encoder, table = begun(both)
    for pairs in (german, french):
        alone, expected = begun(pairs)
        language = pairs[0].language
        assert encoder.vocabulary is not None
        assert alone.vocabulary is not None
        for text in (pair.text for pair in pairs):
            mine = encoder.vocabulary.encode([text], language)[0][1:-1]
            theirs = alone.vocabulary.encode([text], language)[0][1:-1]
            assert torch.allclose(table[mine], expected[theirs], atol=1e-6)


def test_english_beside_another_language_keeps_its_words_where_they_are() -> None:
    encoder, table = begun([*toy_pairs("de"), *toy_pairs("en")])
    assert encoder.vocabulary is not None
    shared, own = (encoder.vocabulary.tables[name].rows for name in ("", "en"))
    overlapping = [token for token in own if token in shared and own[token] != shared[token]]
    assert overlapping
    assert all(torch.equal(table[own[token]], table[shared[token]]) for token in overlapping)
