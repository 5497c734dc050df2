"""Tokenizers that are not ours: what is written for other programs cuts texts as it is done here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import open_clip
import pytest
from numpy.typing import NDArray
from tokenizers import Tokenizer

from model_updates.encoder import ForeignTokenizer
from model_updates.hub_texts import RULES
from model_updates.kept_tokenizer import AS_IT_IS, LOWERED, PADDING, KeptTokenizer, portable
from model_updates.photo.e5 import language_captions
from tests.model_updates import families

TEXTS = [
    *(text for captions in language_captions().values() for text in captions[::8]),
    "Two  dogs,\trunning past a HOUSE!",
    "snake_case — “quoted” it’s [so] {it} ~`^",
    "boat " * 200,
    "",
]


def elsewhere(tokenizer: ForeignTokenizer, folder: Path) -> NDArray[np.int64]:
    """What a program reads from the file, as `load.py` of a folder of graphs does."""
    made = portable(tokenizer)
    assert made is not None
    made[0].save(str(folder / RULES))
    encoded = Tokenizer.from_file(str(folder / RULES)).encode_batch(TEXTS)
    kept = np.array([one.attention_mask for one in encoded])
    return np.where(kept, np.array([one.ids for one in encoded]), made[1])


@pytest.mark.parametrize("clean", [AS_IT_IS, LOWERED, "whitespace", "canonicalize"])
@pytest.mark.parametrize("pad", [PADDING, 1])
def test_kept_rules_are_written_with_their_cleaning(clean: str, pad: int, tmp_path: Path) -> None:
    families.write_rules(tmp_path)
    rules = (tmp_path / RULES).read_text(encoding="utf-8")
    tokenizer = KeptTokenizer(rules, longest=30, clean=clean, pad=pad)
    here = tokenizer(TEXTS).numpy()
    assert here.shape == (len(TEXTS), 30)
    assert np.array_equal(elsewhere(tokenizer, tmp_path), here)
    assert (here == pad).any()


def test_clips_own_tokenizer_is_written_as_open_clip_cuts_texts(tmp_path: Path) -> None:
    tokenizer = open_clip.get_tokenizer("MobileCLIP-S1")
    assert np.array_equal(elsewhere(tokenizer, tmp_path), tokenizer(TEXTS).numpy())


def test_other_rules_are_not_written() -> None:
    assert portable(open_clip.get_tokenizer("MobileCLIP-S1", clean="canonicalize")) is None
    assert portable(None) is None
