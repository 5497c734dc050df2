"""A tokenizer that travels with the version: the text of its ``tokenizer.json``, and how long a text may be."""

from collections.abc import Sequence

import torch
from tokenizers import Tokenizer
from torch import Tensor

from model_updates.sentence.model import PADDING


class KeptTokenizer:
    """Texts to token rows by rules that are not ours."""

    def __init__(self, text: str, *, longest: int, lower: bool = False) -> None:
        """Reads the rules; a text has at most `longest` tokens, both ends included; `lower` lower-cases it first."""
        self.text = text  # of ``tokenizer.json``, all there is to know of the rules
        self._longest, self._lower = longest, lower
        self._rules = Tokenizer.from_str(text)
        self._rules.enable_truncation(longest)
        self._rules.no_padding()

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """Returns (n, longest) int64 rows, `PADDING` behind each text."""
        given = [text.lower() for text in texts] if self._lower else list(texts)
        rows = torch.full((len(given), self._longest), PADDING)
        for row, encoded in zip(rows, self._rules.encode_batch(given), strict=True):
            row[: len(encoded.ids)] = torch.tensor(encoded.ids)
        return rows
