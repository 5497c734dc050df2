"""Rows of a new language start at the English rows that translate them; rows of their own train alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from model_updates.parts.own_rows import close_rows, open_rows
from model_updates.parts.translations import Translations, start_from_translations, translations
from model_updates.towers import token_table


def test_words_that_stand_together_translate_each_other() -> None:
    # 1 stands for 11 and 2 for 12; 3 is everywhere, like an article, and so is 13.
    foreign = [[1, 3], [2, 3], [1, 2, 3], [3]]
    english = [[11, 13], [12, 13], [11, 12, 13], [13]]

    found = translations(foreign, english, rounds=20)

    likely = {}
    for row in (1, 2, 3):
        mine = found.foreign == row
        assert found.share[mine].sum() == pytest.approx(1)
        likely[row] = int(found.english[mine][found.share[mine].argmax()])
    assert likely == {1: 11, 2: 12, 3: 13}


def test_nothing_beside_it_translates_nothing() -> None:
    assert len(translations([[1, 2]], [[]]).foreign) == 0


def test_a_row_starts_at_the_weighted_mean_of_its_translations() -> None:
    table = torch.arange(12.0).reshape(6, 2)
    found = Translations(np.array([4, 4, 2]), np.array([0, 1, 0]), np.array([0.25, 0.75, 1.0]))

    started = start_from_translations(table, np.array([4, 5]), found)

    assert started == 1
    assert table[4].tolist() == [0.25 * 0 + 0.75 * 2, 0.25 * 1 + 0.75 * 3]
    assert table[[2, 5]].tolist() == [[4, 5], [10, 11]]  # one is no new row, the other has no translation


def test_rows_of_their_own_train_and_no_other_moves() -> None:
    model = nn.Module()
    embedding = model.token_embedding = nn.Embedding(5, 3)
    before = embedding.weight.detach().clone()
    tokens = torch.tensor([[0, 4], [2, 0]])

    own = open_rows(model, torch.tensor([2, 4]))
    opened = model.token_embedding
    assert torch.equal(opened(tokens), before[tokens])
    opened(tokens).sum().backward()
    with torch.no_grad():
        own.sub_(torch.ones_like(own) if own.grad is None else own.grad)
    close_rows(model)

    after = token_table(model)
    assert after is not None
    assert torch.equal(after[[0, 1, 3]], before[[0, 1, 3]])
    assert torch.equal(after[[2, 4]], before[[2, 4]] - 1)
