"""Tokenizers that came with an encoder and are not ours: kept with each version, and written for other programs."""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from open_clip.tokenizer import SimpleTokenizer, default_bpe, get_clean_fn
from tokenizers import Regex, Tokenizer, normalizers, pre_tokenizers, processors
from torch import Tensor

from model_updates.encoder import ForeignTokenizer
from model_updates.vocabulary import SHARED, Vocabulary

PADDING = -1  # in token rows; a tokenizer's own padding may be a token that texts have, too
AS_IT_IS, LOWERED = "", "lowered"
_START, _END = "<start_of_text>", "<end_of_text>"
# CLIP's words; unlike ours they part a letter from its marks.
_CLIP_WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"
_PUNCTUATION = r"[!-/:-@\[-^`{-~]"  # of ASCII, but for the underline, which counts as a space
_COLLAPSED = [normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
# open_clip has ftfy mend texts; of that, quotes are what ordinary texts have.
_MENDED = [
    normalizers.NFC(),
    normalizers.Replace(Regex("[\u02bc\u2018-\u201b]"), "'"),
    normalizers.Replace(Regex("[\u201c-\u201f]"), '"'),
]
# How texts are cleaned before they are cut: here, and as rules for other programs. The last two are open_clip's.
_CLEANED: dict[str, tuple[Callable[[str], str], list[normalizers.Normalizer]]] = {
    AS_IT_IS: (str, []),
    LOWERED: (str.lower, [normalizers.Lowercase()]),
    "whitespace": (get_clean_fn("whitespace"), [*_MENDED, *_COLLAPSED]),
    "canonicalize": (
        get_clean_fn("canonicalize"),
        [
            *_MENDED,
            normalizers.Replace("_", " "),
            normalizers.Replace(Regex(_PUNCTUATION), ""),
            normalizers.Lowercase(),
            *_COLLAPSED,
        ],
    ),
}


class KeptTokenizer:
    """Texts to token rows by the rules of a ``tokenizer.json``."""

    def __init__(self, text: str, *, longest: int, clean: str = AS_IT_IS, pad: int = PADDING) -> None:
        """Reads the rules; a text is cleaned, has at most `longest` tokens, both ends included, and then `pad`."""
        self.text = text  # of ``tokenizer.json``, all there is to know of the rules
        self.pad = pad
        self._longest, self._clean = longest, clean
        self._rules = Tokenizer.from_str(text)
        self._rules.enable_truncation(longest)
        self._rules.no_padding()

    def __call__(self, texts: Sequence[str]) -> Tensor:
        """Returns (n, longest) int64 rows, padding behind each text."""
        rows = torch.full((len(texts), self._longest), self.pad)
        clean = _CLEANED[self._clean][0]
        for row, encoded in zip(rows, self._rules.encode_batch(list(map(clean, texts))), strict=True):
            row[: len(encoded.ids)] = torch.tensor(encoded.ids)
        return rows

    def portable(self) -> Tokenizer:
        """Returns the rules with cleaning, cutting and filling up in them."""
        made = Tokenizer.from_str(self.text)
        then = [] if made.normalizer is None else [made.normalizer]
        if _CLEANED[self._clean][1]:
            made.normalizer = normalizers.Sequence([*_CLEANED[self._clean][1], *then])
        return _of_one_length(made, self._longest)


def portable(tokenizer: ForeignTokenizer | None) -> tuple[Tokenizer, int] | None:
    """Returns a tokenizer that is not ours as `tokenizers` writes it to a file, and what its padding counts as.

    None where it follows rules that such a file has no place for.
    """
    if isinstance(tokenizer, KeptTokenizer):
        return tokenizer.portable(), tokenizer.pad
    if isinstance(tokenizer, SimpleTokenizer) and tokenizer.clean_fn is get_clean_fn("lower"):
        made = Vocabulary.clip(Path(default_bpe()), context_length=tokenizer.context_length).portable(SHARED)
        made.normalizer = normalizers.Sequence([*_MENDED, made.normalizer])
        made.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_CLIP_WORDS), behavior="removed", invert=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        ends = [(_START, tokenizer.sot_token_id), (_END, tokenizer.eot_token_id)]
        made.post_processor = processors.TemplateProcessing(single=f"{_START} $A {_END}", special_tokens=ends)
        return _of_one_length(made, tokenizer.context_length), 0
    return None


def _of_one_length(rules: Tokenizer, longest: int) -> Tokenizer:
    rules.enable_truncation(longest)
    rules.enable_padding(length=longest)
    return rules
