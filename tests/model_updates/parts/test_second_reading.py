"""A taught language beside a second text tower: how far its table counts, and what the frozen tower is drawn to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from model_updates.encoder import Encoder
from model_updates.inserts import language
from model_updates.parts.second_reading import FROM_FEW, SecondReading
from model_updates.trainer import TrainingReport
from model_updates.versions import load_version, write_version
from tests.model_updates.photographs import photo_encoder
from tests.model_updates.tiny import make_strategy, teach, toy_pairs

WIDTH, MANY = 16, 400


def insert() -> SecondReading:
    return SecondReading.build(language("hi"), {"width": WIDTH}, torch.nn.Linear(1, 1))


def rows(count: int, seed: int, width: int = WIDTH) -> Tensor:
    return functional.normalize(
        torch.randn(count, width, generator=torch.Generator().manual_seed(seed)), dim=-1
    )


def test_a_new_one_changes_nothing() -> None:
    first, rest = rows(5, 0), 0.9 * rows(5, 1)
    read = insert().beside(first, rest)
    assert torch.equal(read[0], first)
    assert torch.allclose(read[1], rest, atol=1e-6)


def test_texts_that_were_not_taught_come_to_lie_near_their_english() -> None:
    turn = torch.linalg.qr(torch.eye(WIDTH) + 0.3 * rows(WIDTH, 2)).Q
    english = rows(MANY, 3)
    own = functional.normalize(english @ turn + 0.5 * rows(MANY, 4), dim=-1)
    solved = insert()
    solved.correct(own[: MANY // 2], english[: MANY // 2])

    held, wanted = own[MANY // 2 :], english[MANY // 2 :]
    _, read = solved.beside(held, 0.9 * held)

    assert functional.cosine_similarity(read, wanted).mean() > (held * wanted).sum(-1).mean() + 0.05
    assert torch.allclose(read.norm(dim=-1), torch.tensor(0.9), atol=1e-3)


@pytest.mark.parametrize(("noise", "least", "most"), [(0.5, 0.7, 1.4), (2.0, 0.1, 0.6), (20.0, 0.0, 0.15)])
def test_the_table_counts_as_far_as_it_finds_held_out_pictures(
    noise: float, least: float, most: float
) -> None:
    # The second tower reads half; the table all, some or nothing of what the pictures show.
    shown = rows(100, 5, 2 * WIDTH)
    first = functional.normalize(shown[:, :WIDTH] + noise * rows(100, 6), dim=-1)
    rest = functional.normalize(shown[:, WIDTH:] + 0.5 * rows(100, 7), dim=-1)
    weighed = insert()
    weighed.weigh(first, rest, torch.arange(100), shown, scale=16.0)
    assert least <= float(weighed.length) <= most


def test_with_hardly_anything_held_out_the_table_counts_little() -> None:
    weighed = insert()
    weighed.weigh(rows(3, 0), rows(3, 1), torch.arange(3), rows(3, 2, 2 * WIDTH), scale=16.0)
    assert float(weighed.length) == pytest.approx(FROM_FEW)


@pytest.fixture(scope="module")
def taught() -> tuple[Encoder, TrainingReport]:
    """An encoder that was taught Hindi, and what was said of it; whoever goes on takes a copy."""
    encoder, pairs = photo_encoder().copy(), toy_pairs("hi")
    strategy = make_strategy("language-tables", epochs=1)
    return encoder, teach(encoder, strategy, pairs[:12], validation=pairs[12:])


def test_a_table_that_counts_nothing_beside_the_second_tower_says_all_where_that_is_spared() -> None:
    first, rest, one = rows(5, 0), 0.9 * rows(5, 1), insert()
    one.length.fill_(0.0)
    assert not one.beside(first, rest)[0].any()
    assert torch.equal(one.beside(first, torch.zeros_like(rest))[0], first)


def test_a_taught_language_has_one_and_no_other_is_read_otherwise(
    taught: tuple[Encoder, TrainingReport], tmp_path: Path
) -> None:
    encoder, report = taught
    texts = [pair.text for pair in toy_pairs("hi")]
    before = {tag: photo_encoder().text_features(texts[:3], tag) for tag in ("en", "de", "uk")}
    (own,) = [one for one in encoder.inserts if isinstance(one, SecondReading)]
    assert own.owner == language("hi")
    assert any("hi: the words it was taught count 23 %" in note for note in report.notes)
    for tag, rows_before in before.items():
        assert np.array_equal(encoder.text_features(texts[:3], tag), rows_before)
    # It is a part of the version, and texts of several languages at once are read as one by one.
    write_version(tmp_path / "version", encoder, {}, {})
    again = load_version(tmp_path / "version").encoder
    assert again.text_fingerprint("hi") == encoder.text_fingerprint("hi")
    assert np.array_equal(again.encode_texts(texts, "hi"), encoder.encode_texts(texts, "hi"))
    assert np.allclose(
        again.encode_readings(texts[0], ["de", "hi"])[1], again.encode_texts(texts[:1], "hi")[0], atol=1e-6
    )


def test_a_language_taught_again_is_solved_from_what_the_tower_reads_not_from_what_was_solved(
    taught: tuple[Encoder, TrainingReport],
) -> None:
    encoder, pairs = taught[0].copy(), toy_pairs("hi")[:12]
    (first,) = [one.by for one in encoder.inserts if isinstance(one, SecondReading)]
    teach(encoder, make_strategy("language-tables", epochs=1), pairs, languages=frozenset({"en", "hi"}))
    (second,) = [one.by for one in encoder.inserts if isinstance(one, SecondReading)]
    assert torch.allclose(first, second, atol=1e-3)


def test_captions_without_english_beside_leave_the_second_tower_as_it_is() -> None:
    encoder = photo_encoder().copy()
    alone = [replace(pair, english=None) for pair in toy_pairs("hi")]
    teach(encoder, make_strategy("language-tables", epochs=1), alone)
    (own,) = [one for one in encoder.inserts if isinstance(one, SecondReading)]
    assert not own.by.any()
