"""Hidden words: how many, what stands in their place, and what is never touched."""

import torch

from model_updates.fusion.teaching import hide_words


def test_fifteen_percent_are_chosen_and_shared_out_80_10_10() -> None:
    torch.manual_seed(0)
    tokens = torch.arange(100_000).reshape(100, 1000) + 10
    masked = hide_words(tokens, torch.ones_like(tokens, dtype=torch.bool), torch.tensor([1, 2]))
    chosen = int(masked.chosen.sum())
    other = int((masked.tokens != tokens).sum())
    assert abs(chosen / 100_000 - 0.15) < 0.005  # four deviations of 0.0011
    assert abs(int(masked.hidden.sum()) / chosen - 0.8) < 0.014  # of 0.0033
    assert abs(other / chosen - 0.1) < 0.01  # of 0.0025
    assert not bool((masked.hidden & (masked.tokens != tokens)).any())
    assert torch.equal(masked.right, tokens[masked.chosen])
    assert set(masked.tokens[masked.tokens != tokens].tolist()) == {1, 2}


def test_only_words_are_chosen() -> None:
    torch.manual_seed(0)
    tokens, words = torch.arange(200).reshape(10, 20), torch.zeros(10, 20, dtype=torch.bool)
    words[:, 5:9] = True
    masked = hide_words(tokens, words, tokens.flatten())
    assert not bool((masked.chosen & ~words).any())
    assert torch.equal(masked.tokens[~words], tokens[~words])


def test_at_least_one_word_is_hidden() -> None:
    for seed in range(20):
        torch.manual_seed(seed)
        tokens, words = torch.tensor([[1, 7, 2]]), torch.tensor([[False, True, False]])
        masked = hide_words(tokens, words, torch.tensor([7]))
        assert masked.chosen.tolist() == [[False, True, False]]
        assert masked.right.tolist() == [7]


def test_the_same_seed_hides_the_same_words() -> None:
    tokens = torch.arange(400).reshape(20, 20)
    found = []
    for _ in range(2):
        torch.manual_seed(5)
        found.append(hide_words(tokens, tokens > 0, tokens.flatten()))
    assert torch.equal(found[0].tokens, found[1].tokens)
    assert torch.equal(found[0].hidden, found[1].hidden)
