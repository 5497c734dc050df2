"""The expandable vocabulary: CLIP's ids, growth that moves no row, tables of a language's own."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from open_clip.tokenizer import SimpleTokenizer, default_bpe

from model_updates.byte_pairs import learn_merges
from model_updates.vocabulary import SHARED, TokenTable, Vocabulary, resegmented_share

ROWS_OF_CLIP = 49_408


@pytest.fixture(scope="module")
def clip() -> Vocabulary:
    return Vocabulary.clip(Path(default_bpe()))


@pytest.fixture(scope="module")
def reference() -> SimpleTokenizer:
    return SimpleTokenizer()


def ids_of_open_clip(reference: SimpleTokenizer, text: str) -> list[int]:
    row: list[int] = reference([text])[0].tolist()
    return row[: row.index(ROWS_OF_CLIP - 1) + 1]


@pytest.mark.parametrize(
    "text",
    [
        "a photo of a dog",
        "A Photo of TWO Dogs, running!",
        "it's 1998 and they've 24 cats; we'll see I'm sure he'd don't",
        "café Über naïve Straße señor",
        "  spaces\t and\nlines  ",
        "emoji 🐕‍🦺 and symbols © → … #hash_tag @you",
        "日本語のテキスト и кириллица",
        "word " * 100,
        "",
    ],
)
def test_ids_are_those_of_open_clip(clip: Vocabulary, reference: SimpleTokenizer, text: str) -> None:
    assert clip.encode([text]) == [ids_of_open_clip(reference, text)]


@settings(max_examples=60, deadline=None)
@given(text=st.text(alphabet="abcxyzABC äéñß0123456789.,'!?-_\n", max_size=40))
def test_ids_of_drawn_latin_texts_are_those_of_open_clip(
    clip: Vocabulary, reference: SimpleTokenizer, text: str
) -> None:
    assert clip.encode([text]) == [ids_of_open_clip(reference, text)]


def test_clip_has_its_rows_and_its_special_ones(clip: Vocabulary) -> None:
    assert clip.size == ROWS_OF_CLIP
    assert (clip.start_row, clip.end_row, clip.pad_row) == (49_406, 49_407, 0)


def test_a_combining_vowel_sign_does_not_end_a_word() -> None:
    merges = learn_merges(["हिन्दी हिन्दी"] * 3, size=700)
    vocabulary = Vocabulary.from_merges(merges, context_length=16)
    assert len(vocabulary.encode(["हिन्दी"])[0]) == 3


def test_a_later_merge_segments_an_old_word_anew() -> None:
    # With {ca, cat, do} "dog" is do·g; after (do, g) it is one new token.
    vocabulary = Vocabulary.from_merges([("c", "a"), ("ca", "t</w>"), ("d", "o")], context_length=8)
    before = vocabulary.copy()
    rows = vocabulary.tables[SHARED].rows
    assert vocabulary.encode(["dog"]) == [[1, rows["do"], rows["g</w>"], 2]]
    growth = vocabulary.grow_shared([("d", "o"), ("do", "g</w>")])
    assert growth.new_rows.tolist() == [before.size]
    assert vocabulary.encode(["dog", "cat"]) == [[1, before.size, 2], [1, rows["cat</w>"], 2]]
    assert resegmented_share(before, vocabulary, ["dog", "cat", "a cat", "the dog"], "en") == 0.5


def test_no_text_is_segmented_anew() -> None:
    vocabulary = Vocabulary.from_merges([], context_length=8)
    assert resegmented_share(vocabulary, vocabulary, [], "en") == 0.0


def test_growing_keeps_every_old_row_and_numbers_new_ones_in_order() -> None:
    vocabulary = Vocabulary.from_merges([("a", "b")], context_length=8)
    old, size = dict(vocabulary.tables[SHARED].rows), vocabulary.size
    growth = vocabulary.grow_shared([("x", "y"), ("a", "b"), ("xy", "z")])
    rows = vocabulary.tables[SHARED].rows
    assert {token: rows[token] for token in old} == old
    assert (rows["xy"], rows["xyz"]) == (size, size + 1)
    assert growth.new_rows.tolist() == [size, size + 1]
    assert growth.start_from.tolist() == [-1, -1]
    assert vocabulary.tables[SHARED].merges == (("a", "b"), ("x", "y"), ("xy", "z"))


def test_a_language_gets_rows_of_its_own_for_what_its_texts_use() -> None:
    vocabulary = Vocabulary.from_merges([("a", "b</w>")], context_length=8)
    shared, size = vocabulary.tables[SHARED].rows, vocabulary.size
    growth = vocabulary.grow_table("de", [("a", "b</w>"), ("c", "d</w>")], ["ab cd"])
    assert growth.new_rows.tolist() == [size, size + 1]
    assert growth.start_from.tolist() == [shared["ab</w>"], -1]
    assert vocabulary.encode(["ab cd"], "de") == [[1, size, size + 1, 2]]
    assert vocabulary.encode(["ab"], "en") == [[1, shared["ab</w>"], 2]]


def test_an_unusual_query_can_still_be_spelled_in_a_language_of_its_own() -> None:
    vocabulary = Vocabulary.from_merges([], context_length=8)
    vocabulary.grow_table("de", [], ["a"])
    assert vocabulary.encode(["q"], "de") == vocabulary.encode(["q"], "en")


def test_more_of_the_same_language_keeps_its_rows() -> None:
    vocabulary = Vocabulary.from_merges([], context_length=8)
    vocabulary.grow_table("de", [("a", "b</w>")], ["ab x"])
    first = dict(vocabulary.tables["de"].rows)
    growth = vocabulary.grow_table("de", [("x", "y</w>")], ["xy q"])
    again = vocabulary.tables["de"].rows
    own = {token for token in first if first[token] >= 3 + 512}
    assert all(again[token] == first[token] for token in own)
    assert {again["q</w>"], again["xy</w>"]} == set(growth.new_rows.tolist())


def test_long_texts_are_cut_and_keep_their_end() -> None:
    vocabulary = Vocabulary.from_merges([], context_length=6)
    (row,) = vocabulary.encode(["a b c d e f g"])
    assert len(row) == 6
    assert (row[0], row[-1]) == (1, 2)


def test_padding_goes_to_the_longest_text_only() -> None:
    vocabulary = Vocabulary.from_merges([], context_length=77)
    padded = vocabulary.pad([[1, 9, 2], [1, 2]])
    assert padded.tolist() == [[1, 9, 2], [1, 2, 0]]
    assert padded.dtype == np.int64


def test_json_gives_the_same_vocabulary_back() -> None:
    vocabulary = Vocabulary.from_merges([("a", "b")], context_length=9)
    vocabulary.grow_table("de", [("c", "d</w>")], ["cd ab"])
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again.to_json() == vocabulary.to_json()
    assert again.encode(["ab cd"], "de") == vocabulary.encode(["ab cd"], "de")


def test_a_copy_grows_alone() -> None:
    vocabulary = Vocabulary.from_merges([], context_length=9)
    vocabulary.copy().grow_shared([("a", "b")])
    assert "ab" not in vocabulary.tables[SHARED].rows


@pytest.mark.parametrize("left_out", [1, 3, 4, 5, 900, 5000, 10_000])
def test_a_file_that_ends_too_early_is_refused_at_once(tmp_path: Path, left_out: int) -> None:
    path = tmp_path / "vocabulary.json"
    whole = json.dumps(Vocabulary.from_merges([("a", "b")], context_length=9).to_json())
    path.write_text(whole[:-left_out], encoding="utf-8")
    with pytest.raises(json.JSONDecodeError):
        Vocabulary.read(path)


@pytest.mark.parametrize("layout", [{}, {"ensure_ascii": False}, {"indent": 1}, {"separators": (",", ":")}])
def test_tables_are_read_when_a_language_is_whatever_a_file_looks_like(
    tmp_path: Path, layout: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    vocabulary = Vocabulary.from_merges([("ð", "Ł"), ("}", "}"), ("}}", ",")], context_length=9)
    vocabulary.grow_table("de", [("c", "d</w>"), ('"', ":"), ('":', "{")], ["cd ab"])
    path = tmp_path / "vocabulary.json"
    path.write_text(json.dumps(vocabulary.to_json(), **layout) + "\n", encoding="utf-8")
    read, to_json = list[TokenTable](), TokenTable.to_json

    def noted(table: TokenTable) -> dict[str, Any]:
        read.append(table)
        return to_json(table)

    monkeypatch.setattr(TokenTable, "to_json", noted)

    opened = Vocabulary.read(path)

    assert (list(opened.tables), read) == (["", "de"], [])
    assert opened.encode(["cd ab"], "de") == vocabulary.encode(["cd ab"], "de")
    assert opened.tables[SHARED] not in read
    assert opened.to_json() == vocabulary.to_json()


def test_a_file_of_tables_is_read_as_it_was_whatever_its_tokens_are_called(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_merges([("m", "e"), ("me", "rges")], context_length=16)
    vocabulary.grow_table("de", [("r", "o"), ("ro", "t")], ["rot"])
    vocabulary.grow_words("de", ["merges", "rot"])
    assert "merges" in vocabulary.tables[SHARED].rows
    said = json.dumps(vocabulary.to_json())
    (tmp_path / "vocabulary.json").write_text(said, encoding="utf-8")
    for read in (Vocabulary.read(tmp_path / "vocabulary.json"), vocabulary.copy()):
        assert json.dumps(read.to_json()) == said
        assert [read.segmentation(name)[0] for name in read.tables] == [
            vocabulary.segmentation(name)[0] for name in vocabulary.tables
        ]
        assert read.encode(["rot merges"], "de") == vocabulary.encode(["rot merges"], "de")
