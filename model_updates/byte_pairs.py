"""Byte-level byte-pair encoding: the merges that a table of tokens is made of, learned and applied.

The pre-tokeniser is CLIP's (lower case, contractions, runs of letters, single digits, runs of the rest), with
one change: combining marks count as letters, else every Hindi vowel sign would end a word. Texts without such
marks get exactly the ids of open_clip's tokenizer (tested). Merging itself is done by the `tokenizers`
library.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from tokenizers import Encoding, Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers

END_OF_WORD = "</w>"
WORDS = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}\p{M}]+|\p{N}|[^\s\p{L}\p{M}\p{N}]+"

Merge = tuple[str, str]


def byte_symbols() -> list[str]:
    """Returns the 512 symbols that every table starts with: each byte inside and ending a word, in CLIP's order."""
    printable = [
        *range(ord("!"), ord("~") + 1),
        *range(ord("¡"), ord("¬") + 1),
        *range(ord("®"), ord("ÿ") + 1),
    ]
    shifted = [chr(256 + n) for n in range(256 - len(printable))]
    symbols = [chr(byte) for byte in printable] + shifted
    return symbols + [symbol + END_OF_WORD for symbol in symbols]


def _pipeline(model: models.BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.NFC(),
            normalizers.Replace(Regex(r"\s+"), " "),
            normalizers.Strip(),
            normalizers.Lowercase(),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(WORDS), behavior="removed", invert=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return tokenizer


def learn_merges(texts: Iterable[str], *, size: int = 10_000, min_frequency: int = 2) -> tuple[Merge, ...]:
    """Trains a byte-level BPE on texts; the same texts give the same merges, in whatever order they come.

    Returns up to `size` entries in the order they were learned, the 512 byte symbols included (CLL-CLIP takes 10,000).
    A pair that is seen less often than `min_frequency` is not merged.
    """
    tokenizer = _pipeline(models.BPE(end_of_word_suffix=END_OF_WORD))
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        show_progress=False,
        # Ties between equally frequent pairs go by token number, and symbols that end a word are numbered in
        # the order of a hash table unless they are named here: every run would learn other merges.
        special_tokens=[symbol for symbol in byte_symbols() if symbol.endswith(END_OF_WORD)],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        end_of_word_suffix=END_OF_WORD,
    )
    tokenizer.train_from_iterator(texts, trainer)
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    return tuple((first, second) for first, second in merges)


def segmenter_of(merges: Sequence[Merge], tokens: Sequence[str]) -> Tokenizer:
    """Returns the tokenizer that applies merges; the id of a token is its place among the tokens."""
    return numbered_segmenter(merges, {token: position for position, token in enumerate(tokens)})


def numbered_segmenter(merges: Sequence[Merge], ids: Mapping[str, int]) -> Tokenizer:
    """Returns the tokenizer that applies merges and gives each token its id."""
    return _pipeline(models.BPE(vocab=dict(ids), merges=list(merges), end_of_word_suffix=END_OF_WORD))


def spelled(item: Encoding) -> Iterator[tuple[str, list[int]]]:
    """Yields each word of an encoded text and the ids of its pieces: byte-level pieces spell their word exactly."""
    tokens, ids, words = item.tokens, item.ids, item.word_ids
    for _, positions in groupby(range(len(ids)), key=words.__getitem__):
        places = list(positions)
        yield "".join(tokens[n] for n in places), [ids[n] for n in places]


def used_tokens(merges: Sequence[Merge], tokens: Sequence[str], texts: Sequence[str]) -> set[str]:
    """Returns the tokens that some texts are cut into."""
    encoded = segmenter_of(merges, tokens).encode_batch_fast(list(texts), add_special_tokens=False)
    return {tokens[position] for position in {position for item in encoded for position in item.ids}}
