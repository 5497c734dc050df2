"""Byte-pair encoding: its symbols, and merges that come out the same in any order of texts."""

from model_updates.byte_pairs import byte_symbols, learn_merges, segmenter_of, used_tokens


def test_byte_symbols_are_512_different_ones() -> None:
    assert len(set(byte_symbols())) == len(byte_symbols()) == 512


def test_learning_counts_the_byte_symbols_and_stops_at_the_size() -> None:
    letters = "abcdefghijklmnop"
    texts = [f"{one}{two}q {two}r{one}" for one in letters for two in letters] * 2
    assert len(learn_merges(texts, size=560)) == 560 - 512


def test_the_same_texts_give_the_same_merges_in_any_order() -> None:
    # A hash table drawn anew for each call used to decide ties: no three calls in a row agreed.
    letters = "abcdefgh"
    texts = [f"{one}{two} {two}{one}" for one in letters for two in letters] * 2
    assert len({learn_merges(texts, size=540) for _ in range(20)}) == 1
    assert learn_merges(texts[::-1], size=540) == learn_merges(texts, size=540)


def test_a_segmenter_numbers_tokens_by_their_place_and_says_which_are_used() -> None:
    tokens = [*byte_symbols(), "ca", "cat</w>"]
    merges = [("c", "a"), ("ca", "t</w>")]
    found = segmenter_of(merges, tokens).encode("Cat cab", add_special_tokens=False)
    assert found.ids == [tokens.index("cat</w>"), tokens.index("ca"), tokens.index("b</w>")]
    assert used_tokens(merges, tokens, ["Cat cab"]) == {"cat</w>", "ca", "b</w>"}
