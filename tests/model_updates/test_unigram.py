"""Pieces that are mapped: the likeliest cut, and a cache that is there whole or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from model_updates.photo.e5 import language_captions
from model_updates.photo.tokenizer import SentencePieces
from model_updates.photo.unigram import PieceList, Unigram

PIECES = PieceList(
    range(10, 16), ["a", "b", "ab", "c", "bc", "abc"], [-3.0, -3.0, -4.0, -2.0, -4.5, -9.0], b"rules"
)


def read() -> PieceList:
    return PIECES


def not_again() -> PieceList:
    raise AssertionError("what is kept is not read again")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("text", "rows"),
    [("abc", [12, 13]), ("abab", [12, 12]), ("bc", [14]), ("xa", [0, 10]), ("", []), ("xx", [0, 0])],
)
def test_the_likeliest_pieces_are_taken(text: str, rows: Sequence[int]) -> None:
    assert Unigram("letters", read, 0).cut(text) == rows


def test_pieces_are_read_once_for_a_machine(cache: Path) -> None:
    first = Unigram("letters", read, 0)
    again = Unigram("letters", not_again, 0)
    assert again.cut("abcab") == first.cut("abcab")
    assert again.rules == first.rules == b"rules"
    assert [folder.name for folder in (cache / "perennial").iterdir()] == ["letters"]


@pytest.mark.parametrize("name", ["pieces.marisa", "pieces.npy", "rules", "sha256"])
def test_a_damaged_cache_is_made_again(cache: Path, name: str, caplog: pytest.LogCaptureFixture) -> None:
    Unigram("letters", read, 0)
    file = cache / "perennial" / "letters" / name
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    assert Unigram("letters", read, 0).cut("abcx") == [12, 13, 0]
    assert "is damaged and is made again" in caplog.text
    assert Unigram("letters", not_again, 0).cut("abcx") == [12, 13, 0]


def test_where_nothing_can_be_written_they_stay_in_memory(cache: Path) -> None:
    (cache / "perennial").write_text("in the way")
    assert Unigram("letters", read, 0).cut("abcx") == [12, 13, 0]


def test_texts_are_cut_as_by_the_package_itself() -> None:
    ours = SentencePieces()
    odd = ["", "  ", "ﬁ ＡＢＣ １２３", "e\u0301", "\u200bzero", "a\tb\nc", "😀 smile", "x" * 300]
    letters = np.random.default_rng(1).integers(32, 0x3100, size=(40, 20))
    odd += ["▁ ▁▁a", *("".join(map(chr, row)) for row in letters.tolist())]
    texts = [*odd, *(text for captions in language_captions().values() for text in captions[:4])]
    theirs = ours._pieces.encode(texts, add_bos=False, add_eos=False)
    assert ours.encode(texts) == theirs
